//! `serverStatus.transactions`.

use super::memory::Memory;
use pando_bson::DocBuilder;
use pando_command::WriteConcern;
use pando_metrics::{Collector, Counter, Gauge};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
pub struct Metrics {
    started: Counter,
    committed: Counter,
    aborted: Counter,
    active: Gauge,
    open: Gauge,
    prepared: Counter,
    prepared_committed: Counter,
    prepared_aborted: Counter,
    retried_commands: Counter,
    retried_statements: Counter,
    last: Mutex<Option<Last>>,
    pub memory: Arc<Memory>,
}

/// `lastCommittedTransaction`.
pub struct Last {
    pub operations: usize,
    pub bytes: usize,
    pub write_concern: WriteConcern,
}

impl Metrics {
    pub fn started(&self) {
        self.started.inc();
        self.open.add(1);
    }
    pub fn activated(&self) {
        self.active.add(1);
    }
    pub fn deactivated(&self) {
        self.active.sub(1);
    }
    pub fn committed(&self) {
        self.committed.inc();
        self.open.sub(1);
    }
    pub fn aborted(&self) {
        self.aborted.inc();
        self.open.sub(1);
    }
    /// From now on it is counted among those that the catalog knows.
    pub fn prepared(&self) {
        self.prepared.inc();
        self.open.sub(1);
    }
    pub fn prepared_ended(&self, committed: bool) {
        let (all, of_prepared) = match committed {
            true => (&self.committed, &self.prepared_committed),
            false => (&self.aborted, &self.prepared_aborted),
        };
        all.inc();
        of_prepared.inc();
    }
    pub fn retried(&self, statements: usize) {
        self.retried_commands.inc();
        self.retried_statements.add(statements as u64);
    }
    pub fn note_last(&self, last: Last) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
    }
    pub fn collect(&self, now_prepared: usize, to: &mut Collector<'_>) {
        const UNIT: &str = "transactions";
        let (open, active) = (self.open.get() + now_prepared as i64, self.active.get());
        to.counter(
            "retriedCommandsCount",
            self.retried_commands.get(),
            "commands",
            "Retryable writes answered from an earlier try",
        )
        .counter(
            "retriedStatementsCount",
            self.retried_statements.get(),
            "statements",
            "Statements of retryable writes answered from an earlier try",
        )
        .counter(
            "transactionsCollectionWriteCount",
            0i64,
            "writes",
            "Writes of users to config.transactions, which is no collection here",
        )
        .gauge("currentActive", active, UNIT, "Open transactions that run a statement")
        .gauge("currentInactive", open - active, UNIT, "Open transactions between two statements")
        .gauge("currentOpen", open, UNIT, "Open transactions")
        .counter("totalAborted", self.aborted.get(), UNIT, "Transactions aborted")
        .counter("totalCommitted", self.committed.get(), UNIT, "Transactions committed")
        .counter("totalStarted", self.started.get(), UNIT, "Transactions begun")
        .counter("totalPrepared", self.prepared.get(), UNIT, "Transactions prepared")
        .counter(
            "totalPreparedThenCommitted",
            self.prepared_committed.get(),
            UNIT,
            "Prepared transactions committed",
        )
        .counter(
            "totalPreparedThenAborted",
            self.prepared_aborted.get(),
            UNIT,
            "Prepared transactions aborted",
        )
        .gauge("currentPrepared", now_prepared, UNIT, "Transactions that are prepared now")
        .gauge(
            "currentOpenBytes",
            self.memory.bytes(),
            "bytes",
            "Memory that open transactions hold",
        );
    }
    /// `metrics.operation`.
    pub fn collect_too_large(&self, to: &mut Collector<'_>) {
        let help = "Transactions given up because they alone would fill the memory for transactions";
        to.counter("transactionTooLargeForCacheErrors", self.memory.too_large.get(), "transactions", help);
    }
    /// Nothing before the first commit.
    pub fn append_last(&self, d: &mut DocBuilder) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = &*last else { return };
        d.doc("lastCommittedTransaction", |t| {
            t.i64("operationCount", last.operations as i64);
            t.i64("oplogOperationBytes", last.bytes as i64);
            t.doc("writeConcern", |wc| last.write_concern.append_to(wc));
        });
    }
}
