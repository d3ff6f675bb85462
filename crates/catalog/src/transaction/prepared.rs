//! Prepared transactions of this node, whatever its role (T-PREP).
//!
//! ```text
//!   prepare entry ──► undecided unit, its keys taken ──► commit entry: rows appear │ abort entry: nothing
//!        primary: written here, locks held                secondary: applied, no locks
//! ```
//! A member that follows spreads the writes over its workers; each prepares its share, one decision ends all of them.
//! Nothing but the log's word ends one. A step-down yields its locks, a step-up takes them again; a start, a rollback
//! and an initial sync make the undecided ones anew from their entries when all others are applied.

use crate::Catalog;
use crate::apply::entry::Applying;
use crate::apply::group::Group;
use crate::schema::write_guard::WriteGuard;
use crate::transaction::prepared_table::{About, Prepared};
use crate::write::array_marks::Marks;
use crate::write::transaction_event::{Origin, TxnAborted, TxnCommitted, TxnId, TxnPrepared, TxnWrites};
use crate::write::undecided::Undecided;
use crate::write::unit::WriteUnit;
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_oplog::entry::{Chain, EntryView};
use pando_oplog::session::lsid_of;
use pando_storage::{Decision, Ident, ReadAt};
use std::ops::RangeInclusive;
use std::time::Duration;

/// What one worker has prepared of a transaction.
pub struct Share {
    unit: Undecided,
    writes: TxnWrites,
}

/// One of them, as it is shown.
pub struct PreparedView {
    pub id: TxnId,
    pub at: OpTime,
    /// Monotonic: when it was prepared here.
    pub since: Duration,
    pub about: Option<About>,
    /// Shares that one decision ends.
    pub shares: usize,
}

/// Which transaction an entry belongs to.
pub(crate) fn id_of(entry: &RawDoc) -> Option<TxnId> {
    Some((lsid_of(entry.get("lsid")?.as_doc()?)?, entry.get("txnNumber")?.as_i64()?))
}

fn commit_timestamp(e: &EntryView<'_>) -> Result<Timestamp> {
    match e.o.get("commitTimestamp") {
        Some(Value::Timestamp(ts)) => Ok(ts),
        _ => Err(Error::internal("a commitTransaction entry without commitTimestamp")),
    }
}

impl Catalog {
    /// Prepares an open transaction: its entries are in the log when this returns.
    pub async fn prepare_transaction(
        &self,
        mut unit: WriteUnit,
        lsid: &RawDoc,
        id: TxnId,
        held: Vec<WriteGuard>,
        about: Option<About>,
    ) -> Result<OpTime> {
        if unit.made_collections() {
            return Err(Error::new(
                ErrorCode::OperationNotSupportedInTransaction,
                "Cannot create new collections inside distributed transactions",
            ));
        }
        let marks = unit.take_marks();
        if !marks.is_empty() {
            // Rows of the catalog must not be undecided: others may have to write them.
            unit.txn.give_back(Ident::CATALOG);
            self.write_marks_early(marks).await?;
        }
        let (unit, last, writes) = unit.prepare_collected(lsid, id.1)?;
        self.keep_prepared(
            id,
            Prepared { unit, last, since: self.mono(), writes, held, about },
            Origin::Command,
        );
        Ok(last)
    }

    fn keep_prepared(&self, id: TxnId, prepared: Prepared, origin: Origin) {
        let (at, writes) = (prepared.last, prepared.writes.clone());
        self.0.prepared.lock().insert(id, prepared);
        self.tell_txn(|observers| {
            let event = TxnPrepared { id: &id, origin, at, writes: &writes };
            observers.iter().for_each(|o| o.prepared(&event));
        });
    }
    fn tell_committed(
        &self,
        id: &TxnId,
        origin: Origin,
        prepare: Timestamp,
        commit: Timestamp,
        at: OpTime,
        writes: impl FnOnce() -> TxnWrites,
    ) {
        self.tell_txn(|observers| {
            let writes = &writes();
            let event = TxnCommitted { id, origin, prepare: Some(prepare), commit, at, writes };
            observers.iter().for_each(|o| o.committed(&event));
        });
    }
    fn tell_aborted(
        &self,
        id: &TxnId,
        origin: Origin,
        prepare: Timestamp,
        at: OpTime,
        writes: impl FnOnce() -> TxnWrites,
    ) {
        self.tell_txn(|observers| {
            let writes = &writes();
            let event = TxnAborted { id, origin, prepare: Some(prepare), at: Some(at), writes };
            observers.iter().for_each(|o| o.aborted(&event));
        });
    }

