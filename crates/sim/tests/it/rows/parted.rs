//! Sets whose history has parted, and what is looked at in them.

use pando_bson::{Bson, Document, RawDoc, doc};
use pando_sim::rig::{Rig, words::*};

/// A primary alone with its writes, and the one that the others elected.
pub(super) struct Parted {
    pub(super) rig: Rig,
    pub(super) old: usize,
    pub(super) new: usize,
}

impl Parted {
    /// `before` happens in the whole set, `alone` at the old primary, `beside` at the new one.
    pub(super) fn after(
        seed: u64,
        before: impl FnOnce(&Rig, usize),
        alone: impl FnOnce(&Rig, usize),
        beside: impl FnOnce(&Rig, usize),
    ) -> Parted {
        Parted::after_in(Rig::of(seed, 3), before, alone, beside)
    }
    pub(super) fn after_in(
        rig: Rig,
        before: impl FnOnce(&Rig, usize),
        alone: impl FnOnce(&Rig, usize),
        beside: impl FnOnce(&Rig, usize),
    ) -> Parted {
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
    pub(super) fn usual(seed: u64) -> Parted {
        Parted::usual_in(Rig::of(seed, 3))
    }
    pub(super) fn usual_in(rig: Rig) -> Parted {
        Parted::after_in(
            rig,
            |rig, p| drop(rig.ok(p, insert(1, w(3)))),
            |rig, old| drop(rig.ok(old, insert(2, w(1)))),
            |rig, new| drop(rig.ok(new, insert(3, majority()))),
        )
    }
    pub(super) fn heal_and_settle(&self) {
        self.rig.heal();
        self.settle();
    }
    /// Until the old primary has the new one's history.
    pub(super) fn settle(&self) {
        self.rig.until("the old primary to follow", |rig| {
            rig.nodes[self.old].exit().is_none() && same(rig, self.old, self.new)
        });
    }
    /// Bytes of the rollback files of the old primary, by path.
    pub(super) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let disk = &self.rig.nodes[self.old].disk;
        let paths = disk.paths().into_iter().filter(|p| p.starts_with("rollback/"));
        paths.map(|p| (p.clone(), disk.bytes(&p))).collect()
    }
}

pub(super) fn hash(rig: &Rig, i: usize) -> Option<Bson> {
    rig.ask(i, anywhere(doc! { "dbHash": 1 })).get("md5").cloned()
}
pub(super) fn same(rig: &Rig, a: usize, b: usize) -> bool {
    let hello = rig.hello(a);
    hello.get("secondary").is_some_and(Bson::is_truthy) && hash(rig, a) == hash(rig, b)
}
pub(super) fn documents(mut bytes: &[u8]) -> Vec<Document> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let len = u32::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        all.push(Document::from(RawDoc::trusted(&bytes[..len])));
        bytes = &bytes[len..];
    }
    all
}
pub(super) fn switch(rig: &Rig, i: usize, point: &str, on: bool) {
    let mode = doc! { "mode": if on { "alwaysOn" } else { "off" } }.to_raw();
    let server = rig.nodes[i].server().expect("it runs");
    server.instance.fail_points.configure(point, &mode).expect("a known fail point");
}
pub(super) fn hangs_at(rig: &Rig, i: usize, point: &str) -> bool {
    rig.nodes[i].server().is_some_and(|s| s.instance.fail_points.get(point).unwrap().times_entered() > 0)
}
pub(super) fn rbid(rig: &Rig, i: usize) -> i64 {
    number(&rig.admin(i, doc! { "replSetGetRBID": 1 }), "rbid")
}

/// The members' logs as (timestamp, term), in order.
pub(super) fn log_of(rig: &Rig, i: usize) -> Vec<(pando_base::Timestamp, i64)> {
    let server = rig.nodes[i].server().expect("it runs");
    let mut cursor = server.storage.log().read(std::ops::Bound::Unbounded, false);
    let mut all = Vec::new();
    while let Some((ts, entry)) = cursor.next().unwrap() {
        let term = RawDoc::trusted(&entry).get("t").and_then(|v| v.as_i64()).unwrap_or(-1);
        all.push((ts, term));
    }
    all
}

pub(super) fn bulk(from: i32, n: i32, concern: Document) -> Document {
    let many: Vec<Bson> = (from..from + n).map(|i| doc! { "_id": i }.into()).collect();
    let mut bulk = doc! { "insert": "c" };
    bulk.push("documents", many);
    bulk.push("writeConcern", concern);
    bulk
}

pub(super) fn make_primary(rig: &Rig, i: usize) {
    rig.until("the wanted primary", |rig| {
        rig.is_primary(i) || {
            rig.ask(i, doc! { "replSetStepUp": 1, "$db": "admin" });
            false
        }
    });
}
