use crate::testing::{World, ns};
use crate::write::op::WriteOp;
use pando_base::Timestamp;
use pando_bson::doc;
use pando_storage::ReadAt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a write leaves to be done after its commit is done after the decision, with its timestamp; never after an abort.
#[test]
fn what_follows_a_commit_follows_the_decision_of_a_prepared_transaction() {
    for commits in [true, false] {
        let w = World::new();
        w.insert("db.c", vec![doc! { "_id": 1 }]);
        let lsid =
            doc! { "id": pando_bson::Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![7; 16] }) };
        let lsid = lsid.to_raw();
        let ran = Arc::new(AtomicU64::new(0));
        let mut unit = w.catalog.begin_transaction(ReadAt::Latest).unwrap();
        let coll = w.catalog.lookup(&ns("db.c")).unwrap();
        w.catalog.insert_within(&mut unit, &WriteOp::default(), &coll, &doc! { "_id": 2 }.to_raw()).unwrap();
        let at = ran.clone();
        unit.after_commit(move |ts| at.store(ts.0, Relaxed));
        let id = (pando_base::SessionId::of([7; 16]), 1);
        let prepared = w.run(w.catalog.prepare_transaction(unit, &lsid, id, Vec::new(), None)).unwrap();
        assert_eq!(ran.load(Relaxed), 0, "nothing is decided yet");
        let decision = w.catalog.decide_prepared(&lsid, &id, commits.then_some(prepared.ts)).unwrap();
        let expected = if commits { decision.ts } else { Timestamp::ZERO };
        assert_eq!(Timestamp(ran.load(Relaxed)), expected);
        assert_eq!(w.ids("db.c").len(), if commits { 2 } else { 1 });
    }
}

/// The same where other members' entries are applied: each worker's share brings what follows its writes.
#[test]
fn what_follows_a_commit_follows_the_decision_of_joined_shares() {
    let w = World::new();
    w.insert("db.c", vec![doc! { "_id": 1 }]);
    let coll = w.catalog.lookup(&ns("db.c")).unwrap();
    let ran = Arc::new(AtomicU64::new(0));
    let log = w.catalog.storage().log();
    let slot = log.reserve_one();
    let at = slot.ts();
    let mut shares = [2, 3].map(|id| {
        let txn = w.catalog.storage().begin(ReadAt::Applied).unwrap();
        let mut unit = crate::write::unit::WriteUnit::applied(&w.catalog, txn, at, Some(Default::default()));
        w.catalog.insert_within(&mut unit, &WriteOp::default(), &coll, &doc! { "_id": id }.to_raw()).unwrap();
        let ran = ran.clone();
        unit.after_commit(move |_| {
            ran.fetch_add(1, Relaxed);
        });
        Some(unit.prepare_applied(at, at).unwrap())
    });
    let mut all = shares[0].take().unwrap();
    all.join(shares[1].take().unwrap()).unwrap();
    drop(slot);
    all.commit(at, pando_storage::Decision::At(at), at).unwrap();
    assert_eq!(ran.load(Relaxed), 2);
}
