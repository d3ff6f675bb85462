//! One storage unit of work as the write path sees it: rows, their log entries, and what follows the commit.
//!
//! Every write in a unit first takes its timestamp ([`WriteUnit::stamp`]): a slot of the log that stays open until
//! the commit. The rows of that write carry exactly the timestamp of its entry, so that a reader or a checkpoint
//! between two entries of one unit sees what replaying the log up to there gives.

use crate::Catalog;
use crate::catalog::Whose;
use crate::schema::collection::{Collection, Index, Shared};
use crate::schema::durable;
use crate::schema::sizes::Totals;
use crate::write::array_marks::{Marks, PendingMarks};
use crate::write::collected::Collected;
use crate::write::gate::Entered;
use crate::write::observer::{Defined, OpObserver};
use crate::write::op::WriteOp;
use crate::write::undecided::{AfterCommit, Undecided};
use pando_base::panics::{self, poisoned};
use pando_base::{Error, Millis, OpTime, Result, Term, Timestamp};
use pando_bson::RawDoc;
use pando_bson::keystring::KeyBuilder;
use pando_index::KeySet;
use pando_oplog::Entry;
use pando_oplog::entry::{Chain, Identity, Object, OpType, Operation, Session};
use pando_storage::{Mark, Slot, Slots, Txn};
use std::sync::Arc;

/// Where the timestamps of a unit's rows come from.
enum Journal {
    /// Each write takes a slot of the log and leaves an entry in it.
    Logged { reserved: Option<Slots>, open: Option<Slot> },
    /// The rows carry the timestamp of an entry that exists already (recovery, replication). Array marks go to the
    /// collector, when there is one, instead of into the unit.
    Applied { ts: Timestamp, marks: Option<Marks> },
    /// No timestamps, no entries: the `local` database.
    Local,
    /// A multi-document transaction: timestamp and entries come with the commit.
    Collected(Collected),
}

/// An open unit. Dropping it without [`WriteUnit::commit`] undoes everything.
#[must_use]
pub struct WriteUnit {
    pub(crate) catalog: Catalog,
    pub(crate) txn: Txn,
    journal: Journal,
    term: Term,
    wall: Millis,
    /// The entry being built; reused.
    buf: Vec<u8>,
    last: OpTime,
    /// The last entry of the session so far, when this unit has written one.
    session_prev: Option<OpTime>,
    deltas: Vec<(Arc<Shared>, Timestamp, Totals)>,
    marks: Vec<PendingMarks>,
    certain: Vec<Certain>,
    after: Vec<AfterCommit>,
    pub(crate) scratch: Scratch,
    observers: Arc<[Arc<dyn OpObserver>]>,
    /// Last, so that it is dropped last: the unit is over when it leaves the gate.
    entered: Option<Entered>,
}

/// See [`WriteUnit::when_certain`].
type Certain = Box<dyn FnOnce() + Send>;

/// What a prepared unit waits for is its decision, whatever it is for.
fn follow(certain: Vec<Certain>, after: Vec<AfterCommit>) -> Vec<AfterCommit> {
    let certain = certain.into_iter().map(|f| -> AfterCommit { Box::new(|_| f()) });
    certain.chain(after).collect()
}

/// Buffers that one write after another uses.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) builder: KeyBuilder,
    pub(crate) old: KeySet,
    pub(crate) new: KeySet,
}

/// A place in a unit to go back to.
pub struct UnitMark {
    txn: Mark,
    deltas: usize,
    marks: usize,
    certain: usize,
    after: usize,
    last: OpTime,
    session_prev: Option<OpTime>,
    collected: usize,
}

