//! Which statements of a session's newest `txnNumber` were carried out.
//!
//! A driver that loses a connection sends the same write again with the same `{lsid, txnNumber}`. A statement
//! that left an oplog entry is then answered from here instead of being run twice; one that changed nothing is
//! simply run again. The table lives in memory; after a restart it is rebuilt from the oplog, whose entries
//! carry `lsid`, `txnNumber` and `stmtId`. (What a retried findAndModify must return is kept aside by a clean
//! shutdown; after a crash it is read from the document's history, and when that is gone the retry gets 217.)
//!
//! One operation at a time uses a session: [`Retryable::begin`] lends the record out.

use crate::lsid_text;
use pando_base::{Error, ErrorCode, OpTime, Result};
use pando_bson::{Bson, DocBuf};
use pando_command::generic_args::Lsid;
use pando_env::sync::{Changed, Notify};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// What findAndModify returned; `None` = not kept.
    pub image: Option<Arc<DocBuf>>,
    pub op_time: OpTime,
}

#[derive(Debug)]
struct Record {
    txn_number: i64,
    done: BTreeMap<i32, Done>,
    last_op: OpTime,
    last_use: Duration,
}

enum Slot {
    Idle(Record),
    Lent,
}

/// The table, keyed by session id.
#[derive(Default)]
pub struct Retryable {
    slots: Mutex<BTreeMap<[u8; 16], Slot>>,
    returned: Notify,
    image_bytes: AtomicUsize,
}

/// Answer to [`Retryable::begin`].
pub enum Begin<'a> {
    Yours(Loan<'a>),
    /// Another operation uses the session; try again when this resolves.
    Wait(Changed),
}

impl Retryable {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<[u8; 16], Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Starts or continues `txn_number`; 225 when a newer one was seen.
    pub fn begin(&self, lsid: &Lsid, txn_number: i64, now: Duration) -> Result<Begin<'_>> {
        let version = self.returned.version();
        let mut slots = self.lock();
        let slot = slots.entry(lsid.id).or_insert_with(|| Slot::Idle(Record::new(txn_number, now)));
        let Slot::Idle(record) = slot else { return Ok(Begin::Wait(self.returned.changed(version))) };
        if record.txn_number > txn_number {
            return Err(Error::new(
                ErrorCode::TransactionTooOld,
                format!(
                    "Retryable write with txnNumber {txn_number} is prohibited on session {} because a newer \
                     retryable write with txnNumber {} has already started on this session.",
                    lsid_text(lsid),
                    record.txn_number
                ),
            ));
        }
        let Slot::Idle(mut record) = std::mem::replace(slot, Slot::Lent) else {
            unreachable!("checked above")
        };
        drop(slots);
        record.last_use = now;
        if record.txn_number < txn_number {
            self.forget_images(&record);
            record = Record::new(txn_number, now);
        }
        Ok(Begin::Yours(Loan { table: self, id: lsid.id, record: Some(record) }))
    }
    /// Recovery: one oplog entry of a retryable write, newest first.
    pub fn restore(&self, id: [u8; 16], txn_number: i64, stmts: &[i32], done: &Done, now: Duration) {
        let mut slots = self.lock();
        let slot = slots.entry(id).or_insert_with(|| Slot::Idle(Record::new(txn_number, now)));
        let Slot::Idle(record) = slot else { return };
        if record.txn_number != txn_number {
            return;
        }
        if record.last_op.is_null() {
            record.last_op = done.op_time;
        }
        for stmt in stmts {
            record.done.entry(*stmt).or_insert_with(|| done.clone());
        }
    }
    /// A statement that the primary carried out and this node applied; they come in the order of the log, and a
    /// newer number replaces an older one.
    pub fn applied(&self, id: [u8; 16], txn_number: i64, stmts: &[i32], done: &Done, now: Duration) {
        let mut slots = self.lock();
        let slot = slots.entry(id).or_insert_with(|| Slot::Idle(Record::new(txn_number, now)));
        let Slot::Idle(record) = slot else { return };
        if record.txn_number < txn_number {
            self.forget_images(record);
            *record = Record::new(txn_number, now);
        } else if record.txn_number > txn_number {
            return;
        }
        record.last_op = done.op_time;
        record.last_use = now;
        for stmt in stmts {
            record.done.insert(*stmt, done.clone());
        }
    }
    /// All kept images: session, number, statement, document.
    pub fn images(&self) -> Vec<([u8; 16], i64, i32, Arc<DocBuf>)> {
        let mut out = Vec::new();
        for (id, slot) in self.lock().iter() {
            let Slot::Idle(record) = slot else { continue };
            for (stmt, done) in &record.done {
                if let Some(image) = &done.image {
                    out.push((*id, record.txn_number, *stmt, image.clone()));
                }
            }
        }
        out
    }
    /// Recovery, after [`Retryable::restore`]: what the last process kept for a statement.
    pub fn restore_image(&self, id: [u8; 16], txn_number: i64, stmt: i32, image: DocBuf) {
        let mut slots = self.lock();
        let Some(Slot::Idle(record)) = slots.get_mut(&id) else { return };
        if let (true, Some(done)) = (record.txn_number == txn_number, record.done.get_mut(&stmt)) {
            self.image_bytes.fetch_add(image.byte_len(), Relaxed);
            done.image = Some(Arc::new(image));
        }
    }
    /// After a rollback: what is known of statements is read from the log anew.
    pub fn clear(&self) {
        self.lock().retain(|_, slot| matches!(slot, Slot::Lent));
    }
    /// Forgets sessions not used for `idle_max`.
    pub fn reap(&self, now: Duration, idle_max: Duration) {
        self.lock().retain(|_, slot| match slot {
            Slot::Idle(r) if now.saturating_sub(r.last_use) >= idle_max => {
                self.forget_images(r);
                false
            }
            _ => true,
        });
    }
    pub fn count(&self) -> usize {
        self.lock().len()
    }
    fn forget_images(&self, record: &Record) {
        let bytes: usize = record.done.values().filter_map(|d| d.image.as_ref()).map(|i| i.byte_len()).sum();
        self.image_bytes.fetch_sub(bytes, Relaxed);
    }
}

