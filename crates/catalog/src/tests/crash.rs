//! Random work, crashes at random points: what is there afterwards is what the log says, in records, indexes and
//! counts, and nothing that was synced is lost.

use crate::testing::{World, ns};
use crate::{DropWhich, Uninterrupted};
use pando_bson::{Bson, Document, RawDoc, doc};
use pando_oplog::entry::{EntryView, OpType};
use pando_storage::testing::SeededRng;
use std::collections::BTreeMap;

/// Collections as the log tells them, by UUID: name and documents by `_id`.
#[derive(Default)]
struct Model(BTreeMap<pando_base::Uuid, (String, BTreeMap<i64, Document>)>);

impl Model {
    fn from_log(w: &World) -> Model {
        let mut m = Model::default();
        let mut cursor = w.catalog.storage().log().read(std::ops::Bound::Unbounded, false);
        while let Some((_, entry)) = cursor.next().unwrap() {
            m.apply(&EntryView::parse(RawDoc::trusted(&entry)).unwrap());
        }
        m
    }
    fn apply(&mut self, e: &EntryView<'_>) {
        let Some(uuid) = e.ui else { return };
        if e.op == OpType::Command {
            let first = e.command().unwrap();
            match first.name() {
                "create" => {
                    let db = e.ns.split_once('.').unwrap().0;
                    let name = format!("{db}.{}", first.value().as_str().unwrap());
                    self.0.insert(uuid, (name, BTreeMap::new()));
                }
                "drop" => {
                    self.0.remove(&uuid);
                }
                "renameCollection" => {
                    if let Some(pando_bson::Value::Binary { bytes, .. }) = e.o.get("dropTarget") {
                        self.0.remove(&pando_base::Uuid::from_slice(bytes).unwrap());
                    }
                    self.0.get_mut(&uuid).unwrap().0 = e.o.get("to").unwrap().as_str().unwrap().to_owned();
                }
                _ => {}
            }
            return;
        }
        let Some((_, docs)) = self.0.get_mut(&uuid) else {
            panic!("a write to a collection that is not there")
        };
        let id = e.document_id().unwrap().value().as_i64().unwrap();
        match e.op {
            OpType::Insert => assert!(docs.insert(id, Document::from(e.o)).is_none()),
            OpType::Delete => assert!(docs.remove(&id).is_some()),
            OpType::Update => {
                let old = docs.get(&id).unwrap().to_raw();
                let new = match e.diff() {
                    Some(d) => Document::from(&*pando_oplog::diff::apply(&old, d).unwrap()),
                    None => Document::from(e.o),
                };
                docs.insert(id, new);
            }
            _ => {}
        }
    }
    fn compare(&self, w: &World, seed: u64) {
        let snap = w.catalog.snapshot();
        let mut there: Vec<String> = snap.collections("db").iter().map(|c| c.ns.to_string()).collect();
        there.sort();
        let mut expected: Vec<String> = self.0.values().map(|(name, _)| name.clone()).collect();
        expected.sort();
        assert_eq!(there, expected, "seed {seed}");
        for (uuid, (name, docs)) in &self.0 {
            let coll = snap.by_uuid(*uuid).unwrap();
            assert_eq!(coll.ns.as_str(), name, "seed {seed}");
            let found: BTreeMap<i64, Document> = w
                .docs(name)
                .into_iter()
                .map(|d| (d.get("_id").and_then(|v| v.as_i64()).unwrap(), d))
                .collect();
            assert_eq!(&found, docs, "seed {seed} {name}");
            let report = w.run(w.catalog.validate(&coll.ns, crate::Extent::Counted, &Uninterrupted)).unwrap();
            assert!(report.is_valid(), "seed {seed} {name}: {:?}", report.errors);
            assert_eq!(
                (report.records, report.fast_count),
                (docs.len() as u64, docs.len() as u64),
                "seed {seed} {name}"
            );
        }
    }
}

struct Life<'r> {
    rng: &'r SeededRng,
    next_id: i64,
}

