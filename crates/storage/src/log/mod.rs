//! The oplog: the only journal of the server.
//!
//! A commit fills its reserved slots; the flusher writes the hole-free prefix and syncs it, every 100 ms or when
//! someone waits (group commit). Entries are the oplog documents themselves, so what replication reads, what
//! recovery replays and what makes a write durable is one sequence of bytes.
//!
//! ```text
//!   reserve ──► [t1][t2][  ][t4]      slots: t3 is a hole
//!                    └ visible, all_durable
//!                └ durable (synced)   every position on disk is below every hole
//! ```

pub(crate) mod slots;

use crate::bytes::Bytes;
use crate::snapshot::Snapshot;
use pando_base::{Error, Result, Timestamp};
use pando_bson::RawDoc;
use pando_env::{Env, sync::Notify};
use slots::{Place, Slotting};
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Entries kept in memory for readers after they are on disk.
const RECENT_BYTES_MAX: usize = 16 << 20;

pub(crate) struct LogInner {
    env: Env,
    state: Mutex<Slotting>,
    durable: AtomicU64,
    /// Highest timestamp someone waits to be durable.
    wanted: AtomicU64,
    pub(crate) visible_changed: Notify,
    durable_changed: Notify,
    flush_wanted: Notify,
    poison: OnceLock<Error>,
    flushing: Mutex<()>,
}

/// Handle on the oplog; cheap to clone.
#[derive(Clone)]
pub struct OpLog(pub(crate) Arc<LogInner>);

/// One reserved timestamp. Dropping it unused closes its hole.
#[must_use]
pub struct Slot {
    ts: u64,
    place: Place,
    log: Option<Arc<LogInner>>,
}

impl Slot {
    pub fn ts(&self) -> Timestamp {
        Timestamp(self.ts)
    }
    /// Hands the place over to a commit, which must close it.
    pub(crate) fn take(mut self) -> (u64, Place) {
        self.log = None;
        (self.ts, self.place)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(log) = self.log.take() {
            log.close([(self.place, None)].into_iter());
        }
    }
}

/// Consecutive reserved timestamps; iterate to use them one by one.
pub struct Slots {
    first: u64,
    group: u64,
    next: u32,
    n: u32,
    log: Arc<LogInner>,
}

impl Slots {
    pub fn first_ts(&self) -> Timestamp {
        Timestamp(self.first)
    }
    pub fn last_ts(&self) -> Timestamp {
        Timestamp(self.first + u64::from(self.n) - 1)
    }
}
impl Iterator for Slots {
    type Item = Slot;
    fn next(&mut self) -> Option<Slot> {
        if self.next == self.n {
            return None;
        }
        let index = self.next;
        self.next += 1;
        Some(Slot {
            ts: self.first + u64::from(index),
            place: Place { group: self.group, index },
            log: Some(self.log.clone()),
        })
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.n - self.next) as usize;
        (left, Some(left))
    }
}
impl ExactSizeIterator for Slots {}
impl Drop for Slots {
    fn drop(&mut self) {
        let rest = self.next..self.n;
        if !rest.is_empty() {
            let group = self.group;
            self.log.close(rest.map(|index| (Place { group, index }, None)));
        }
    }
}

impl LogInner {
    pub(crate) fn state(&self) -> MutexGuard<'_, Slotting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Closes slots, all of them in one moment.
    pub(crate) fn close(&self, slots: impl Iterator<Item = (Place, Option<Bytes>)>) {
        let grew = {
            let mut state = self.state();
            slots.fold(false, |grew, (place, entry)| state.close(place, entry) | grew)
        };
        if grew {
            self.visible_changed.bump();
        }
    }
}

impl OpLog {
    pub(crate) fn new(env: Env) -> OpLog {
        OpLog(Arc::new(LogInner {
            env,
            state: Mutex::default(),
            durable: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            visible_changed: Notify::new(),
            durable_changed: Notify::new(),
            flush_wanted: Notify::new(),
            poison: OnceLock::new(),
            flushing: Mutex::default(),
        }))
    }

