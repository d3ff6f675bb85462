//! What was written where no majority was, and how it is taken back.

use pando_bson::{Bson, Document, RawDoc, doc};
use pando_sim::Exit;
use pando_sim::rig::{Rig, words::*};

/// A primary alone with its writes, and the one that the others elected.
struct Parted {
    rig: Rig,
    old: usize,
    new: usize,
}

impl Parted {
    /// `before` happens in the whole set, `alone` at the old primary, `beside` at the new one.
    fn after(
        seed: u64,
        before: impl FnOnce(&Rig, usize),
        alone: impl FnOnce(&Rig, usize),
        beside: impl FnOnce(&Rig, usize),
    ) -> Parted {
        let rig = Rig::of(seed, 3);
        let old = rig.primary();
        before(&rig, old);
        rig.isolate(old);
        alone(&rig, old);
        let elected = |rig: &Rig| rig.others(old).into_iter().find(|i| rig.is_primary(*i));
        rig.until("another primary", |rig| elected(rig).is_some());
        let new = elected(&rig).unwrap();
        beside(&rig, new);
        Parted { rig, old, new }
    }
    /// The usual: document 1 everywhere, 2 only at the old primary, 3 only at the new one.
    fn usual(seed: u64) -> Parted {
        Parted::after(
            seed,
            |rig, p| drop(rig.ok(p, insert(1, w(3)))),
            |rig, old| drop(rig.ok(old, insert(2, w(1)))),
            |rig, new| drop(rig.ok(new, insert(3, majority()))),
        )
    }
    fn heal_and_settle(&self) {
        self.rig.heal();
        self.settle();
    }
    /// Until the old primary has the new one's history.
    fn settle(&self) {
        self.rig.until("the old primary to follow", |rig| {
            rig.nodes[self.old].exit().is_none() && same(rig, self.old, self.new)
        });
    }
    /// Bytes of the rollback files of the old primary, by path.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let disk = &self.rig.nodes[self.old].disk;
        let paths = disk.paths().into_iter().filter(|p| p.starts_with("rollback/"));
        paths.map(|p| (p.clone(), disk.bytes(&p))).collect()
    }
}

fn hash(rig: &Rig, i: usize) -> Option<Bson> {
    rig.ask(i, anywhere(doc! { "dbHash": 1 })).get("md5").cloned()
}
fn same(rig: &Rig, a: usize, b: usize) -> bool {
    let hello = rig.hello(a);
    hello.get("secondary").is_some_and(Bson::is_truthy) && hash(rig, a) == hash(rig, b)
}
fn documents(mut bytes: &[u8]) -> Vec<Document> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let len = u32::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        all.push(Document::from(RawDoc::trusted(&bytes[..len])));
        bytes = &bytes[len..];
    }
    all
}
fn uuid_of(rig: &Rig, i: usize, name: &str) -> String {
    let listed = rig.ok(i, anywhere(doc! { "listCollections": 1, "filter": { "name": name } }));
    match at(&listed, "cursor.firstBatch.0.info.uuid") {
        Some(Bson::Binary(b)) => pando_base::Uuid::from_slice(&b.bytes).unwrap().to_string(),
        other => panic!("no uuid: {other:?}"),
    }
}

#[test]
fn documents_that_a_rollback_removes_are_in_bson_files() {
    let mut uuid = String::new();
    let p = Parted::after(
        1,
        |rig, p| {
            rig.ok(p, insert(1, w(3)));
            rig.ok(p, insert(9, w(3)));
            rig.ok(p, doc! { "insert": "d", "documents": [{ "_id": 1 }], "writeConcern": w(3) });
            uuid = uuid_of(rig, p, "c");
        },
        |rig, old| {
            let many: Vec<Bson> = (100..110).map(|i| doc! { "_id": i }.into()).collect();
            let mut bulk = doc! { "insert": "c", "writeConcern": w(1) };
            bulk.push("documents", many);
            rig.ok(old, bulk);
            let update = doc! { "q": { "_id": 1 }, "u": { "$set": { "x": "changed" } } };
            let mut updates = doc! { "update": "c", "writeConcern": w(1) };
            updates.push("updates", vec![Bson::from(update)]);
            rig.ok(old, updates);
            let gone = |id: i32| {
                let mut deletes = doc! { "delete": "c", "writeConcern": w(1) };
                deletes.push("deletes", vec![Bson::from(doc! { "q": { "_id": id }, "limit": 1 })]);
                deletes
            };
            // One that was there before, and one that was not.
            rig.ok(old, gone(9));
            rig.ok(old, gone(105));
        },
        |rig, new| drop(rig.ok(new, insert(3, majority()))),
    );
    p.heal_and_settle();
    assert_eq!(ids(&p.rig.ok(p.old, find("local"))), [1, 3, 9]);
    let files = p.files();
    let [(path, bytes)] = &files[..] else { panic!("{files:?}") };
    let name = path.strip_prefix(&format!("rollback/{uuid}/removed.")).expect(path);
    let (time, number) = name.strip_suffix(".0.bson").map(|t| (t, 0)).expect(path);
    assert_eq!((time.len(), &time[..11], number), (19, "2026-01-01T", 0), "{path}");
    let kept = documents(bytes);
    let expected = [vec![1], (100..105).collect(), (106..110).collect()].concat();
    let got: Vec<i64> = kept.iter().filter_map(|d| d.get("_id")?.as_i64()).collect();
    assert_eq!(got, expected);
    assert_eq!(kept[0].get("x").and_then(Bson::as_str), Some("changed"), "as it was just before");
    let status = p.rig.admin(p.old, doc! { "serverStatus": 1 });
    assert_eq!(number_of(&status, "count"), 1);
    assert_eq!(number_of(&status, "lastDocumentsInFiles"), 10);
    assert!(number_of(&status, "lastEntriesRolledBack") >= 13);
}

fn number_of(status: &Document, field: &str) -> i64 {
    number(status, &format!("metrics.repl.rollback.{field}"))
}

#[test]
fn no_rollback_files_are_written_when_they_are_not_wanted() {
    let p = Parted::usual(2);
    p.rig.admin(p.old, doc! { "setParameter": 1, "createRollbackDataFiles": false });
    p.heal_and_settle();
    assert_eq!(ids(&p.rig.ok(p.old, find("local"))), [1, 3]);
    assert!(p.files().is_empty());
}

#[test]
fn a_member_that_cannot_write_rollback_files_ends_unchanged_and_rolls_back_when_it_can() {
    let mut p = Parted::usual(3);
    p.rig.nodes[p.old].disk.set_full_folder(Some("rollback"));
    p.rig.heal();
    p.rig.until("the end of the process", |rig| rig.nodes[p.old].exit().is_some());
    let Some(Exit::Failed(why)) = p.rig.nodes[p.old].exit() else { panic!("not an error") };
    assert!(
        why.contains("rollback files cannot be written") && why.contains("createRollbackDataFiles"),
        "{why}"
    );
    p.rig.nodes[p.old].disk.set_full_folder(None);
    p.rig.nodes[p.old].boot();
    p.settle();
    let files = p.files();
    let kept: Vec<Document> = files.iter().flat_map(|(_, bytes)| documents(bytes)).collect();
    assert_eq!(kept, [doc! { "_id": 2 }]);
}
