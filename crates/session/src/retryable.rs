//! Which statements of a session's newest `txnNumber` were carried out.
//!
//! A driver that loses a connection sends the same write again with the same `{lsid, txnNumber}`. A statement
//! that left an oplog entry is then answered from here instead of being run twice; one that changed nothing is
//! simply run again. The table lives in memory; after a restart it is rebuilt from the oplog, whose entries
//! carry `lsid`, `txnNumber` and `stmtId`, and from what checkpoints keep of it. What a retried findAndModify returns is in its entry; a member that was copied
//! logically has got the newest of older ones with the table.
//!
//! One operation at a time uses a session: [`Retryable::begin`] and [`Retryable::check_out`] lend the record out. It
//! also knows the state of the session's transaction and keeps what is open of it between two statements. Meanwhile the
//! table holds what the session had done before, so that keeping it waits for nobody.
//!
//! Statements take memory. Beyond a bound those of the sessions that rested longest are given up; a retry of one is then
//! refused (217), never carried out a second time.

mod records;

use records::Settled;
pub use records::{Mark, SessionsSnapshot, with_images};

use crate::transaction::{DurableState, Machine, State};
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, OpTime, Result, Uuid, limits};
use pando_bson::{Bson, DocBuf, DocBuilder};
use pando_command::generic_args::SessionId;
use pando_env::sync::{Changed, Notify};
use pando_oplog::entry::ImageKind;
use std::any::Any;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What kind of entry the statement left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Insert,
    Update,
    Delete,
}

/// One carried-out statement.
#[derive(Clone, Debug)]
pub struct Done {
    pub kind: Kind,
    /// `_id` of the inserted document, when an update inserted it.
    pub inserted_id: Option<Bson>,
    /// A findAndModify.
    pub image: Option<Image>,
    pub op_time: OpTime,
}

/// What a retried findAndModify returns.
#[derive(Clone, Debug)]
pub struct Image {
    pub kind: ImageKind,
    /// Only where the entry is not in this node's log; there `None` = nobody knows it any more.
    pub doc: Option<Arc<DocBuf>>,
}

impl Image {
    pub fn in_log(kind: ImageKind) -> Image {
        Image { kind, doc: None }
    }
}

/// What a transaction holds between two statements; dropping it aborts it.
pub type Parked = Arc<dyn Any + Send + Sync>;

impl Done {
    fn bytes(&self) -> usize {
        let id = self.inserted_id.as_ref().map_or(0, |id| {
            let mut b = DocBuilder::new();
            b.bson("", id);
            b.byte_len()
        });
        let image = self.image.as_ref().and_then(|i| i.doc.as_ref()).map_or(0, |d| d.byte_len());
        limits::RETRYABLE_STATEMENT_BYTES + id + image
    }
}

type Statements = BTreeMap<i32, Done>;

#[derive(Debug)]
struct Record {
    machine: Machine,
    /// Shared with the table while the record is lent: the next number begins another map.
    done: Arc<Statements>,
    /// Of `done`.
    bytes: usize,
    /// Statements of this number were carried out that are not in `done`.
    incomplete: bool,
    /// While the log is read, newest first: what came before the oldest entry of this number that was met.
    before: OpTime,
    last_op: OpTime,
    last_use: Duration,
    parked: Option<Parked>,
    /// [`Table::known`] when it was lent last.
    since: OpTime,
}

enum Slot {
    Idle(Record),
    Lent {
        /// Whatever is open is aborted when it comes back.
        doomed: bool,
        /// As it was; complete up to `since`.
        before: Settled,
        since: OpTime,
    },
}

impl Slot {
    /// Number, state and last position of a session that has written.
    fn state(&self) -> Option<(i64, State, OpTime)> {
        match self {
            Slot::Idle(r) if !r.last_op.is_null() => Some((r.machine.number(), r.machine.state(), r.last_op)),
            _ => None,
        }
    }
    /// The newest statement that showed a document, with its number.
    fn find_and_modify(&self) -> Option<(i64, Done)> {
        match self {
            Slot::Idle(r) => {
                let done = r.done.values().filter(|d| d.image.is_some()).max_by_key(|d| d.op_time)?;
                Some((r.machine.number(), done.clone()))
            }
            Slot::Lent { .. } => None,
        }
    }
}