    /// Reserves `n` (at least 1) consecutive timestamps above every one given before (R-TIME-2).
    pub fn reserve(&self, n: usize) -> Slots {
        let n = u32::try_from(n.max(1)).unwrap_or(u32::MAX);
        let wall_secs = (self.0.env.clock.wall_ms().max(0) / 1000) as u64;
        let (first, group) = self.0.state().reserve(n, wall_secs);
        Slots { first, group, next: 0, n, log: self.0.clone() }
    }
    /// Reserves one timestamp.
    pub fn reserve_one(&self) -> Slot {
        let mut slots = self.reserve(1);
        slots.next().expect("one slot was reserved")
    }
    /// Later reservations will be above `ts` (a cluster time learned from elsewhere).
    pub fn advance_clock(&self, ts: Timestamp) {
        let mut state = self.0.state();
        state.last_reserved = state.last_reserved.max(ts.0);
    }
    /// The newest timestamp handed out or learned.
    pub fn clock(&self) -> Timestamp {
        Timestamp(self.0.state().last_reserved)
    }
    /// Highest timestamp with no hole at or below it (R-OPLOG-10). Says nothing about the disk.
    pub fn all_durable(&self) -> Timestamp {
        Timestamp(self.0.state().all_durable)
    }
    /// Newest entry that oplog readers may see.
    pub fn visible(&self) -> Timestamp {
        Timestamp(self.0.state().visible)
    }
    /// Newest entry of the hole-free prefix.
    pub fn last(&self) -> Timestamp {
        Timestamp(self.0.state().last)
    }
    /// Everything up to here is synced to disk.
    pub fn durable(&self) -> Timestamp {
        Timestamp(self.0.durable.load(Ordering::Acquire))
    }
    /// Oldest entry; zero when the log is empty.
    pub fn first(&self) -> Timestamp {
        Timestamp(self.0.state().recent.front().map_or(0, |(ts, _)| *ts))
    }
    /// The error after which the log accepts nothing more; the process must stop.
    pub fn poisoned(&self) -> Option<Error> {
        self.0.poison.get().cloned()
    }