impl Record {
    fn new(txn_number: i64, now: Duration) -> Record {
        Record { txn_number, done: BTreeMap::new(), last_op: OpTime::NULL, last_use: now }
    }
}

/// A session's record in the hands of one operation; returned when dropped.
pub struct Loan<'a> {
    table: &'a Retryable,
    id: [u8; 16],
    record: Option<Record>,
}

impl Loan<'_> {
    fn record(&self) -> &Record {
        self.record.as_ref().expect("the record is here until the loan is dropped")
    }
    /// The earlier outcome of a statement.
    pub fn done(&self, stmt: i32) -> Option<&Done> {
        self.record().done.get(&stmt)
    }
    /// Where the session's previous entry of this `txnNumber` is (`prevOpTime`).
    pub fn last_op(&self) -> OpTime {
        self.record().last_op
    }
    /// Notes a statement whose unit of work has committed.
    pub fn note(&mut self, stmt: i32, mut done: Done) {
        if let Some(image) = &done.image {
            let bytes = image.byte_len();
            if self.table.image_bytes.load(Relaxed) + bytes > pando_base::limits::RETRY_IMAGES_BYTES_MAX {
                done.image = None;
            } else {
                self.table.image_bytes.fetch_add(bytes, Relaxed);
            }
        }
        if let Some(record) = &mut self.record {
            record.last_op = done.op_time;
            record.done.insert(stmt, done);
        }
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.table.lock().insert(self.id, Slot::Idle(record));
        }
        self.table.returned.bump();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::Timestamp;

    const S: Lsid = Lsid { id: [7; 16], uid: None };

    fn loan(t: &Retryable, n: i64) -> Loan<'_> {
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
        let t = Retryable::default();
        loan(&t, 1).note(0, done(5));
        let l = loan(&t, 1);
        assert!(l.done(0).is_some() && l.done(1).is_none());
        assert_eq!(l.last_op().ts.secs(), 5);
        drop(l);
        let l = loan(&t, 2);
        assert!(l.done(0).is_none() && l.last_op().is_null());
        drop(l);
        assert_eq!(t.begin(&S, 1, Duration::ZERO).err().unwrap().code, ErrorCode::TransactionTooOld);
    }

    #[test]
    fn one_operation_at_a_time_uses_a_session() {
        let t = Retryable::default();
        let l = loan(&t, 1);
        assert!(matches!(t.begin(&S, 1, Duration::ZERO), Ok(Begin::Wait(_))));
        drop(l);
        assert!(matches!(t.begin(&S, 1, Duration::ZERO), Ok(Begin::Yours(_))));
    }

    #[test]
    fn entries_of_the_oplog_bring_the_table_back() {
        let t = Retryable::default();
        t.restore(S.id, 4, &[0, 1], &done(2), Duration::ZERO);
        t.restore(S.id, 3, &[0, 5], &done(1), Duration::ZERO);
        let l = loan(&t, 4);
        assert!(l.done(0).is_some() && l.done(1).is_some() && l.done(5).is_none());
        assert_eq!(l.last_op().ts.secs(), 2);
    }
}
