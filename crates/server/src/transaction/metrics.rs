//! `serverStatus.transactions`.

use super::memory::Memory;
use pando_bson::DocBuilder;
use pando_command::WriteConcern;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
pub(crate) struct Metrics {
    started: AtomicI64,
    committed: AtomicI64,
    aborted: AtomicI64,
    active: AtomicI64,
    open: AtomicI64,
    prepared: AtomicI64,
    prepared_committed: AtomicI64,
    prepared_aborted: AtomicI64,
    /// Commands and statements that were answered from an earlier try.
    retried_commands: AtomicI64,
    retried_statements: AtomicI64,
    last: Mutex<Option<Last>>,
    pub(crate) memory: Arc<Memory>,
}

/// `lastCommittedTransaction`.
pub(crate) struct Last {
    pub(crate) operations: usize,
    pub(crate) bytes: usize,
    pub(crate) write_concern: WriteConcern,
}

impl Metrics {
    pub(crate) fn started(&self) {
        self.started.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
    }
    pub(crate) fn activated(&self) {
        self.active.fetch_add(1, Relaxed);
    }
    pub(crate) fn deactivated(&self) {
        self.active.fetch_sub(1, Relaxed);
    }
    pub(crate) fn committed(&self) {
        self.committed.fetch_add(1, Relaxed);
        self.open.fetch_sub(1, Relaxed);
    }
    pub(crate) fn aborted(&self) {
        self.aborted.fetch_add(1, Relaxed);
        self.open.fetch_sub(1, Relaxed);
    }
    /// From now on it is counted among those that the catalog knows.
    pub(crate) fn prepared(&self) {
        self.prepared.fetch_add(1, Relaxed);
        self.open.fetch_sub(1, Relaxed);
    }
    pub(crate) fn prepared_ended(&self, committed: bool) {
        let (all, of_prepared) = match committed {
            true => (&self.committed, &self.prepared_committed),
            false => (&self.aborted, &self.prepared_aborted),
        };
        all.fetch_add(1, Relaxed);
        of_prepared.fetch_add(1, Relaxed);
    }
    pub(crate) fn retried(&self, statements: usize) {
        self.retried_commands.fetch_add(1, Relaxed);
        self.retried_statements.fetch_add(statements as i64, Relaxed);
    }
    pub(crate) fn note_last(&self, last: Last) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
    }
    pub(crate) fn append_to(&self, d: &mut DocBuilder, now_prepared: usize) {
        let (open, active) = (self.open.load(Relaxed) + now_prepared as i64, self.active.load(Relaxed));
        for (name, n) in [
            ("retriedCommandsCount", self.retried_commands.load(Relaxed)),
            ("retriedStatementsCount", self.retried_statements.load(Relaxed)),
            ("transactionsCollectionWriteCount", 0),
            ("currentActive", active),
            ("currentInactive", open - active),
            ("currentOpen", open),
            ("totalAborted", self.aborted.load(Relaxed)),
            ("totalCommitted", self.committed.load(Relaxed)),
            ("totalStarted", self.started.load(Relaxed)),
            ("totalPrepared", self.prepared.load(Relaxed)),
            ("totalPreparedThenCommitted", self.prepared_committed.load(Relaxed)),
            ("totalPreparedThenAborted", self.prepared_aborted.load(Relaxed)),
            ("currentPrepared", now_prepared as i64),
            ("currentOpenBytes", self.memory.bytes() as i64),
        ] {
            d.i64(name, n);
        }
        if let Some(last) = &*self.last.lock().unwrap_or_else(PoisonError::into_inner) {
            d.doc("lastCommittedTransaction", |t| {
                t.i64("operationCount", last.operations as i64);
                t.i64("oplogOperationBytes", last.bytes as i64);
                t.doc("writeConcern", |wc| last.write_concern.append_to(wc));
            });
        }
    }
}