    /// Resolves once an entry after `after` is visible.
    pub fn wait_visible(&self, after: Timestamp) -> impl Future<Output = ()> + Send + 'static {
        let log = self.clone();
        async move {
            loop {
                let seen = log.0.visible_changed.version();
                if log.visible() > after {
                    return;
                }
                log.0.visible_changed.changed(seen).await;
            }
        }
    }
    /// Resolves once everything up to `upto` is synced; asks the flusher to hurry. An error means the log is
    /// poisoned and the write's fate is unknown.
    pub fn wait_durable(&self, upto: Timestamp) -> impl Future<Output = Result<()>> + Send + 'static {
        let log = self.clone();
        async move {
            loop {
                let seen = log.0.durable_changed.version();
                if log.durable() >= upto {
                    return Ok(());
                }
                if let Some(e) = log.poisoned() {
                    return Err(e);
                }
                if log.0.wanted.fetch_max(upto.0, Ordering::AcqRel) < upto.0 {
                    log.0.flush_wanted.bump();
                }
                log.0.durable_changed.changed(seen).await;
            }
        }
    }
    /// Resolves when someone waits for durability: the flusher task sleeps on this and its timer.
    pub fn wait_flush_wanted(&self) -> impl Future<Output = ()> + Send + 'static {
        let log = self.clone();
        async move {
            loop {
                let seen = log.0.flush_wanted.version();
                if log.0.wanted.load(Ordering::Acquire) > log.durable().0 {
                    return;
                }
                log.0.flush_wanted.changed(seen).await;
            }
        }
    }
    /// Writes and syncs the hole-free prefix as it stands now. Commits go on meanwhile.
    pub fn flush_once(&self) -> Result<()> {
        let _one = self.0.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        let upto = {
            let mut state = self.0.state();
            while state.recent_bytes > RECENT_BYTES_MAX {
                let Some((_, old)) = state.recent.pop_front() else { break };
                state.recent_bytes -= old.len();
            }
            state.last.max(state.all_durable)
        };
        self.0.durable.fetch_max(upto, Ordering::AcqRel);
        self.0.durable_changed.bump();
        Ok(())
    }

    /// Entries from `from` on that are visible now, oldest first; with `backward`, from `from` down.
    pub fn read(&self, from: Bound<Timestamp>, backward: bool) -> OplogCursor {
        OplogCursor { log: self.clone(), from, backward, buffer: VecDeque::new(), limit: self.visible() }
    }

    pub(crate) fn snapshot(&self, read: Option<u64>) -> Snapshot {
        self.0.state().snapshot(read)
    }
    pub(crate) fn unpin(&self, pin: u64) {
        self.0.state().unpin(pin);
    }
    /// Appends entries that another member wrote, in order; readers see them after [`OpLog::publish`].
    pub fn append_applied(&self, entries: &[(Timestamp, &RawDoc)]) -> Result<()> {
        let mut state = self.0.state();
        if state.has_open() {
            return Err(Error::internal("the log takes foreign entries only while no slot is open"));
        }
        for (ts, doc) in entries {
            if ts.0 <= state.last {
                return Err(Error::internal(format!("oplog entry {ts} does not come after {}", Timestamp(state.last))));
            }
            state.last_reserved = state.last_reserved.max(ts.0);
            state.push_recent(ts.0, Bytes::from(doc.as_bytes()));
        }
        Ok(())
    }
    /// Everything applied up to `upto` becomes the point where `ReadAt::Latest` reads.
    pub fn publish(&self, upto: Timestamp) {
        {
            let mut state = self.0.state();
            state.committed = state.committed.max(upto.0);
            state.all_durable = state.all_durable.max(upto.0);
            state.visible = state.visible.max(upto.0.min(state.last));
            state.last_reserved = state.last_reserved.max(upto.0);
        }
        self.0.visible_changed.bump();
    }
}

/// A walk over the log. It ends at the point visible when it was made; [`OplogCursor::refresh`] moves that on.
pub struct OplogCursor {
    log: OpLog,
    from: Bound<Timestamp>,
    backward: bool,
    buffer: VecDeque<(u64, Bytes)>,
    limit: Timestamp,
}

impl OplogCursor {
    const BATCH: usize = 256;

    /// The next entry, or `None` at the end (for now).
    pub fn next(&mut self) -> Result<Option<(Timestamp, Bytes)>> {
        if self.buffer.is_empty() {
            self.fill()?;
        }
        let Some((ts, entry)) = self.buffer.pop_front() else { return Ok(None) };
        self.from = Bound::Excluded(Timestamp(ts));
        Ok(Some((Timestamp(ts), entry)))
    }
    /// Lets the walk go on to what is visible now.
    pub fn refresh(&mut self) {
        self.limit = self.log.visible();
    }
    fn fill(&mut self) -> Result<()> {
        let state = self.log.0.state();
        let recent = &state.recent;
        let (limit, backward) = (self.limit.0, self.backward);
        let below = |t: u64| recent.partition_point(|(ts, _)| *ts < t);
        if backward {
            let end = match self.from {
                Bound::Unbounded => below(limit.saturating_add(1)),
                Bound::Included(t) => below(t.0.min(limit).saturating_add(1)),
                Bound::Excluded(t) => below(t.0.min(limit.saturating_add(1))),
            };
            let start = end.saturating_sub(Self::BATCH);
            self.buffer.extend(recent.range(start..end).rev().cloned());
        } else {
            let start = match self.from {
                Bound::Unbounded => 0,
                Bound::Included(t) => below(t.0),
                Bound::Excluded(t) => below(t.0.saturating_add(1)),
            };
            let end = below(limit.saturating_add(1)).min(start + Self::BATCH).max(start);
            self.buffer.extend(recent.range(start..end).cloned());
        }
        Ok(())
    }
}