    fn take_prepared(&self, id: &TxnId) -> Result<Prepared> {
        self.0.prepared.lock().remove(id).ok_or_else(|| {
            let text = format!("Transaction with {{ txnNumber: {} }} is not prepared here.", id.1);
            Error::new(ErrorCode::NoSuchTransaction, text)
        })
    }

    /// The decision of a primary. `commit` is not below the prepare timestamp; `None` gives the transaction up.
    pub fn decide_prepared(&self, lsid: &RawDoc, id: &TxnId, commit: Option<Timestamp>) -> Result<OpTime> {
        let _entered = self.gate().enter()?;
        let log = self.storage().log();
        if let Some(e) = log.poisoned() {
            return Err(e);
        }
        let prepared = self.take_prepared(id)?;
        if let Some(commit) = commit {
            log.advance_clock(commit);
        }
        let slot = log.reserve_one();
        let at = OpTime::new(slot.ts(), self.term());
        let o = decision_doc(commit);
        let chain = Chain { lsid, txn_number: id.1, prev: prepared.last };
        let mut entry = Vec::with_capacity(256);
        chain.append_to(&mut entry, &o, at.ts, at.t, self.env().clock.wall_ms());
        let decision = Decision::Here(slot, RawDoc::trusted(&entry));
        let (origin, prepare) = (Origin::Command, prepared.last.ts);
        match commit {
            Some(commit) => {
                prepared.unit.commit(commit, decision, at.ts)?;
                self.tell_committed(id, origin, prepare, commit, at, || prepared.writes);
            }
            None => {
                prepared.unit.abort(decision);
                self.tell_aborted(id, origin, prepare, at, || prepared.writes);
            }
        }
        Ok(at)
    }