impl Life<'_> {
    fn name(&self) -> String {
        format!("db.c{}", self.rng.below(3))
    }
    fn document(&mut self) -> Document {
        self.next_id += 1;
        let n = self.rng.below(10) as i32;
        let b = if n < 2 { Bson::Array(vec![Bson::Int32(n), Bson::Int32(n + 1)]) } else { Bson::Int32(n) };
        doc! { "_id": self.next_id, "a": n, "b": b, "t": "some text that makes documents longer than diffs" }
    }
    fn some_id(&self, w: &World, name: &str) -> Option<i64> {
        let ids = w.ids(name);
        if ids.is_empty() { None } else { ids.get(self.rng.below(ids.len() as u64) as usize).copied() }
    }
    /// One random thing. Failures that a user could meet too are fine; what counts is the state afterwards.
    fn act(&mut self, w: &World) {
        let name = self.name();
        match self.rng.below(20) {
            0..=6 => {
                let docs = (0..1 + self.rng.below(4)).map(|_| self.document()).collect();
                w.try_insert(&name, docs);
            }
            7..=10 => {
                if let Some(id) = self.some_id(w, &name) {
                    let mut d = self.document();
                    d.set("_id", id);
                    let _ = w.update(&name, id as i32, d);
                }
            }
            11..=12 => {
                if let Some(id) = self.some_id(w, &name) {
                    let _ = w.delete(&name, id as i32);
                }
            }
            13 => {
                let _ = w.index(&name, doc! { "key": { "a": 1 }, "name": "a" });
            }
            14 => {
                let _ = w.index(&name, doc! { "key": { "b": -1, "a": 1 }, "name": "ba" });
            }
            15 => {
                let _ = w.index(&name, doc! { "key": { "t": 1, "_id": 1 }, "name": "u", "unique": true });
            }
            16 => {
                let _ = w.run(w.catalog.drop_indexes(&ns(&name), DropWhich::Name("a")));
            }
            17 => {
                let _ = w.run(w.catalog.drop_collection(&ns(&name)));
            }
            18 => {
                let to = self.name();
                let _ = w.run(w.catalog.rename_collection(&ns(&name), &ns(&to), true, &Uninterrupted));
            }
            _ => w.catalog.storage().log().flush_once().unwrap(),
        }
    }
}

fn crash_round(seed: u64) {
    let rng = SeededRng::new(seed);
    let mut w = World::new();
    let mut life = Life { rng: &rng, next_id: 0 };
    for _ in 0..4 {
        let mut synced = 0;
        for _ in 0..rng.below(60) {
            life.act(&w);
            if rng.below(12) == 0 {
                w.catalog.storage().log().flush_once().unwrap();
                synced = w.log().len();
                w.catalog.storage().set_stable(w.catalog.storage().all_durable());
                if rng.below(2) == 0 {
                    w.catalog.storage().set_oldest(w.catalog.storage().stable());
                }
                if rng.below(3) == 0 {
                    // The machine dies somewhere inside the checkpoint.
                    w.disk.as_ref().unwrap().fail_write_in(1 + rng.below(12));
                    if w.catalog.checkpoint().is_err() {
                        break;
                    }
                    w.disk.as_ref().unwrap().fail_write_in(u64::MAX);
                } else {
                    w.catalog.checkpoint().unwrap();
                }
            }
        }
        let before = w.log();
        w.disk.as_ref().unwrap().crash();
        w = w.reopen_as_is();
        let after = w.log();
        assert!(after.len() >= synced && before.starts_with(&after), "seed {seed}: synced entries are lost");
        Model::from_log(&w).compare(&w, seed);
        w.run(w.catalog.resume_builds()).unwrap();
        for _ in 0..20 {
            w.tasks.turn();
        }
    }
}

#[test]
fn what_is_there_after_a_crash_is_what_the_log_says() {
    for seed in 1..=40 {
        crash_round(seed);
    }
}
