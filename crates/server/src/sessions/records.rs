//! The table of carried-out statements and transactions outlives the process: each checkpoint keeps what has changed of
//! it, however large it is and whoever uses a session, and a start reads all that the log says since.
//!
//! ```text
//!   log:    ...entries... upto ────── newest ───── stable ───── top
//!   kept:   all of them  ─┘   some     └─ nothing after it        └─ read by a start, newest first, down to `upto`
//! ```
//! A session has one row, which forgets what it said before. So nothing is kept that could still be rolled back, or be lost
//! with the log's end: what the sessions have done is looked at in one checkpoint, and kept in the first one after which all
//! of it is stable. The log keeps all that comes after `upto`. A member that copies this one gets the same documents, and
//! needs no log from before its copy.

use super::LogicalSessions;
use pando_access::{SessionRecords, TransactionHistory};
use pando_base::mutants::{Mutant as Planted, broken as planted};
use pando_base::panics::poisoned;
use pando_base::sync::Mutex;
use pando_base::{Error, OpTime, Result, SessionId, Timestamp, limits};
use pando_bson::{DocBuf, RawDoc};
use pando_oplog::EntryView;
use pando_session::retryable::{Mark, SessionsSnapshot};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// Whether the table knows all that it should: not while a rollback or an initial sync replaces it.
#[derive(Default)]
pub(crate) struct Known(AtomicU64);

/// Which rows are there, and what they say; `None` = not looked yet. Held while rows are written.
pub(crate) type Rows = Arc<Mutex<Option<BTreeMap<SessionId, Option<Mark>>>>>;

/// Whether what is stored may give way to what was known before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    OnlyForward,
    /// Another member's data has taken the place of this one's.
    Whatever,
}

/// What sessions had done at a checkpoint before, until all of it is certain. With it, of which [`Known`] it was.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<Option<(u64, SessionsSnapshot)>>);

impl Waiting {
    /// It replaces what waits, unless there is something: the older one is certain first.
    fn offer(&self, looked: impl FnOnce() -> Result<Option<(u64, SessionsSnapshot)>>) -> Result<()> {
        let mut waiting = self.0.lock().unwrap_or_else(poisoned);
        if waiting.is_none() {
            *waiting = looked()?;
        }
        Ok(())
    }
    fn take_if(&self, certain: impl FnOnce(&SessionsSnapshot) -> bool) -> Option<(u64, SessionsSnapshot)> {
        self.0.lock().unwrap_or_else(poisoned).take_if(|(_, kept)| certain(kept))
    }
    fn clear(&self) {
        drop(self.0.lock().unwrap_or_else(poisoned).take());
    }
}

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