    /// An `applyOps` entry that prepares, on a member that follows: all of it as one share.
    pub(crate) fn apply_prepare(&self, e: &EntryView<'_>, origin: Origin) -> Result<()> {
        let parts = self.earlier_parts(e.doc)?;
        let parts: Vec<_> =
            parts.iter().map(|p| EntryView::parse(RawDoc::trusted(p))).collect::<Result<_>>()?;
        let first = parts.first().map_or(e.ts, |p| p.ts);
        let operations = parts.iter().chain([e]).flat_map(|p| p.inner().into_iter().flatten());
        let marks = Marks::default();
        let share = self.prepare_share(operations, first..=e.ts, &marks)?;
        self.hold_shares(e, [share], &marks, origin)
    }
    /// One worker's operations of a transaction whose entries lie between these timestamps. No document may be in two
    /// shares.
    pub fn prepare_share<'a>(
        &self,
        operations: impl Iterator<Item = Result<EntryView<'a>>>,
        entries: RangeInclusive<Timestamp>,
        marks: &Marks,
    ) -> Result<Share> {
        let txn = self.storage().begin(ReadAt::Applied)?;
        let unit = WriteUnit::applied(self, txn, Timestamp::ZERO, Some(marks.clone()));
        let mut group = Group::new(self, Applying::Steady, unit);
        let mut writes = TxnWrites::default();
        for op in operations {
            let op = op?;
            group.apply(&EntryView { ts: *entries.end(), ..op })?;
            writes.add(&op);
        }
        let unit = group.into_unit().prepare_applied(*entries.start(), *entries.end())?;
        Ok(Share { unit, writes })
    }
    /// From now on the shares of this entry are one transaction, which one decision ends.
    pub fn hold_prepared(
        &self,
        e: &EntryView<'_>,
        shares: impl IntoIterator<Item = Share>,
        marks: &Marks,
    ) -> Result<()> {
        self.hold_shares(e, shares, marks, Origin::Entry)
    }
    fn hold_shares(
        &self,
        e: &EntryView<'_>,
        shares: impl IntoIterator<Item = Share>,
        marks: &Marks,
        origin: Origin,
    ) -> Result<()> {
        let id = id_of(e.doc).ok_or_else(|| Error::internal("a prepare entry without session"))?;
        let mut shares = shares.into_iter();
        let nothing = || Error::internal("a prepare entry without a share");
        let Share { mut unit, mut writes } = shares.next().ok_or_else(nothing)?;
        for share in shares {
            unit.join(share.unit)?;
            writes.join(share.writes);
        }
        self.finish_batch(e.ts, marks)?;
        let (last, since) = (e.op_time(), self.mono());
        let prepared = Prepared { unit, last, since, writes, held: Vec::new(), about: None };
        self.keep_prepared(id, prepared, origin);
        Ok(())
    }

    /// A `commitTransaction` entry: of what is prepared here, or, while nothing is yet, of what its entries say.
    pub(crate) fn apply_commit(&self, e: &EntryView<'_>, why: Applying) -> Result<()> {
        let id = id_of(e.doc).ok_or_else(|| Error::internal("a commit entry without session"))?;
        let commit = commit_timestamp(e)?;
        let (origin, at) = (why.into(), e.op_time());
        if let Ok(prepared) = self.take_prepared(&id) {
            prepared.unit.commit(commit, Decision::At(e.ts), e.ts)?;
            self.tell_committed(&id, origin, prepared.last.ts, commit, at, || prepared.writes);
            return Ok(());
        }
        let (first, prepare) = self.apply_whole(e, why)?;
        self.storage().replayed_decision(first, prepare, Some(commit), e.ts);
        self.tell_committed(&id, origin, prepare, commit, at, || self.writes_of_chain(e));
        Ok(())
    }
    pub(crate) fn apply_abort(&self, e: &EntryView<'_>, why: Applying) -> Result<()> {
        let id = id_of(e.doc).ok_or_else(|| Error::internal("an abort entry without session"))?;
        let (origin, at) = (why.into(), e.op_time());
        if let Ok(prepared) = self.take_prepared(&id) {
            prepared.unit.abort(Decision::At(e.ts));
            self.tell_aborted(&id, origin, prepared.last.ts, at, || prepared.writes);
            return Ok(());
        }
        // A log may begin after entries that nobody needs.
        if let Ok(first) = self.first_part(e.doc) {
            self.storage().replayed_decision(first.ts, first.ts, None, e.ts);
        }
        let prepare = e.doc.get_path("prevOpTime.ts");
        let prepare = if let Some(Value::Timestamp(ts)) = prepare { ts } else { Timestamp::ZERO };
        self.tell_aborted(&id, origin, prepare, at, || self.writes_of_chain(e));
        Ok(())
    }

    /// After a recovery: the transaction whose prepare entry is at `at` is undecided.
    pub fn restore_prepared(&self, at: Timestamp) -> Result<()> {
        let mut history = crate::TransactionHistory::new(self.storage().log(), at);
        let lost = || Error::internal(format!("the log lacks the prepare entry of a transaction at {at}"));
        let entry = history.next()?.ok_or_else(lost)?;
        let entry = EntryView::parse(RawDoc::trusted(&entry))?;
        if !entry.o.get("prepare").is_some_and(|v| v.is_truthy()) {
            return Err(lost());
        }
        self.apply_prepare(&entry, Origin::Replay)
    }
    /// Before a rollback: whatever is prepared is made anew from the log afterwards, which must not lose anything until
    /// then.
    pub fn forget_prepared(&self) {
        self.storage().hold_log(true);
        let all = std::mem::take(&mut *self.0.prepared.lock());
        drop(all);
    }
    pub fn prepared(&self) -> Vec<PreparedView> {
        let table = self.0.prepared.lock();
        let view = |(id, p): (&TxnId, &Prepared)| PreparedView {
            id: *id,
            at: p.last,
            since: p.since,
            about: p.about.clone(),
            shares: p.unit.units(),
        };
        table.iter().map(view).collect()
    }
    pub fn prepared_count(&self) -> usize {
        self.0.prepared.lock().len()
    }
    /// A step-down: members that follow hold no locks for them (T-PREP-12).
    pub fn yield_prepared(&self) {
        let held: Vec<_> = self.0.prepared.lock().values_mut().map(|p| std::mem::take(&mut p.held)).collect();
        drop(held);
    }
    /// A step-up, before anything else is written: definitions stand still until they are decided.
    pub fn lock_prepared(&self) -> Result<()> {
        let mut table = self.0.prepared.lock();
        for p in table.values_mut().filter(|p| p.held.is_empty()) {
            for uuid in &p.writes.collections {
                let Some(coll) = self.lookup_uuid(*uuid) else { continue };
                p.held.extend(self.try_write_lock(&coll.ns)?);
            }
        }
        Ok(())
    }
}

fn decision_doc(commit: Option<Timestamp>) -> DocBuf {
    let mut b = DocBuilder::new();
    match commit {
        Some(at) => b.i32("commitTransaction", 1).timestamp("commitTimestamp", at),
        None => b.i32("abortTransaction", 1),
    };
    b.finish()
}