#[derive(Default)]
struct Table {
    slots: BTreeMap<SessionId, Slot>,
    /// Of all records.
    bytes: usize,
    /// Sessions that are lent from now on know all their entries up to here.
    known: OpTime,
    /// Sessions whose statements were given up.
    shed: u64,
}

/// How [`Retryable::abort`] found a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aborted {
    Now,
    /// An operation uses it, which must be interrupted; the transaction ends when it comes back.
    InUse,
    Nothing,
}

/// The table, keyed by session id.
#[derive(Default)]
pub struct Retryable {
    table: Mutex<Table>,
    returned: Notify,
}

/// Answer to [`Retryable::begin`].
pub enum Begin {
    Yours(Loan),
    /// Another operation uses the session; try again when this resolves.
    Wait(Changed),
}

impl Retryable {
    fn lock(&self) -> MutexGuard<'_, Table> {
        let table = self.table.lock().unwrap_or_else(poisoned);
        #[cfg(debug_assertions)]
        table.check();
        table
    }
    /// Bytes that the table takes, and how many sessions have lost statements to its bound.
    pub fn usage(&self) -> (usize, u64) {
        let table = self.lock();
        (table.bytes, table.shed)
    }
    /// Starts or continues the retryable write `txn_number`; 225 when a newer number was seen. An open transaction of an
    /// older one ends.
    pub fn begin(self: &Arc<Self>, lsid: &SessionId, txn_number: i64, now: Duration) -> Result<Begin> {
        let mut loan = match self.check_out(lsid, now) {
            Begin::Yours(loan) => loan,
            wait @ Begin::Wait(_) => return Ok(wait),
        };
        if loan.record_mut().machine.write(lsid, txn_number)? {
            loan.start_over();
        }
        Ok(Begin::Yours(loan))
    }
    /// Lends a session out, whatever it was doing last.
    pub fn check_out(self: &Arc<Self>, lsid: &SessionId, now: Duration) -> Begin {
        let version = self.returned.version();
        let mut table = self.lock();
        let known = table.known;
        let record = match table.slots.remove(lsid) {
            None => {
                let record = Record { since: known, ..Record::new(Machine::default(), now) };
                table.bytes += record.weight();
                record
            }
            Some(Slot::Idle(record)) => Record { last_use: now, since: known, ..record },
            Some(lent @ Slot::Lent { .. }) => {
                table.slots.insert(*lsid, lent);
                return Begin::Wait(self.returned.changed(version));
            }
        };
        table.slots.insert(*lsid, Slot::Lent { doomed: false, before: record.settled(), since: known });
        drop(table);
        Begin::Yours(Loan { table: self.clone(), id: *lsid, weighed: record.weight(), record: Some(record) })
    }
    /// Ends the session's transaction unless it is prepared.
    pub fn abort(&self, id: &SessionId) -> Aborted {
        let mut table = self.lock();
        let parked = match table.slots.get_mut(id) {
            None => return Aborted::Nothing,
            Some(Slot::Lent { doomed, .. }) => {
                *doomed = true;
                return Aborted::InUse;
            }
            Some(Slot::Idle(record)) if record.machine.state() != State::InProgress => {
                return Aborted::Nothing;
            }
            Some(Slot::Idle(record)) => {
                record.machine.abort_unprepared();
                record.parked.take()
            }
        };
        drop(table);
        // Much may hang on it: dropped outside the lock.
        drop(parked);
        Aborted::Now
    }
    /// Sessions with an open transaction that no operation uses now.
    pub fn parked(&self) -> Vec<(SessionId, Parked)> {
        let table = self.lock();
        let parked = |slot: &Slot| match slot {
            Slot::Idle(record) => record.parked.clone(),
            Slot::Lent { .. } => None,
        };
        table.slots.iter().filter_map(|(id, slot)| Some((*id, parked(slot)?))).collect()
    }
    /// An entry of a transaction that was read from the log; in the order of the log, or newest first (`newest`).
    pub fn learn(&self, id: SessionId, number: i64, outcome: DurableState, at: OpTime, now: Duration) {
        self.lock().change(id, Record::new(Machine::default(), now), |record| {
            let known = record.machine.number();
            if known > number || (known == number && record.last_op >= at) {
                return;
            }
            let mut machine = std::mem::take(&mut record.machine);
            machine.learn(number, outcome);
            *record = Record { last_op: at, ..Record::new(machine, now) };
        });
    }
    /// A new primary: chains that lack their end never get one.
    pub fn abort_partial(&self) {
        for slot in self.lock().slots.values_mut() {
            if let Slot::Idle(record) = slot
                && record.parked.is_none()
            {
                record.machine.abort_unprepared();
            }
        }
    }
    /// Positions of the prepare entries of sessions whose newest number is prepared.
    pub fn prepared(&self) -> Vec<OpTime> {
        self.states().into_iter().filter(|(_, _, s, _)| *s == State::Prepared).map(|(.., at)| at).collect()
    }
    /// Every session with its number, state and last position, for `config.transactions`.
    pub fn states(&self) -> Vec<(SessionId, i64, State, OpTime)> {
        let table = self.lock();
        table.slots.iter().filter_map(|(id, slot)| slot.state().map(|(n, s, at)| (*id, n, s, at))).collect()
    }
    /// The same of one session.
    pub fn state_of(&self, id: &SessionId) -> Option<(i64, State, OpTime)> {
        self.lock().slots.get(id)?.state()
    }
    /// The newest findAndModify of each session, with its number, for `config.image_collection`.
    pub fn find_and_modifies(&self) -> Vec<(SessionId, i64, Done)> {
        let table = self.lock();
        table
            .slots
            .iter()
            .filter_map(|(id, slot)| slot.find_and_modify().map(|(n, done)| (*id, n, done)))
            .collect()
    }
    /// The same of one session.
    pub fn find_and_modify_of(&self, id: &SessionId) -> Option<(i64, Done)> {
        self.lock().slots.get(id)?.find_and_modify()
    }
    /// Recovery: one oplog entry of a retryable write, newest first; `prev` is the session's entry before it.
    pub fn restore(
        &self,
        id: SessionId,
        txn_number: i64,
        stmts: &[i32],
        done: &Done,
        prev: OpTime,
        now: Duration,
    ) {
        self.lock().change(id, Record::written(txn_number, now), |record| {
            if record.machine.number() != txn_number || record.machine.state().is_transaction() {
                return;
            }
            if record.last_op.is_null() {
                record.last_op = done.op_time;
            }
            record.before = prev;
            for stmt in stmts {
                record.add_older(*stmt, done);
            }
        });
    }
    /// Recovery: an entry, newest first, says that more was carried out under this number than anybody knows.
    pub fn restore_incomplete(
        &self,
        id: SessionId,
        txn_number: i64,
        at: OpTime,
        prev: OpTime,
        now: Duration,
    ) {
        self.lock().change(id, Record::written(txn_number, now), |record| {
            if record.machine.number() != txn_number || record.machine.state().is_transaction() {
                return;
            }
            record.last_op = record.last_op.max(at);
            record.before = prev;
            record.incomplete = true;
        });
    }
    /// The end of a recovery: where a session's entries go on before what was read, and nothing was kept of them, not all of
    /// its statements are known.
    pub fn end_restore(&self) {
        for slot in self.lock().slots.values_mut() {
            if let Slot::Idle(record) = slot {
                let before = std::mem::replace(&mut record.before, OpTime::NULL);
                let found = before.is_null() || record.done.values().any(|d| d.op_time == before);
                record.incomplete |= !found;
            }
        }
    }
    /// A statement that the primary carried out and this node applied. Those of one batch may come in any order; a
    /// newer number replaces an older one.
    pub fn applied(&self, id: SessionId, txn_number: i64, stmts: &[i32], done: &Done, now: Duration) {
        let mut table = self.lock();
        table.change(id, Record::written(txn_number, now), |record| {
            if record.machine.number() < txn_number {
                *record = Record::written(txn_number, now);
            } else if record.machine.number() > txn_number {
                return;
            }
            record.last_op = record.last_op.max(done.op_time);
            record.last_use = now;
            for stmt in stmts {
                record.add(*stmt, done.clone());
            }
        });
        table.keep_within(limits::RETRYABLE_BYTES_MAX);
    }
    /// An entry says that more was carried out under this number than anybody knows.
    pub fn applied_incomplete(&self, id: SessionId, txn_number: i64, at: OpTime, now: Duration) {
        self.lock().change(id, Record::written(txn_number, now), |record| {
            if record.machine.number() < txn_number {
                *record = Record::written(txn_number, now);
            } else if record.machine.number() > txn_number || record.machine.state().is_transaction() {
                return;
            }
            record.last_op = record.last_op.max(at);
            record.incomplete = true;
        });
    }
    /// After a rollback: what is known of statements is read from the log anew.
    pub fn clear(&self) {
        let mut table = self.lock();
        table.retain(|slot| matches!(slot, Slot::Lent { .. }));
        // It may name an entry that is gone.
        table.known = OpTime::NULL;
    }
    /// Forgets sessions not used for `idle_max`.
    pub fn reap(&self, now: Duration, idle_max: Duration) {
        self.lock().retain(|slot| match slot {
            // What is prepared, or open, is not idle.
            Slot::Idle(r) if r.machine.state() == State::Prepared => true,
            Slot::Idle(r) if r.parked.is_none() && now.saturating_sub(r.last_use) >= idle_max => false,
            _ => true,
        });
    }
    pub fn count(&self) -> usize {
        self.lock().slots.len()
    }
    #[cfg(test)]
    fn bound(&self, bytes: usize) {
        self.lock().keep_within(bytes);
    }
}