impl WriteUnit {
    pub(crate) fn logged(catalog: &Catalog, txn: Txn, entered: Entered) -> WriteUnit {
        let mut unit = WriteUnit::new(catalog, txn, Journal::Logged { reserved: None, open: None });
        unit.entered = Some(entered);
        unit
    }
    pub(crate) fn for_transaction(
        catalog: &Catalog,
        txn: Txn,
        collected: Collected,
        entered: Entered,
    ) -> WriteUnit {
        let mut unit = WriteUnit::new(catalog, txn, Journal::Collected(collected));
        // It outlives the statement that opens it.
        unit.entered = Some(entered.of_no_operation());
        unit
    }
    pub(crate) fn local(catalog: &Catalog, txn: Txn) -> WriteUnit {
        WriteUnit::new(catalog, txn, Journal::Local)
    }
    pub(crate) fn applied(catalog: &Catalog, mut txn: Txn, ts: Timestamp, marks: Option<Marks>) -> WriteUnit {
        txn.set_commit_ts(ts);
        WriteUnit::new(catalog, txn, Journal::Applied { ts, marks })
    }
    /// The next writes carry the timestamp of another entry.
    pub(crate) fn apply_at(&mut self, at: Timestamp) {
        if let Journal::Applied { ts, .. } = &mut self.journal {
            *ts = at;
            self.txn.set_commit_ts(at);
        }
    }
    /// Array marks are somebody else's business.
    pub(crate) fn defers_marks(&self) -> bool {
        matches!(self.journal, Journal::Applied { marks: Some(_), .. })
    }
    fn new(catalog: &Catalog, txn: Txn, journal: Journal) -> WriteUnit {
        WriteUnit {
            term: catalog.term(),
            wall: catalog.env().clock.wall_ms(),
            catalog: catalog.clone(),
            txn,
            journal,
            buf: Vec::new(),
            last: OpTime::NULL,
            session_prev: None,
            deltas: Vec::new(),
            marks: Vec::new(),
            certain: Vec::new(),
            after: Vec::new(),
            scratch: Scratch::default(),
            observers: catalog.observers(),
            entered: None,
        }
    }
    pub(crate) fn observers(&self) -> Arc<[Arc<dyn OpObserver>]> {
        self.observers.clone()
    }
    pub(crate) fn observe(&mut self, event: &Defined<'_>) -> Result<()> {
        self.observers().iter().try_for_each(|o| o.defined(self, event))
    }

