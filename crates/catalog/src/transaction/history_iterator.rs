//! The entries of one transaction, from the last to the first, wherever they lie in the log.

use crate::Catalog;
use pando_base::{Error, OpTime, Result, Timestamp};
use pando_bson::{RawDoc, Value};
use pando_oplog::EntryView;
use pando_storage::{Bytes, OpLog};
use std::ops::Bound;

/// Walks `prevOpTime` from entry to entry.
pub struct TransactionHistory {
    log: OpLog,
    next: Timestamp,
}

impl TransactionHistory {
    /// Begins with the entry at `last`.
    pub fn new(log: &OpLog, last: Timestamp) -> TransactionHistory {
        TransactionHistory { log: log.clone(), next: last }
    }
    /// Begins with the entry before this one.
    pub fn before(log: &OpLog, entry: &RawDoc) -> TransactionHistory {
        TransactionHistory::new(log, previous_of(entry))
    }
    /// The entry before those given so far; an error when the log has lost it.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Bytes>> {
        if self.next.is_zero() {
            return Ok(None);
        }
        let found = self.log.read(Bound::Included(self.next), false).next()?;
        let Some((_, entry)) = found.filter(|(ts, _)| *ts == self.next) else {
            return Err(Error::internal(format!(
                "the log lacks the entry of a transaction at {}",
                self.next
            )));
        };
        self.next = previous_of(RawDoc::trusted(&entry));
        Ok(Some(entry))
    }
    /// All that are left, oldest first.
    pub fn oldest_first(mut self) -> Result<Vec<Bytes>> {
        let mut all = Vec::new();
        while let Some(entry) = self.next()? {
            all.push(entry);
        }
        all.reverse();
        Ok(all)
    }
}

/// The timestamp of the entry before, in the same transaction.
fn previous_of(entry: &RawDoc) -> Timestamp {
    match entry.get_path("prevOpTime.ts") {
        Some(Value::Timestamp(ts)) => ts,
        _ => Timestamp::ZERO,
    }
}

impl Catalog {
    /// The entries of a transaction before its last one, oldest first, from this node's own log.
    pub fn earlier_parts(&self, last: &RawDoc) -> Result<Vec<Bytes>> {
        let history = TransactionHistory::before(self.storage().log(), last);
        history
            .oldest_first()
            .map_err(|e| e.context(format_args!("of the transaction that ends with {last}")))
    }
    /// Where the first of them is.
    pub fn first_part(&self, last: &RawDoc) -> Result<OpTime> {
        let mut history = TransactionHistory::before(self.storage().log(), last);
        let mut at = EntryView::parse(last)?.op_time();
        while let Some(entry) = history.next()? {
            at = EntryView::parse(RawDoc::trusted(&entry))?.op_time();
        }
        Ok(at)
    }
}
