//! Documents: many in one command, one for each shard in one command, one alone, and updates of all of them.

use super::caller::{expect, number};
use super::definitions::KEYS_EACH;
use super::machines::Run;
use pando_bson::{Bson, Document, doc};

/// Documents of `d.hashed` for each shard.
const HASHED_EACH: i64 = 8;
/// Writes of one document each, by which one is measured.
const SINGLE: i64 = 20;

/// A command on a collection of the database of all tests.
pub(super) fn on(command: &str, coll: &str) -> Document {
    let mut body = Document::new();
    body.push(command, coll);
    body
}
pub(super) fn in_d(mut body: Document) -> Document {
    body.push("$db", "d");
    body
}

fn insert(coll: &str, docs: Vec<Document>) -> Document {
    let mut body = on("insert", coll);
    body.push("documents", docs.into_iter().map(Bson::from).collect::<Vec<_>>());
    body.push("ordered", false);
    in_d(body)
}

impl Run {
    /// Documents of `d.ranged`: one a chunk, and one more on each shard.
    pub(super) fn ranged(&self) -> i64 {
        self.chunks() + self.n()
    }
    pub(super) fn hashed(&self) -> i64 {
        HASHED_EACH * self.n()
    }
    /// The key of a document of `d.ranged`. Chunks of the zone, `n` in a row, are on `n` shards.
    pub(super) fn key_of(&self, id: i64) -> i64 {
        match id - self.chunks() {
            more if more >= 0 => KEYS_EACH * more + 2,
            _ => KEYS_EACH * id + 1,
        }
    }
    fn ranged_doc(&self, id: i64) -> Document {
        doc! { "_id": id, "k": self.key_of(id), "v": id, "g": id % 10, "w": 0 }
    }
    pub(super) fn write(&mut self) -> Result<(), String> {
        let (n, chunks) = (self.n(), self.chunks());
        let docs = (0..chunks).map(|id| self.ranged_doc(id)).collect();
        self.insert_all("the first insert of one document a shard", "ranged", docs)?;
        let docs = (chunks..chunks + n).map(|id| self.ranged_doc(id)).collect();
        self.insert_all("insert of one document a shard", "ranged", docs)?;
        let hashed = |id: i64| doc! { "_id": id, "k": id, "g": id % 7, "v": 1 };
        let docs = (0..self.hashed()).map(hashed).collect();
        self.insert_all("the first insert of eight documents a shard, hashed", "hashed", docs)?;
        let docs = (0..100i64).map(|id| doc! { "_id": id, "v": id }).collect();
        self.insert_all("insert of 100 documents, not sharded", "plain", docs)?;
        self.step("update of one document by its key", SINGLE as u64, |run| run.update_some())?;
        for name in ["the first update of all documents", "update of all documents"] {
            let updated = self.step(name, 1, |run| run.update_all())?;
            expect("documents updated", updated, self.ranged())?;
        }
        Ok(())
    }
    fn insert_all(&mut self, name: &'static str, coll: &str, docs: Vec<Document>) -> Result<(), String> {
        let n = docs.len() as i64;
        let body = insert(coll, docs);
        let reply = self.step(name, 1, |run| run.ok(&body))?;
        expect("documents inserted", number(&reply, "n"), n)
    }
    fn update(&mut self, q: Document, field: &str, multi: bool) -> Result<i64, String> {
        let mut by = Document::new();
        by.push(field, 1);
        let mut update = doc! { "q": q, "multi": multi };
        update.push("u", doc! { "$inc": by });
        let mut body = on("update", "ranged");
        body.push("updates", vec![Bson::from(update)]);
        let reply = self.ok(&in_d(body))?;
        Ok(number(&reply, "nModified"))
    }
    fn update_some(&mut self) -> Result<(), String> {
        for i in 0..SINGLE {
            let key = self.key_of(i * self.ranged() / SINGLE);
            expect("updated", self.update(doc! { "k": key }, "x", false)?, 1)?;
        }
        Ok(())
    }
    /// How many documents were updated.
    pub(super) fn update_all(&mut self) -> Result<i64, String> {
        self.update(Document::new(), "w", true)
    }
}
