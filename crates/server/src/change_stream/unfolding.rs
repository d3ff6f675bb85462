//! A transaction on its way into events, some at a time: it may be larger than memory, so a stream holds one of its entries.

use pando_access::TransactionHistory;
use pando_base::{Result, Timestamp};
use pando_bson::RawDoc;
use pando_oplog::entry::EntryView;
use pando_storage::{Bytes, OpLog};
use std::ops::Bound;

/// Where the first element of an array is.
const FIRST: usize = 4;

pub(super) struct Unfolding {
    /// The entry that made it visible: session and time are there.
    last: Bytes,
    /// Where the entries before that one are, newest first; those that have been read are gone.
    earlier: Vec<Timestamp>,
    /// The entry that is being read, the place of its next operation, and how many came before that.
    entry: Option<Bytes>,
    at: usize,
    index: i32,
}

/// Whether more operations are wanted.
pub(super) enum Wants {
    More,
    Pause,
}

impl Unfolding {
    pub(super) fn new(log: &OpLog, last: Bytes) -> Result<Unfolding> {
        let mut history = TransactionHistory::before(log, RawDoc::trusted(&last));
        let mut earlier = Vec::new();
        while let Some(entry) = history.next().map_err(|_| super::history_lost())? {
            earlier.push(EntryView::parse(RawDoc::trusted(&entry))?.ts);
        }
        let mut unfolding = Unfolding { last, earlier, entry: None, at: FIRST, index: 0 };
        unfolding.entry = unfolding.next_entry(log)?;
        Ok(unfolding)
    }
    pub(super) fn last(&self) -> &Bytes {
        &self.last
    }
    /// Hands over operations with their numbers; `false` at the end.
    pub(super) fn step(
        &mut self,
        log: &OpLog,
        mut each: impl FnMut(&EntryView<'_>, i32) -> Result<Wants>,
    ) -> Result<bool> {
        while let Some(entry) = self.entry.clone() {
            let view = EntryView::parse(RawDoc::trusted(&entry))?;
            let ops = view.operations().unwrap_or(RawDoc::empty());
            while let Some((op, next)) = ops.elem_at(self.at) {
                let index = self.index;
                (self.at, self.index) = (next, index + 1);
                if let Wants::Pause = each(&view.operation(op)?, index)? {
                    return Ok(true);
                }
            }
            self.entry = self.next_entry(log)?;
            self.at = FIRST;
        }
        Ok(false)
    }
    fn next_entry(&mut self, log: &OpLog) -> Result<Option<Bytes>> {
        let Some(ts) = self.earlier.pop() else {
            // The last one comes once.
            let is_read = self.entry.as_ref().is_some_and(|e| e.as_ptr() == self.last.as_ptr());
            return Ok((!is_read).then(|| self.last.clone()));
        };
        let found = log.read(Bound::Included(ts), false).next()?;
        let entry = found.filter(|(at, _)| *at == ts).ok_or_else(super::history_lost)?;
        Ok(Some(entry.1))
    }
}
