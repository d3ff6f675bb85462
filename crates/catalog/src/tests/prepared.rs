use crate::apply::entry::Applying;
use crate::observer::{OpObserver, TxnAborted, TxnCommitted, TxnPrepared};
use crate::testing::{World, ns};
use crate::write::op::WriteOp;
use crate::{TxnId, WriteUnit};
use pando_base::{OpTime, SessionId, Timestamp};
use pando_bson::{Binary, Bson, DocBuf, Document, RawDoc, doc};
use pando_oplog::entry::{Chain, EntryView};
use pando_storage::ReadAt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

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
        let id = (pando_base::SessionId::of([7; 16]), 1);
        let mut unit = w.catalog.begin_transaction(ReadAt::Latest, id).unwrap();
        let coll = w.catalog.lookup(&ns("db.c")).unwrap();
        w.catalog.insert_within(&mut unit, &WriteOp::default(), &coll, &doc! { "_id": 2 }.to_raw()).unwrap();
        let at = ran.clone();
        unit.after_commit(move |ts| at.store(ts.0, Relaxed));
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

/// Writes down what it is told.
#[derive(Default)]
struct Scribe(Mutex<Vec<String>>);

impl Scribe {
    fn on(w: &World) -> Arc<Scribe> {
        let scribe = Arc::new(Scribe::default());
        w.catalog.add_observer(scribe.clone());
        scribe
    }
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl OpObserver for Scribe {
    fn watches_transactions(&self) -> bool {
        true
    }
    fn prepared(&self, e: &TxnPrepared<'_>) {
        self.note(format!("prepared {:?} {}", e.origin, e.writes.operations));
    }
    fn committed(&self, e: &TxnCommitted<'_>) {
        self.note(format!("committed {:?} {}", e.origin, e.writes.operations));
    }
    fn aborted(&self, e: &TxnAborted<'_>) {
        self.note(format!("aborted {:?} {}", e.origin, e.writes.operations));
    }
}

fn lsid() -> DocBuf {
    doc! { "id": Bson::Binary(Binary { subtype: 4, bytes: vec![7; 16] }) }.to_raw()
}
fn id() -> TxnId {
    (SessionId::of([7; 16]), 1)
}
/// Inserts document 2; `ran` counts what follows the commit.
fn open(w: &World, ran: &Arc<AtomicU64>) -> WriteUnit {
    let mut unit = w.catalog.begin_transaction(ReadAt::Latest, id()).unwrap();
    let coll = w.catalog.lookup(&ns("db.c")).unwrap();
    w.catalog.insert_within(&mut unit, &WriteOp::default(), &coll, &doc! { "_id": 2 }.to_raw()).unwrap();
    let ran = ran.clone();
    unit.after_commit(move |_| {
        ran.fetch_add(1, Relaxed);
    });
    unit
}
fn prepare(w: &World, ran: &Arc<AtomicU64>) -> OpTime {
    w.run(w.catalog.prepare_transaction(open(w, ran), &lsid(), id(), Vec::new(), None)).unwrap()
}

/// This node prepared, and stepped down; the next primary decides.
#[test]
fn a_decision_that_comes_through_the_log_is_followed_and_told_like_this_nodes_own() {
    for commits in [true, false] {
        let w = World::new();
        w.insert("db.c", vec![doc! { "_id": 1 }]);
        let scribe = Scribe::on(&w);
        let ran = Arc::new(AtomicU64::new(0));
        let prepared = prepare(&w, &ran);
        w.catalog.yield_prepared();
        let o: Document = match commits {
            true => doc! { "commitTransaction": 1, "commitTimestamp": prepared.ts },
            false => doc! { "abortTransaction": 1 },
        };
        let slot = w.catalog.storage().log().reserve_one();
        let (lsid, mut entry) = (lsid(), Vec::new());
        let chain = Chain { lsid: &lsid, txn_number: 1, prev: prepared };
        chain.append_to(&mut entry, &o.to_raw(), slot.ts(), 2, 0);
        let view = EntryView::parse(RawDoc::trusted(&entry)).unwrap();
        drop(slot);
        w.catalog.apply_entry(&view, Applying::Steady).unwrap();
        let (word, times) = if commits { ("committed", 1) } else { ("aborted", 0) };
        assert_eq!(scribe.take(), ["prepared Command 1".to_owned(), format!("{word} Entry 1")]);
        assert_eq!(ran.load(Relaxed), times);
        assert_eq!(w.catalog.prepared_count(), 0);
    }
}

#[test]
fn a_transaction_that_is_dropped_is_told_as_aborted_unless_it_wrote_nothing() {
    let w = World::new();
    w.insert("db.c", vec![doc! { "_id": 1 }]);
    let scribe = Scribe::on(&w);
    let ran = Arc::new(AtomicU64::new(0));
    drop(open(&w, &ran));
    drop(w.catalog.begin_transaction(ReadAt::Latest, id()).unwrap());
    assert_eq!(scribe.take(), ["aborted Command 1"]);
    let unit = open(&w, &ran);
    let done = w.run(w.catalog.commit_transaction(unit, &lsid(), id(), std::time::Duration::ZERO)).unwrap();
    assert_eq!((done.operations, ran.load(Relaxed)), (1, 1));
    assert_eq!(scribe.take(), ["committed Command 1"]);
}

#[test]
fn what_is_prepared_at_the_end_of_the_log_is_told_at_the_next_start() {
    let w = World::new();
    w.insert("db.c", vec![doc! { "_id": 1 }]);
    let ran = Arc::new(AtomicU64::new(0));
    let prepared = prepare(&w, &ran);
    let w = w.reopen();
    let scribe = Scribe::on(&w);
    w.catalog.restore_prepared(prepared.ts).unwrap();
    assert_eq!(scribe.take(), ["prepared Replay 1"]);
    // A rollback forgets it without a word, and makes it anew.
    w.catalog.forget_prepared();
    w.catalog.restore_prepared(prepared.ts).unwrap();
    assert_eq!(scribe.take(), ["prepared Replay 1"]);
    w.catalog.decide_prepared(&lsid(), &id(), Some(prepared.ts)).unwrap();
    assert_eq!(scribe.take(), ["committed Command 1"]);
    assert_eq!((w.ids("db.c").len(), ran.load(Relaxed)), (2, 0), "what followed went with the process");
}