impl LogicalSessions {
    /// The newest entry at or before what is applied here.
    fn newest_applied(&self) -> Result<OpTime> {
        let visible = self.storage.log().visible();
        let following = self.replication.is_following();
        self.newest_at(if following {
            visible.min(self.replication.progress.applied().op_time.ts)
        } else {
            visible
        })
    }
    fn newest_at(&self, ts: Timestamp) -> Result<OpTime> {
        let newest = self.storage.log().read(Bound::Included(ts), true).next()?;
        let Some((_, entry)) = newest else { return Ok(OpTime::NULL) };
        Ok(EntryView::parse(RawDoc::trusted(&entry))?.op_time())
    }
    /// Sessions that an operation takes from now on know all that is applied here.
    pub(crate) fn note_known(&self) -> Result<()> {
        if self.known.now().is_some() {
            self.retryable.note_known(self.newest_applied()?);
        }
        Ok(())
    }
    /// What sessions have done, all entries up to some point included; `None` when that is not known.
    pub(super) fn settled(&self) -> Result<Option<(u64, SessionsSnapshot)>> {
        let known = self.known.now();
        // First the point: what is written after it may or may not be seen.
        let upto = self.newest_applied()?;
        let Some(number) = known.filter(|_| !upto.is_null()) else { return Ok(None) };
        let kept = self.retryable.collect(upto);
        // Null: somebody has used a session since before anything was known.
        let is_known = !kept.upto.is_null() && self.known.now() == known;
        Ok(is_known.then_some((number, kept)))
    }
    /// The same as documents; `None` also when they are too many for a reply.
    pub(crate) fn collect(&self) -> Result<Option<SessionRecords>> {
        let Some((_, kept)) = self.settled()? else { return Ok(None) };
        let (mut bytes, mut image_bytes) = (0, 0);
        let mut sessions = Vec::new();
        for (_, doc) in kept.documents(|_| true, &mut image_bytes) {
            bytes += doc.byte_len();
            sessions.push(doc);
            if bytes > limits::SESSION_RECORDS_BYTES_MAX + limits::SESSION_RECORD_IMAGES_BYTES_MAX {
                return Ok(None);
            }
        }
        let fits = bytes - image_bytes <= limits::SESSION_RECORDS_BYTES_MAX;
        Ok(fits.then_some(SessionRecords { upto: kept.upto, end: None, sessions }))
    }
    /// The first entry of a transaction that was not over at `at`; the end of what is known when there is none.
    pub(crate) fn oldest_active(&self, kept: &SessionRecords, at: Timestamp) -> Result<Timestamp> {
        let mut oldest = kept.newest();
        for last in kept.active_at(at) {
            let parts = TransactionHistory::new(self.storage.log(), last).oldest_first()?;
            if let Some(first) = parts.first() {
                oldest = oldest.min(EntryView::parse(RawDoc::trusted(first))?.ts);
            }
        }
        Ok(oldest)
    }
    /// Part of each checkpoint.
    pub(crate) async fn keep(&self) -> Result<()> {
        // What waited, and what is looked at now: where nothing has been written for a while that is certain at once.
        for _ in 0..2 {
            self.waiting.offer(|| self.settled())?;
            // What is not stable may be rolled back, what is not synced lost.
            let certain = self.storage.stable().min(self.storage.log().durable_entry());
            let early = planted(Planted::SessionsKeptEarly);
            let is_certain = |kept: &SessionsSnapshot| kept.newest().ts <= certain || early;
            let Some((number, mut kept)) = self.waiting.take_if(is_certain) else { break };
            if early {
                kept.upto = kept.upto.min(self.newest_at(certain)?);
            }
            if self.known.now() == Some(number) {
                self.store(kept, Order::OnlyForward).await?;
            }
        }
        Ok(())
    }
    /// The end of an initial sync: the table holds what the source knew, and all entries since, up to `upto`.
    pub(crate) async fn keep_copied(&self, upto: OpTime) -> Result<()> {
        self.store(self.retryable.collect(upto), Order::Whatever).await
    }
    async fn store(&self, kept: SessionsSnapshot, order: Order) -> Result<()> {
        let (maintenance, storage) = (self.maintenance.clone(), self.storage.clone());
        let rows = self.rows.clone();
        let done = self.env.offload(move || {
            let mut rows = rows.lock().unwrap_or_else(poisoned);
            // Two checkpoints at once: the log may have lost by now what came after the older of them.
            let is_older = maintenance.sessions_upto()?.is_some_and(|stored| stored > kept.upto);
            if is_older && order == Order::OnlyForward {
                return Ok(());
            }
            let known = match rows.take() {
                Some(known) => known,
                None => maintenance.sessions_with_rows()?.into_iter().map(|id| (id, None)).collect(),
            };
            let marks: BTreeMap<_, _> = kept.marks().map(|(id, mark)| (id, Some(mark))).collect();
            let gone = known.keys().copied().filter(|id| !marks.contains_key(id));
            let mut image_bytes = 0;
            let changed = kept.documents(|id| known.get(id) != marks.get(id), &mut image_bytes);
            let written = maintenance.store_session_records(changed, gone);
            // After an error nobody knows which rows are there.
            written?;
            if maintenance.sessions_upto()? != Some(kept.upto) {
                maintenance.set_sessions_upto(kept.upto)?;
            }
            storage.sync_local()?;
            *rows = Some(marks);
            Ok(())
        });
        done.await.unwrap_or_else(|| Err(Error::internal("keeping the sessions failed")))
    }
    /// What was kept last, unless the log has gone another way since. With it, the point up to which it counts.
    pub(crate) fn kept(&self) -> Result<Option<(SessionRecords, OpTime)>> {
        let Some(kept) = self.maintenance.session_records()? else { return Ok(None) };
        let mark = kept.end.unwrap_or(kept.upto);
        let found = self.storage.log().first_from(mark.ts)?;
        // One entry in common means that all before it are the same.
        let same = match found {
            Some((ts, entry)) if ts == mark.ts => {
                EntryView::parse(RawDoc::trusted(&entry))?.op_time() == mark
            }
            // A log that begins after it was copied from there on, or has lost its front.
            Some(_) => kept.end.is_none() && self.log_begins_after(mark.ts)?,
            None => false,
        };
        let counts_upto = if kept.end.is_some() { OpTime::new(Timestamp::MAX, i64::MAX) } else { kept.upto };
        Ok(same.then_some((kept, counts_upto)))
    }
    fn log_begins_after(&self, ts: Timestamp) -> Result<bool> {
        Ok(self.storage.log().read(Bound::Unbounded, false).next()?.is_some_and(|(first, _)| first > ts))
    }
    /// Before the table is made anew.
    pub(crate) fn forget(&self) {
        self.known.unset();
        self.waiting.clear();
        self.retryable.clear();
    }
    /// What another member has kept, in the place of what is known here.
    pub(crate) fn take(&self, sessions: &[DocBuf]) {
        self.forget();
        let now = self.env.clock.mono();
        for doc in sessions {
            self.retryable.restore_record(doc, OpTime::new(Timestamp::MAX, i64::MAX), now);
        }
    }
}