    /// The storage transaction, for reads that must see this unit's own writes.
    pub fn txn(&self) -> &Txn {
        &self.txn
    }
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }
    /// Writes of this unit replay or replicate entries that were checked when they were made.
    pub fn is_applying(&self) -> bool {
        matches!(self.journal, Journal::Applied { .. })
    }
    /// The unit is of a transaction that began before this index was complete: it cannot tell which keys others have there.
    pub(crate) fn precedes(&self, index: &Index) -> bool {
        self.collected().is_some() && index.is_younger_than(self.txn.read_ts())
    }
    /// Whether a collection of the database is there already, beside those that this unit makes.
    pub fn knows_database(&self, db: &str) -> bool {
        !self.catalog.snapshot().collections(db).is_empty()
    }
    /// Its writes have no timestamps before it commits, and are asked about then.
    pub fn is_transaction(&self) -> bool {
        self.collected().is_some()
    }
    /// A definition that was made by another set, of which this one copies a tenant.
    pub fn is_of_other_set(&self) -> bool {
        self.catalog.2 == Whose::OtherSets
    }
    /// A definition of which change streams hear from another shard, or not at all.
    pub(crate) fn is_told_elsewhere(&self) -> bool {
        self.catalog.2 != Whose::Own
    }
    pub fn is_local(&self) -> bool {
        matches!(self.journal, Journal::Local)
    }
    /// The timestamp that the next rows carry; zero in local units and before the first stamp.
    pub fn ts(&self) -> Timestamp {
        match &self.journal {
            Journal::Logged { open, .. } => open.as_ref().map_or(self.last.ts, Slot::ts),
            Journal::Applied { ts, .. } => *ts,
            Journal::Local | Journal::Collected(_) => Timestamp::ZERO,
        }
    }
    pub(crate) fn term(&self) -> Term {
        self.term
    }
    pub(crate) fn collected(&self) -> Option<&Collected> {
        match &self.journal {
            Journal::Collected(c) => Some(c),
            _ => None,
        }
    }
    pub(crate) fn collected_mut(&mut self) -> Result<&mut Collected> {
        match &mut self.journal {
            Journal::Collected(c) => Ok(c),
            _ => Err(Error::internal("a unit of one command is no transaction")),
        }
    }

    /// Reserves the timestamps of the next `n` writes in one go (a vectored insert).
    pub(crate) fn reserve(&mut self, n: usize) {
        if let Journal::Logged { reserved, .. } = &mut self.journal {
            *reserved = Some(self.catalog.storage().log().reserve(n));
        }
    }
    /// Takes the timestamp of the next write. Its entry must follow with [`WriteUnit::log`].
    pub(crate) fn stamp(&mut self) {
        if let Journal::Logged { reserved, open } = &mut self.journal {
            let slot = reserved
                .as_mut()
                .and_then(Iterator::next)
                .unwrap_or_else(|| self.catalog.storage().log().reserve_one());
            self.txn.set_commit_ts(slot.ts());
            *open = Some(slot);
        }
    }
    /// Leaves the entry of the write that was stamped last.
    pub(crate) fn log(&mut self, op: &WriteOp<'_>, stmt_ids: &[i32], parts: Operation<'_>) -> Result<()> {
        let open = match &mut self.journal {
            Journal::Logged { open, .. } => open,
            Journal::Collected(ops) => {
                ops.push(op, &parts);
                return Ok(());
            }
            Journal::Applied { .. } | Journal::Local => return Ok(()),
        };
        let slot =
            open.take().ok_or_else(|| Error::internal("a log entry without a timestamp taken for it"))?;
        let session = op.session.map(|s| Session {
            lsid: s.lsid,
            txn_number: s.txn_number,
            stmt_ids,
            prev: self.session_prev.unwrap_or(s.prev),
        });
        let entry = Entry {
            session: if stmt_ids.is_empty() { None } else { session },
            operation: Operation { from_migrate: op.from_migrate, ..parts },
            term: self.term,
            wall: self.wall,
        };
        let (ts, with_session) = (slot.ts(), entry.session.is_some());
        self.buf.clear();
        entry.append_to(&mut self.buf, ts);
        self.txn.log_entry(slot, RawDoc::trusted(&self.buf));
        self.last = OpTime::new(ts, self.term);
        if with_session {
            self.session_prev = Some(self.last);
        }
        Ok(())
    }

    /// Leaves one entry of a transaction.
    pub(crate) fn log_chain(&mut self, slot: Slot, chain: &Chain<'_>, o: &RawDoc) {
        self.buf.clear();
        let wall = self.catalog.env().clock.wall_ms();
        chain.append_to(&mut self.buf, o, slot.ts(), self.term, wall);
        self.last = OpTime::new(slot.ts(), self.term);
        self.txn.log_entry(slot, RawDoc::trusted(&self.buf));
    }
    /// Commits a transaction whose entries are there: everything carries the last one's timestamp.
    pub(crate) fn commit_at(mut self, at: Timestamp) -> Result<OpTime> {
        for (_, ts, _) in &mut self.deltas {
            *ts = at;
        }
        self.commit()
    }

    /// Array paths met so far, which somebody else is going to note.
    pub(crate) fn take_marks(&mut self) -> Vec<PendingMarks> {
        std::mem::take(&mut self.marks)
    }
    /// Leaves the writes undecided; the last entry is where this is told.
    pub(crate) fn prepare(self) -> Result<(Undecided, OpTime)> {
        let WriteUnit { txn, deltas, certain, after, last, .. } = self;
        let after = follow(certain, after);
        Ok((Undecided::new(txn.prepare()?, deltas, after), last))
    }
    /// The same where the entries, from `first` to `at`, are there already.
    pub(crate) fn prepare_applied(self, first: Timestamp, at: Timestamp) -> Result<Undecided> {
        let WriteUnit { txn, journal, marks, deltas, certain, after, .. } = self;
        let after = follow(certain, after);
        if let Journal::Applied { marks: Some(to), .. } = &journal {
            to.arrays.lock().unwrap_or_else(poisoned).extend(marks);
        }
        Ok(Undecided::new(txn.prepare_again(first, at)?, deltas, after))
    }

    /// Leaves a no-op entry for writes that the log does not tell (parts of an unfinished index). They need one
    /// all the same: a timestamp without entry could be given out again after a crash.
    pub(crate) fn log_noop(&mut self, msg: &str) -> Result<()> {
        let mut o = pando_bson::DocBuilder::new();
        o.str("msg", msg);
        let o = o.finish();
        let parts = Operation {
            op: OpType::Noop,
            ns: "",
            ui: None,
            from_migrate: false,
            o: Object::Doc(&o),
            o2: Identity::None,
            rid: None,
            pre: None,
            image: None,
        };
        self.log(&WriteOp::default(), &[], parts)
    }

    pub(crate) fn change_sizes(&mut self, coll: &Collection, delta: Totals) {
        let ts = self.ts();
        if let Some((shared, at, sum)) = self.deltas.last_mut()
            && *at == ts
            && Arc::ptr_eq(shared, &coll.shared)
        {
            sum.count += delta.count;
            sum.bytes += delta.bytes;
            return;
        }
        self.deltas.push((coll.shared.clone(), ts, delta));
    }
    pub(crate) fn note_marks(&mut self, marks: PendingMarks) {
        self.marks.push(marks);
    }
    /// Whether marks were noted since the last call.
    pub(crate) fn take_unwritten_marks(&mut self) -> bool {
        let mut any = false;
        for m in self.marks.iter_mut().rev().take_while(|m| !m.written) {
            m.written = true;
            any = true;
        }
        any
    }
    pub(crate) fn txn_and_marks(&mut self) -> (&mut Txn, &[PendingMarks]) {
        (&mut self.txn, &self.marks)
    }
    /// The collection's totals with this unit's changes.
    pub(crate) fn totals_of(&self, coll: &Collection) -> Totals {
        let sizes = &coll.shared.sizes;
        let mut t = Totals { count: sizes.count() as i64, bytes: sizes.bytes() as i64 };
        for (_, _, d) in self.deltas.iter().filter(|(s, ..)| Arc::ptr_eq(s, &coll.shared)) {
            t.count += d.count;
            t.bytes += d.bytes;
        }
        t
    }
    /// Array paths of `index` that this unit will make durable.
    pub(crate) fn pending_marks<'a>(
        &'a self,
        index: &'a Arc<Index>,
    ) -> impl Iterator<Item = &'a PendingMarks> {
        self.marks.iter().filter(move |m| Arc::ptr_eq(&m.index.state, &index.state))
    }
    /// Runs when the unit is certain to commit, before anything of it is seen or reaches the disk. Of a prepared unit, when it is decided.
    pub fn when_certain(&mut self, f: impl FnOnce() + Send + 'static) {
        self.certain.push(Box::new(f));
    }
    /// Runs once the commit is visible.
    pub fn after_commit(&mut self, f: impl FnOnce(Timestamp) + Send + 'static) {
        self.after.push(Box::new(f));
    }

    pub fn mark(&self) -> UnitMark {
        UnitMark {
            txn: self.txn.mark(),
            deltas: self.deltas.len(),
            marks: self.marks.len(),
            certain: self.certain.len(),
            after: self.after.len(),
            last: self.last,
            session_prev: self.session_prev,
            collected: self.collected().map_or(0, |c| c.ops.len()),
        }
    }
    /// Undoes what came after the mark.
    pub fn back_to(&mut self, mark: UnitMark) {
        if let Journal::Logged { open, .. } = &mut self.journal {
            *open = None;
        }
        if let Journal::Collected(c) = &mut self.journal {
            c.truncate(mark.collected);
        }
        self.txn.back_to(mark.txn);
        self.deltas.truncate(mark.deltas);
        self.marks.truncate(mark.marks);
        self.certain.truncate(mark.certain);
        self.after.truncate(mark.after);
        self.last = mark.last;
        self.session_prev = mark.session_prev;
    }

    /// Makes the unit visible. Returns the position of its last log entry ([`OpTime::NULL`] if it left none).
    pub fn commit(self) -> Result<OpTime> {
        let WriteUnit { txn, journal, last, deltas, marks, certain, after, .. } = self;
        // Rows that are there and memory that does not know of them: nobody could tell later.
        let _to_its_end = panics::indivisible();
        // Counted before the log may name the timestamp durable: a checkpoint at it must find them.
        for (shared, at, delta) in &deltas {
            shared.sizes.changed(*at, *delta, || txn.counted());
        }
        let ts = match txn.commit_with(|| certain.into_iter().for_each(|f| f())) {
            Ok(ts) => ts,
            Err(e) => {
                let none = || Timestamp::ZERO;
                deltas
                    .iter()
                    .for_each(|(shared, at, delta)| shared.sizes.changed(*at, delta.negated(), none));
                return Err(e);
            }
        };
        let deferred = match &journal {
            Journal::Applied { marks, .. } => marks.clone(),
            _ => None,
        };
        drop(journal);
        match deferred {
            Some(to) if !marks.is_empty() => {
                to.arrays.lock().unwrap_or_else(poisoned).extend(marks);
            }
            Some(_) => {}
            None => marks.iter().for_each(durable::mark_durable),
        }
        for f in after {
            f(ts);
        }
        Ok(last)
    }
}
