//! Reads of one shard, of all shards, and of the cluster itself.

use super::caller::{at, batch, expect, number};
use super::machines::Run;
use super::writes::{in_d, on};
use pando_bson::{Bson, Document, doc};

/// Reads of one document each, by which one is measured.
const SINGLE: i64 = 20;
const LIMIT: i64 = 8;

fn find(coll: &str, filter: Document) -> Document {
    let mut body = on("find", coll);
    body.push("filter", filter);
    in_d(body)
}
fn find_sorted(coll: &str, by: Document, limit: Option<i64>) -> Document {
    let mut body = on("find", coll);
    body.push("sort", by);
    limit.into_iter().for_each(|n| body.push("limit", n));
    in_d(body)
}
pub(super) fn aggregate(coll: &str, stages: Vec<Document>) -> Document {
    let mut body = on("aggregate", coll);
    body.push("pipeline", stages.into_iter().map(Bson::from).collect::<Vec<_>>());
    body.push("cursor", Document::new());
    body
}
fn numbers(docs: &[Document], field: &str) -> Vec<i64> {
    docs.iter().map(|d| number(d, field)).collect()
}

impl Run {
    pub(super) fn read(&mut self) -> Result<(), String> {
        self.read_one_by_one()?;
        self.read_of_all_shards()?;
        self.read_about_the_cluster()
    }
    /// One document, by its key.
    pub(super) fn find_by_key(&mut self, router: usize, id: i64) -> Result<(), String> {
        let key = self.key_of(id);
        let found = self.all_at(router, &find("ranged", doc! { "k": key }))?;
        expect("found by the key", numbers(&found, "_id"), vec![id])
    }
    fn read_one_by_one(&mut self) -> Result<(), String> {
        let (ranged, hashed) = (self.ranged(), self.hashed());
        self.step("find by the key", SINGLE as u64, |run| {
            (0..SINGLE).try_for_each(|i| run.find_by_key(0, i * ranged / SINGLE))
        })?;
        self.step("find by the hashed key", SINGLE as u64, |run| {
            (0..SINGLE).map(|i| i * hashed / SINGLE).try_for_each(|k| {
                let found = run.all(&find("hashed", doc! { "k": k }))?;
                expect("found by the hashed key", numbers(&found, "_id"), vec![k])
            })
        })?;
        self.step("find of what is not sharded", SINGLE as u64, |run| {
            (0..SINGLE).try_for_each(|i| {
                let found = run.all(&find("plain", doc! { "_id": i }))?;
                expect("found", numbers(&found, "v"), vec![i])
            })
        })
    }
    /// One document, without its key.
    pub(super) fn find_anywhere(&mut self, router: usize, id: i64) -> Result<(), String> {
        let found = self.all_at(router, &find("ranged", doc! { "v": id }))?;
        expect("found anywhere", numbers(&found, "_id"), vec![id])
    }
    fn read_of_all_shards(&mut self) -> Result<(), String> {
        let ranged = self.ranged();
        self.step("find without the key", SINGLE as u64, |run| {
            (0..SINGLE).try_for_each(|i| run.find_anywhere(0, i * ranged / SINGLE))
        })?;
        self.step("find of all documents", 1, |run| {
            let mut ids = numbers(&run.all(&find("ranged", Document::new()))?, "_id");
            ids.sort_unstable();
            expect("all documents", ids, (0..ranged).collect())
        })?;
        self.step("sorted by another field, the first 8", 1, |run| {
            let found = run.all(&find_sorted("ranged", doc! { "v": -1 }, Some(LIMIT)))?;
            expect(
                "the first by the order",
                numbers(&found, "v"),
                (0..LIMIT).map(|i| ranged - 1 - i).collect(),
            )
        })?;
        self.step("sorted by another field, all", 1, |run| {
            let found = run.all(&find_sorted("ranged", doc! { "v": 1 }, None))?;
            expect("all in order", numbers(&found, "v"), (0..ranged).collect())
        })?;
        self.step("count by a condition", 1, |run| {
            let mut body = on("count", "ranged");
            body.push("query", doc! { "g": 3 });
            let reply = run.ok(&in_d(body))?;
            expect("counted", number(&reply, "n"), (0..ranged).filter(|i| i % 10 == 3).count() as i64)
        })?;
        self.step("distinct", 1, |run| {
            let mut body = on("distinct", "ranged");
            body.push("key", "g");
            let reply = run.ok(&in_d(body))?;
            expect("values", at(&reply, "values").and_then(Bson::as_array).map_or(0, <[Bson]>::len), 10)
        })?;
        self.step("$group of all documents", 1, |run| {
            let mut by = doc! { "_id": "$g" };
            by.push("sum", doc! { "$sum": "$v" });
            by.push("n", doc! { "$sum": 1 });
            let found = run.all(&in_d(aggregate("ranged", vec![doc! { "$group": by }])))?;
            let sums = (numbers(&found, "sum").iter().sum(), numbers(&found, "n").iter().sum());
            expect("sums of 10 groups", (found.len(), sums), (10, (ranged * (ranged - 1) / 2, ranged)))
        })
    }
    /// What tools ask: shells about the state of the cluster, drivers about its databases.
    fn read_about_the_cluster(&mut self) -> Result<(), String> {
        let n = self.n();
        self.step("listDatabases", 1, |run| {
            let reply = run.admin(doc! { "listDatabases": 1 })?;
            let dbs = at(&reply, "databases").and_then(Bson::as_array).unwrap_or_default();
            let d = dbs
                .iter()
                .filter_map(Bson::as_doc)
                .find(|d| at(d, "name").and_then(Bson::as_str) == Some("d"));
            let shards = d.and_then(|d| at(d, "shards")?.as_doc()).map_or(0, |s| s.iter().count());
            expect("shards of the database", shards as i64, n)
        })?;
        self.step("collStats", 1, |run| {
            let reply = run.ok(&in_d(on("collStats", "ranged")))?;
            expect("documents", number(&reply, "count"), run.ranged())
        })?;
        self.step("dbStats", 1, |run| {
            let reply = run.ok(&doc! { "dbStats": 1, "$db": "d" })?;
            expect("documents", number(&reply, "objects"), run.ranged() + run.hashed() + 100)
        })?;
        self.step("what sh.status() asks", 1, |run| run.status())
    }
    fn status(&mut self) -> Result<(), String> {
        let reads = ["version", "shards", "mongos", "settings", "databases", "collections", "tags"];
        for coll in reads {
            let mut body = on("find", coll);
            body.push("$db", "config");
            let found = self.all(&body)?.len() as i64;
            if coll == "shards" {
                expect("shards", found, self.n())?;
            }
        }
        let reply = self.admin(doc! { "balancerStatus": 1 })?;
        expect("a mode", at(&reply, "mode").is_some(), true)?;
        let mut by = doc! { "_id": "$shard" };
        by.push("n", doc! { "$sum": 1 });
        let mut body = aggregate("chunks", vec![doc! { "$group": by }]);
        body.push("$db", "config");
        expect("shards with chunks", self.all(&body)?.len() as i64, self.n())?;
        let mut first = on("find", "chunks");
        first.push("limit", LIMIT);
        first.push("$db", "config");
        expect("chunks", batch(&self.ok(&first)?, "firstBatch").len() as i64, LIMIT)
    }
}
