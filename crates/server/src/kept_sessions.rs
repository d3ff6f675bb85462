//! The table of carried-out statements and transactions outlives the process: each checkpoint keeps it, and a start reads
//! only what the log says since.
//!
//! ```text
//!   log:    ...entries... upto ───────── end ──────── top
//!   kept:   all of them  ─┘   some        │            └─ read by a start, newest first, down to `upto`
//!                                         └─ must be in the log, or a rollback has taken back what is kept
//! ```
//! A member that copies this one gets the same documents, and needs no log from before its copy.

use crate::Server;
use pando_base::{Error, OpTime, Result, Timestamp, limits};
use pando_bson::{DocBuf, RawDoc};
use pando_catalog::{KeptSessions, TransactionHistory};
use pando_oplog::EntryView;
use pando_session::retryable::Collected;
use std::ops::Bound;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::time::Duration;

/// Whether the table knows all that it should: not while a rollback or an initial sync replaces it.
#[derive(Default)]
pub(crate) struct Known(AtomicU64);

impl Known {
    /// Odd: all is known. Each change is another number.
    fn now(&self) -> Option<u64> {
        Some(self.0.load(Acquire)).filter(|n| n % 2 == 1)
    }
    pub(crate) fn set(&self) {
        self.0.fetch_or(1, AcqRel);
    }
    pub(crate) fn unset(&self) {
        if self.now().is_some() {
            self.0.fetch_add(1, AcqRel);
        }
    }
}

impl Server {
    /// The newest entry at or before what is applied here.
    fn newest_applied(&self) -> Result<OpTime> {
        let log = self.storage.log();
        let visible = log.visible();
        let upto =
            if self.is_following() { visible.min(self.progress.applied().op_time.ts) } else { visible };
        let Some((_, entry)) = log.read(Bound::Included(upto), true).next()? else { return Ok(OpTime::NULL) };
        Ok(EntryView::parse(RawDoc::trusted(&entry))?.op_time())
    }
    /// What sessions have done, all entries up to some point included; `None` when that is not known, one is in use for
    /// too long, or there is too much.
    pub(crate) async fn collect_sessions(&self) -> Result<Option<KeptSessions>> {
        let known = self.sessions_known.now();
        // First the point: what is written after it may or may not be seen.
        let upto = self.newest_applied()?;
        if known.is_none() || upto.is_null() {
            return Ok(None);
        }
        let kept = self.collect_sessions_upto(upto).await;
        Ok(kept.filter(|_| self.sessions_known.now() == known))
    }
    /// The first entry of a transaction that was not over at `at`; the end of what is known when there is none.
    pub(crate) fn oldest_active(&self, kept: &KeptSessions, at: Timestamp) -> Result<Timestamp> {
        let mut oldest = kept.end.ts;
        for last in kept.active_at(at) {
            let parts = TransactionHistory::new(self.storage.log(), last).oldest_first()?;
            if let Some(first) = parts.first() {
                oldest = oldest.min(EntryView::parse(RawDoc::trusted(first))?.ts);
            }
        }
        Ok(oldest)
    }
    async fn collect_sessions_upto(&self, upto: OpTime) -> Option<KeptSessions> {
        let mut kept = Collected::default();
        let mut tries = 0;
        while !self.retryable.collect(&mut kept) {
            tries += 1;
            if tries > limits::KEPT_SESSIONS_TRIES_MAX {
                return None;
            }
            self.env.clock.sleep(Duration::from_millis(limits::KEPT_SESSIONS_RETRY_MS)).await;
        }
        let fits = kept.bytes <= limits::KEPT_SESSIONS_BYTES_MAX;
        fits.then(|| KeptSessions { upto, end: kept.newest.max(upto), sessions: kept.sessions })
    }
    /// Part of each checkpoint.
    pub(crate) async fn keep_sessions(&self) -> Result<()> {
        let known = self.catalog.kept_sessions_range()?;
        if known.is_some_and(|(upto, _)| self.newest_applied().is_ok_and(|at| at == upto)) {
            return Ok(());
        }
        // What was kept before stays good: a start reads a little more.
        match self.collect_sessions().await? {
            Some(kept) => self.store_sessions(kept).await,
            None => Ok(()),
        }
    }
    /// The end of an initial sync: the table holds what the source knew, and all entries since, up to `upto`.
    pub(crate) async fn keep_copied_sessions(&self, upto: OpTime) -> Result<()> {
        match self.collect_sessions_upto(upto).await {
            Some(kept) => self.store_sessions(kept).await,
            None => Err(Error::internal("the sessions of an initial sync cannot be kept")),
        }
    }
    async fn store_sessions(&self, kept: KeptSessions) -> Result<()> {
        let catalog = self.catalog.clone();
        let done = self.env.offload(move || {
            catalog.keep_sessions(&kept)?;
            catalog.storage().sync_local()
        });
        done.await.unwrap_or_else(|| Err(Error::internal("keeping the sessions failed")))
    }
    /// What was kept last, unless the log has lost an entry that it knows.
    pub(crate) fn kept_sessions(&self) -> Result<Option<KeptSessions>> {
        let Some((_, end)) = self.catalog.kept_sessions_range()? else { return Ok(None) };
        let Some((ts, entry)) = self.storage.log().read(Bound::Included(end.ts), false).next()? else {
            return Ok(None);
        };
        // One entry in common means that all before it are the same.
        if ts != end.ts || EntryView::parse(RawDoc::trusted(&entry))?.op_time() != end {
            return Ok(None);
        }
        self.catalog.kept_sessions()
    }
    /// Before the table is made anew.
    pub(crate) fn forget_sessions(&self) {
        self.sessions_known.unset();
        self.retryable.clear();
    }
    /// What another member has kept, in the place of what is known here.
    pub(crate) fn take_sessions(&self, sessions: &[DocBuf]) {
        self.forget_sessions();
        let now = self.env.clock.mono();
        for doc in sessions {
            self.retryable.restore_kept(doc, now);
        }
    }
}