impl Table {
    /// Changes a session's record, a `new` one when there is none; not one that is lent, which whoever has it changes.
    fn change(&mut self, id: SessionId, new: Record, change: impl FnOnce(&mut Record)) {
        let slot = match self.slots.entry(id) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(free) => {
                self.bytes += new.weight();
                free.insert(Slot::Idle(new))
            }
        };
        if let Slot::Idle(record) = slot {
            self.bytes -= record.weight();
            change(record);
            self.bytes += record.weight();
        }
    }
    fn retain(&mut self, keep: impl Fn(&Slot) -> bool) {
        let bytes = &mut self.bytes;
        self.slots.retain(|_, slot| {
            let keeps = keep(slot);
            if let (false, Slot::Idle(record)) = (keeps, &*slot) {
                *bytes -= record.weight();
            }
            keeps
        });
    }
    /// Gives up the statements of the sessions that have rested longest.
    fn keep_within(&mut self, bound: usize) {
        if self.bytes <= bound {
            return;
        }
        let rests = |(id, slot): (&SessionId, &Slot)| match slot {
            Slot::Idle(r) if !r.done.is_empty() => Some((r.last_use, *id)),
            _ => None,
        };
        let mut resting: Vec<_> = self.slots.iter().filter_map(rests).collect();
        resting.sort_unstable();
        for (_, id) in resting {
            // Well below, or the next statement would look through all of them again.
            if self.bytes <= bound / 8 * 7 {
                return;
            }
            self.shed += 1;
            if let Some(Slot::Idle(record)) = self.slots.get_mut(&id) {
                self.bytes -= record.weight();
                record.give_up_statements();
                self.bytes += record.weight();
            }
        }
    }
    /// What holds whenever nobody has the lock.
    #[cfg(debug_assertions)]
    fn check(&self) {
        // Looked at often, and some tables are large.
        if self.bytes > 64 * limits::RETRYABLE_SESSION_BYTES {
            return;
        }
        let mut idle = 0;
        for slot in self.slots.values() {
            let Slot::Idle(r) = slot else { continue };
            idle += r.weight();
            assert_eq!(r.bytes, r.done.values().map(Done::bytes).sum::<usize>(), "bytes of a session");
            assert!(r.done.values().all(|d| d.op_time <= r.last_op), "a statement after the last one");
            assert!(r.done.is_empty() || !r.machine.state().is_transaction(), "statements of a transaction");
        }
        assert!(idle <= self.bytes, "the table takes no less than its records");
        assert!(idle == self.bytes || self.slots.values().any(|s| matches!(s, Slot::Lent { .. })));
    }
}

impl Record {
    fn new(machine: Machine, now: Duration) -> Record {
        Record {
            machine,
            done: Arc::default(),
            bytes: 0,
            incomplete: false,
            before: OpTime::NULL,
            last_op: OpTime::NULL,
            last_use: now,
            parked: None,
            since: OpTime::NULL,
        }
    }
    fn written(txn_number: i64, now: Duration) -> Record {
        Record::new(Machine::retryable_write(txn_number), now)
    }
    fn weight(&self) -> usize {
        limits::RETRYABLE_SESSION_BYTES + self.bytes
    }
    fn add(&mut self, stmt: i32, done: Done) {
        self.bytes += done.bytes();
        if let Some(old) = Arc::make_mut(&mut self.done).insert(stmt, done) {
            self.bytes -= old.bytes();
        }
    }
    /// What is known already is newer.
    fn add_older(&mut self, stmt: i32, done: &Done) {
        if !self.done.contains_key(&stmt) {
            self.add(stmt, done.clone());
        }
    }
    fn give_up_statements(&mut self) {
        (self.done, self.bytes, self.incomplete) = (Arc::default(), 0, true);
    }
}

/// A session's record in the hands of one operation; returned when dropped.
pub struct Loan {
    table: Arc<Retryable>,
    id: SessionId,
    /// What the table counts for it.
    weighed: usize,
    record: Option<Record>,
}

impl Loan {
    fn record(&self) -> &Record {
        self.record.as_ref().expect("the record is here until the loan is dropped")
    }
    fn record_mut(&mut self) -> &mut Record {
        self.record.as_mut().expect("the record is here until the loan is dropped")
    }
    /// The active number has changed: nothing of the one before counts any more.
    fn start_over(&mut self) {
        let record = self.record_mut();
        (record.done, record.bytes, record.incomplete) = (Arc::default(), 0, false);
        record.last_op = OpTime::NULL;
        drop(record.parked.take());
    }
    pub fn machine(&self) -> &Machine {
        &self.record().machine
    }
    /// `startTransaction`.
    pub fn start(&mut self, lsid: &SessionId, number: i64, in_cluster: bool) -> Result<()> {
        self.record_mut().machine.start(lsid, number, in_cluster)?;
        self.start_over();
        Ok(())
    }
    pub fn become_(&mut self, next: State) {
        self.record_mut().machine.become_(next);
    }
    /// Takes what the statement before left open.
    pub fn unpark(&mut self) -> Option<Parked> {
        self.record_mut().parked.take()
    }
    /// Leaves it for the next statement.
    pub fn park(&mut self, open: Parked) {
        self.record_mut().parked = Some(open);
    }
    /// Ends the transaction unless it is decided.
    pub fn abort(&mut self) {
        let record = self.record_mut();
        record.machine.abort_unprepared();
        drop(record.parked.take());
    }
    /// Another set has committed the transaction of this number; the entry at `at` says so here. False where something else is known of the
    /// number, or of a later one.
    pub fn learn_committed(&mut self, number: i64, at: impl FnOnce() -> Result<OpTime>) -> Result<bool> {
        if self.record().machine.number() >= number {
            return Ok(false);
        }
        let at = at()?;
        self.start_over();
        let record = self.record_mut();
        record.machine.learn(number, DurableState::Committed);
        record.last_op = at;
        Ok(true)
    }
    /// The transaction's last entry.
    pub fn set_last_op(&mut self, at: OpTime) {
        self.record_mut().last_op = at;
    }
    /// The earlier outcome of a statement; 217 where it may have been carried out and nobody knows any more.
    pub fn done(&self, stmt: i32) -> Result<Option<&Done>> {
        let record = self.record();
        match record.done.get(&stmt) {
            None if record.incomplete => Err(Error::new(
                ErrorCode::IncompleteTransactionHistory,
                format!(
                    "Incomplete history detected for transaction {{ txnNumber: {} }} on session {}",
                    record.machine.number(),
                    Uuid(self.id.id)
                ),
            )),
            done => Ok(done),
        }
    }
    /// Where the session's previous entry of this `txnNumber` is (`prevOpTime`).
    pub fn last_op(&self) -> OpTime {
        self.record().last_op
    }
    /// Whether all statements of the active number are known that were carried out.
    pub fn is_complete(&self) -> bool {
        !self.record().incomplete
    }
    /// More statements were carried out than are known; the entry at `at` says so.
    pub fn note_incomplete(&mut self, at: OpTime) {
        let record = self.record_mut();
        record.last_op = at;
        record.incomplete = true;
    }
    /// Whether a statement is known to have been carried out.
    pub fn knows(&self, stmt: i32) -> bool {
        self.record().done.contains_key(&stmt)
    }
    /// Notes a statement whose unit of work has committed.
    pub fn note(&mut self, stmt: i32, done: Done) {
        let record = self.record_mut();
        record.last_op = done.op_time;
        record.add(stmt, done);
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let Some(mut record) = self.record.take() else { return };
        let mut over = None;
        {
            let mut table = self.table.lock();
            if matches!(table.slots.get(&self.id), Some(Slot::Lent { doomed: true, .. })) {
                record.machine.abort_unprepared();
                if record.machine.state() != State::Prepared {
                    over = record.parked.take();
                }
            }
            table.bytes = table.bytes - self.weighed + record.weight();
            table.slots.insert(self.id, Slot::Idle(record));
            table.keep_within(limits::RETRYABLE_BYTES_MAX);
        }
        drop(over);
        self.table.returned.bump();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::{ErrorCode, Timestamp};
    use std::sync::atomic::Ordering::Relaxed;

    const S: SessionId = SessionId::of([7; 16]);

    fn loan(t: &Arc<Retryable>, n: i64) -> Loan {
        match t.begin(&S, n, Duration::ZERO) {
            Ok(Begin::Yours(loan)) => loan,
            Ok(Begin::Wait(_)) => panic!("session in use"),
            Err(e) => panic!("{e}"),
        }
    }
    fn done(secs: u32) -> Done {
        Done {
            kind: Kind::Insert,
            inserted_id: None,
            image: None,
            op_time: OpTime::new(Timestamp::new(secs, 1), 1),
        }
    }

    #[test]
    fn a_statement_is_remembered_until_the_next_number() {
        let t = Arc::new(Retryable::default());
        loan(&t, 1).note(0, done(5));
        let l = loan(&t, 1);
        assert!(l.done(0).unwrap().is_some() && l.done(1).unwrap().is_none());
        assert_eq!(l.last_op().ts.secs(), 5);
        drop(l);
        let l = loan(&t, 2);
        assert!(l.done(0).unwrap().is_none() && l.last_op().is_null());
        drop(l);
        assert_eq!(t.begin(&S, 1, Duration::ZERO).err().unwrap().code, ErrorCode::TransactionTooOld);
    }

    #[test]
    fn one_operation_at_a_time_uses_a_session() {
        let t = Arc::new(Retryable::default());
        let l = loan(&t, 1);
        assert!(matches!(t.begin(&S, 1, Duration::ZERO), Ok(Begin::Wait(_))));
        drop(l);
        assert!(matches!(t.begin(&S, 1, Duration::ZERO), Ok(Begin::Yours(_))));
    }

    #[test]
    fn entries_of_the_oplog_bring_the_table_back() {
        let t = Arc::new(Retryable::default());
        t.restore(S, 4, &[0, 1], &done(2), OpTime::NULL, Duration::ZERO);
        t.restore(S, 3, &[0, 5], &done(1), OpTime::NULL, Duration::ZERO);
        t.end_restore();
        let l = loan(&t, 4);
        let knows = |stmt| l.done(stmt).unwrap().is_some();
        assert!(knows(0) && knows(1) && !knows(5));
        assert_eq!(l.last_op().ts.secs(), 2);
    }

    #[test]
    fn a_statement_from_before_what_was_read_is_refused_not_carried_out_again() {
        let t = Arc::new(Retryable::default());
        t.restore(S, 4, &[2], &done(7), done(6).op_time, Duration::ZERO);
        t.restore(S, 4, &[1], &done(6), done(5).op_time, Duration::ZERO);
        t.end_restore();
        let l = loan(&t, 4);
        assert!(l.done(1).unwrap().is_some() && l.done(2).unwrap().is_some());
        assert_eq!(l.done(0).unwrap_err().code, ErrorCode::IncompleteTransactionHistory);
        drop(l);
        assert!(loan(&t, 5).done(0).unwrap().is_none(), "the next number begins anew");
    }

    #[test]
    fn statements_take_memory_within_a_bound_and_those_given_up_are_refused() {
        let t = Arc::new(Retryable::default());
        let empty = t.usage().0;
        for session in 0..10u8 {
            let lsid = SessionId::of([session; 16]);
            let Begin::Yours(mut l) = t.begin(&lsid, 1, Duration::from_secs(session.into())).unwrap() else {
                panic!("in use")
            };
            (0..100).for_each(|stmt| l.note(stmt, done(5)));
        }
        let full = t.usage().0;
        assert!(full - empty >= 1000 * limits::RETRYABLE_STATEMENT_BYTES);
        t.bound(full / 2);
        let (left, shed) = t.usage();
        assert!(left <= full / 2 && shed >= 5, "{left} of {full}");
        let ask = |session: u8| {
            let Begin::Yours(l) = t.begin(&SessionId::of([session; 16]), 1, Duration::ZERO).unwrap() else {
                panic!("in use")
            };
            l.done(7).map(|d| d.is_some())
        };
        assert_eq!(ask(0).unwrap_err().code, ErrorCode::IncompleteTransactionHistory);
        assert!(ask(9).unwrap(), "the newest stay");
        t.clear();
        assert_eq!(t.usage().0, 0);
    }

    struct Open(Arc<std::sync::atomic::AtomicBool>);
    impl Drop for Open {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }

    #[test]
    fn an_open_transaction_ends_with_a_newer_number_a_kill_or_a_doomed_loan() {
        let t = Arc::new(Retryable::default());
        let out = |t: &Arc<Retryable>| match t.check_out(&S, Duration::ZERO) {
            Begin::Yours(loan) => loan,
            Begin::Wait(_) => panic!("session in use"),
        };
        let open = |n| {
            let gone = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let mut l = out(&t);
            l.start(&S, n, false).unwrap();
            l.park(Arc::new(Open(gone.clone())));
            gone
        };
        let gone = open(1);
        assert!(out(&t).machine().state() == State::InProgress && !gone.load(Relaxed));
        out(&t).start(&S, 2, false).unwrap();
        assert!(gone.load(Relaxed));
        let gone = open(3);
        drop(loan(&t, 4));
        assert!(gone.load(Relaxed));
        let gone = open(5);
        assert!(t.abort(&S) == Aborted::Now && gone.load(Relaxed));
        assert_eq!(t.abort(&S), Aborted::Nothing);
        let gone = open(6);
        let l = out(&t);
        assert!(t.abort(&S) == Aborted::InUse && !gone.load(Relaxed));
        drop(l);
        assert!(gone.load(Relaxed) && out(&t).machine().state() == State::AbortedUnprepared);
    }

    #[test]
    fn a_chain_without_its_end_is_over_when_this_node_becomes_primary() {
        let t = Arc::new(Retryable::default());
        let at = |n| OpTime::new(Timestamp::new(n, 1), 1);
        t.learn(S, 4, DurableState::Partial, at(1), Duration::ZERO);
        t.learn(S, 4, DurableState::Partial, at(2), Duration::ZERO);
        t.learn(SessionId::of([9; 16]), 2, DurableState::Prepared, at(3), Duration::ZERO);
        t.learn(SessionId::of([8; 16]), 1, DurableState::Committed, at(4), Duration::ZERO);
        t.abort_partial();
        let mut left: Vec<_> = t.states().into_iter().map(|(id, n, state, _)| (id.id[0], n, state)).collect();
        left.sort_by_key(|(id, ..)| *id);
        let over = [(7, 4, State::AbortedUnprepared), (8, 1, State::Committed), (9, 2, State::Prepared)];
        assert_eq!(left, over);
        let Begin::Yours(mut loan) = t.check_out(&S, Duration::ZERO) else { panic!("in use") };
        assert!(loan.machine().proceed(&S, 4).is_err() && loan.start(&S, 5, false).is_ok());
    }
}
