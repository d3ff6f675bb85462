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

pub(crate) mod files;
pub(crate) mod local;
mod payload;
mod record;
mod segment;
pub(crate) mod slots;

use crate::bytes::Bytes;
use files::LogFiles;
use pando_base::mutants::{Mutant as Planted, broken as planted};
use pando_base::panics::poisoned;
use pando_base::sync::Mutex;
use pando_base::{Error, Result, Timestamp, limits};
use pando_encryption::Keys;
use pando_env::{Env, sync::Notify};
use payload::Payloads;
use slots::{Place, Slotting};
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};

/// See [`OpLog::before_sync`].
type BeforeSync = Box<dyn Fn() + Send + Sync>;

pub(crate) struct LogInner {
    env: Env,
    pub(crate) files: LogFiles,
    bytes_max: AtomicU64,
    /// Entries from here on stay whatever the size (a backup, a minimum retention); `u64::MAX` = no wish.
    keep_from: AtomicU64,
    state: Mutex<Slotting>,
    durable: AtomicU64,
    /// Newest entry at or below `durable`, which may also be a place that was reserved and given back.
    durable_entry: AtomicU64,
    /// Highest timestamp someone waits to be durable.
    wanted: AtomicU64,
    pub(crate) visible_changed: Notify,
    durable_changed: Notify,
    flush_wanted: Notify,
    poison: OnceLock<Error>,
    flushing: Mutex<()>,
    before_sync: OnceLock<BeforeSync>,
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
        let state = self.state.lock().unwrap_or_else(poisoned);
        #[cfg(debug_assertions)]
        state.check();
        state
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
    /// Opens the log files and finds their end; a torn tail is cut off.
    pub(crate) fn open(
        env: Env,
        bytes_max: u64,
        segment: Option<u64>,
        keys: Option<Arc<Keys>>,
    ) -> Result<OpLog> {
        let fitting = (bytes_max / limits::LOG_SEGMENTS_MIN)
            .clamp(limits::LOG_SEGMENT_BYTES_MIN, limits::LOG_SEGMENT_BYTES_MAX);
        let segment = segment.unwrap_or(fitting);
        let files = LogFiles::open(env.disk.clone(), Payloads::new("oplog", keys), segment)?;
        let last = files.last();
        let mut state = Slotting::default();
        state.reset(last);
        state.all_in_memory = last == 0;
        Ok(OpLog(Arc::new(LogInner {
            env,
            files,
            bytes_max: AtomicU64::new(bytes_max),
            keep_from: AtomicU64::new(u64::MAX),
            state: Mutex::new(state),
            durable: AtomicU64::new(last),
            durable_entry: AtomicU64::new(last),
            wanted: AtomicU64::new(0),
            visible_changed: Notify::new(),
            durable_changed: Notify::new(),
            flush_wanted: Notify::new(),
            poison: OnceLock::new(),
            flushing: Mutex::default(),
            before_sync: OnceLock::new(),
        })))
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
    /// After opening: timestamps up to `ts` are taken, whether or not an entry bears witness of them.
    pub(crate) fn start_above(&self, ts: u64) {
        let mut state = self.0.state();
        state.last_reserved = state.last_reserved.max(ts);
        state.committed = state.committed.max(ts);
        state.all_durable = state.all_durable.max(ts);
        self.0.durable.fetch_max(ts, Ordering::AcqRel);
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
    /// Newest entry that is synced to disk: what may be told to others as a position.
    pub fn durable_entry(&self) -> Timestamp {
        Timestamp(self.0.durable_entry.load(Ordering::Acquire))
    }
    /// Oldest entry; zero when the log is empty.
    pub fn first(&self) -> Timestamp {
        let on_disk = self.0.files.first();
        let in_memory = self.0.state().recent.front().map_or(0, |(ts, _)| *ts);
        Timestamp(if on_disk == 0 { in_memory } else { on_disk })
    }
    /// Bytes of the log files.
    pub fn bytes(&self) -> u64 {
        self.0.files.bytes()
    }
    /// The size above which the oldest files go.
    pub fn bytes_max(&self) -> u64 {
        self.0.bytes_max.load(Ordering::Relaxed)
    }
    pub fn set_bytes_max(&self, bytes: u64) {
        self.0.bytes_max.store(bytes, Ordering::Relaxed);
    }
    /// Entries from `ts` on are kept whatever the size; `None` takes the wish back (R-OPLOG-12 c, d).
    pub fn set_keep_from(&self, ts: Option<Timestamp>) {
        self.0.keep_from.store(ts.map_or(u64::MAX, |t| t.0), Ordering::Relaxed);
    }
    /// The error after which the log accepts nothing more; the process must stop.
    pub fn poisoned(&self) -> Option<Error> {
        self.0.poison.get().cloned()
    }

    /// The same as a result: asked before anything is written.
    pub(crate) fn check(&self) -> Result<()> {
        self.poisoned().map_or(Ok(()), Err)
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
    /// Whether a flush would move the durable point.
    pub fn has_unsynced(&self) -> bool {
        let state = self.0.state();
        state.last.max(state.all_durable) > self.0.durable.load(Ordering::Acquire)
    }
    /// Resolves when someone waits for durability: the flusher task sleeps on this and its timer.
    pub fn wait_flush_wanted(&self) -> impl Future<Output = ()> + Send + 'static {
        let log = self.clone();
        async move {
            loop {
                let seen = log.0.flush_wanted.version();
                // Somebody may wait for what is not there yet, or was cut off.
                if log.0.wanted.load(Ordering::Acquire) > log.durable().0 && log.has_unsynced() {
                    return;
                }
                log.0.flush_wanted.changed(seen).await;
            }
        }
    }
    /// Once, by whoever keeps a file of its own about units: `first` is called before any entries reach the disk. It may block.
    pub fn before_sync(&self, first: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.before_sync.set(Box::new(first));
    }
    /// Writes and syncs the hole-free prefix as it stands now. Commits go on meanwhile. A failure poisons the
    /// log: what the disk holds is unknown, so the process must stop.
    // tour: insert 8/9
    pub fn flush_once(&self) -> Result<()> {
        let _one = self.0.flushing.lock().unwrap_or_else(poisoned);
        self.check()?;
        let durable = self.0.durable.load(Ordering::Acquire);
        let (entries, upto, last) = {
            let mut state = self.0.state();
            let last = state.last;
            let upto = last.max(state.all_durable);
            let from = state.recent.partition_point(|(ts, _)| *ts <= durable);
            let entries: Vec<(u64, Bytes)> = state.recent.range(from..).cloned().collect();
            while state.recent_bytes > limits::LOG_RECENT_BYTES_MAX
                && state.recent.front().is_some_and(|(ts, _)| *ts <= durable)
            {
                let Some((_, old)) = state.recent.pop_front() else { break };
                state.recent_bytes -= old.len();
                state.all_in_memory = false;
            }
            (entries, upto, last)
        };
        if let Some(first) = self.0.before_sync.get().filter(|_| !entries.is_empty()) {
            first();
        }
        if let Err(e) = self.0.files.append(entries.iter().map(|(ts, entry)| (*ts, &**entry))) {
            return Err(self.poison(e.context("the log cannot be written")));
        }
        self.0.durable_entry.fetch_max(last, Ordering::AcqRel);
        let ahead = if planted(Planted::DurableAheadOfSync) { self.0.state().last } else { upto };
        self.0.durable.fetch_max(ahead.max(upto), Ordering::AcqRel);
        self.0.durable_changed.bump();
        Ok(())
    }
    /// Refuses everything from now on; the first reason stays.
    pub(crate) fn poison(&self, e: Error) -> Error {
        let e = self.0.poison.get_or_init(|| e).clone();
        self.0.durable_changed.bump();
        self.0.flush_wanted.bump();
        e
    }

    /// Drops whole files from the front: those that the size bound asks for, never one that recovery from
    /// `recovery`, a prepared transaction (`pinned`) or a reader's wish still needs (R-OPLOG-12).
    pub(crate) fn truncate_front(&self, recovery: u64, pinned: Option<u64>) -> Result<()> {
        let keep = pinned.unwrap_or(u64::MAX).min(self.0.keep_from.load(Ordering::Relaxed));
        let max = self.bytes_max();
        self.drop_front(|left, last| left >= max && last <= recovery && last < keep)
    }
    fn drop_front(&self, may_drop: impl FnMut(u64, u64) -> bool) -> Result<()> {
        self.check()?;
        if self.0.files.truncate_front(may_drop)? == 0 {
            return Ok(());
        }
        // Readers must not find in memory what is no longer part of the log.
        let first = self.0.files.first();
        let mut state = self.0.state();
        while state.recent.front().is_some_and(|(ts, _)| *ts < first) {
            let Some((_, old)) = state.recent.pop_front() else { break };
            state.recent_bytes -= old.len();
        }
        state.all_in_memory = false;
        Ok(())
    }
    /// Drops files that end at or before `upto`, whatever the size (tests, `replSetResizeOplog`).
    pub fn truncate_front_to(&self, upto: Timestamp) -> Result<()> {
        self.drop_front(|_, last| last <= upto.0)
    }
    /// Removes every entry above `ts`. No slot may be open.
    pub(crate) fn truncate_after(&self, ts: Timestamp) -> Result<()> {
        let _one = self.0.flushing.lock().unwrap_or_else(poisoned);
        self.check()?;
        let mut state = self.0.state();
        if state.has_open() {
            return Err(Error::internal("the log is cut only while no slot is open"));
        }
        if let Err(e) = self.0.files.truncate_after(ts.0) {
            return Err(self.poison(e));
        }
        while state.recent.back().is_some_and(|(t, _)| *t > ts.0) {
            if let Some((_, entry)) = state.recent.pop_back() {
                state.recent_bytes -= entry.len();
            }
        }
        let last = state.recent.back().map_or_else(|| self.0.files.last(), |(t, _)| *t);
        let clock = state.last_reserved;
        state.reset(last);
        state.last_reserved = clock;
        self.0.wanted.fetch_min(ts.0, Ordering::AcqRel);
        let durable = self.0.durable.load(Ordering::Acquire).min(ts.0);
        self.0.durable.store(durable, Ordering::Release);
        self.0.durable_entry.fetch_min(last, Ordering::AcqRel);
        drop(state);
        self.0.visible_changed.bump();
        Ok(())
    }

    /// From now on entries come from another member. Places that were reserved here and given back count no more: a
    /// new primary may put entries there, which must reach the disk and must not be seen before they are applied. No
    /// slot may be open.
    pub fn follow(&self) -> Result<()> {
        let _one = self.0.flushing.lock().unwrap_or_else(poisoned);
        let mut state = self.0.state();
        if state.has_open() {
            return Err(Error::internal("the log follows another one only while no slot is open"));
        }
        if state.last > 0 {
            let (last, clock) = (state.last, state.last_reserved);
            state.reset(last);
            state.last_reserved = clock;
            self.0.durable.fetch_min(last, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Entries from `from` on that are visible now, oldest first; with `backward`, from `from` down.
    pub fn read(&self, from: Bound<Timestamp>, backward: bool) -> OplogCursor {
        let limit = self.visible();
        let batch = OplogCursor::BATCH;
        OplogCursor { log: self.clone(), from, backward, buffer: VecDeque::new(), limit, batch }
    }
    /// The first entry from a time on, if there is one yet: no more than that is read.
    pub fn first_from(&self, from: Timestamp) -> Result<Option<(Timestamp, Bytes)>> {
        OplogCursor { batch: 1, ..self.read(Bound::Included(from), false) }.next()
    }

    pub(crate) fn unpin(&self, pin: u64) {
        self.0.state().unpin(pin);
    }
    /// Appends entries that another member wrote, in order: they become durable with the next flush. Oplog readers
    /// see them after [`OpLog::publish_written`].
    pub fn append_foreign(&self, entries: impl IntoIterator<Item = (Timestamp, Bytes)>) -> Result<()> {
        self.check()?;
        let mut state = self.0.state();
        if state.has_open() {
            return Err(Error::internal("the log takes foreign entries only while no slot is open"));
        }
        for (ts, entry) in entries {
            if ts.0 <= state.last {
                return Err(Error::internal(format!(
                    "oplog entry {ts} does not come after {}",
                    Timestamp(state.last)
                )));
            }
            state.last_reserved = state.last_reserved.max(ts.0);
            state.push_recent(ts.0, entry);
        }
        Ok(())
    }
    /// Oplog readers see foreign entries up to `upto`, whether they are applied or not.
    pub fn publish_written(&self, upto: Timestamp) {
        {
            let mut state = self.0.state();
            state.visible = state.visible.max(upto.0.min(state.last));
        }
        self.0.visible_changed.bump();
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
    /// Resolves once everything up to `upto` can be read (a secondary writes entries before it applies them).
    pub fn wait_applied(&self, upto: Timestamp) -> impl Future<Output = ()> + Send + 'static {
        let log = self.clone();
        async move {
            loop {
                let seen = log.0.visible_changed.version();
                if log.all_durable() >= upto {
                    return;
                }
                log.0.visible_changed.changed(seen).await;
            }
        }
    }
    /// Asks the flusher to make everything up to `upto` durable soon, without waiting for it.
    pub fn ask_flush(&self, upto: Timestamp) {
        if self.0.wanted.fetch_max(upto.0, Ordering::AcqRel) < upto.0 {
            self.0.flush_wanted.bump();
        }
    }
}

/// A walk over the log. It ends at the point visible when it was made; [`OplogCursor::refresh`] moves that on.
pub struct OplogCursor {
    log: OpLog,
    from: Bound<Timestamp>,
    backward: bool,
    buffer: VecDeque<(u64, Bytes)>,
    limit: Timestamp,
    /// Entries that are fetched at once.
    batch: usize,
}

impl OplogCursor {
    const BATCH: usize = 256;

    /// The next entry, or `None` at the end (for now).
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(Timestamp, Bytes)>> {
        if self.buffer.is_empty() {
            self.fill()?;
        }
        let Some((ts, entry)) = self.buffer.pop_front() else { return Ok(None) };
        self.from = Bound::Excluded(Timestamp(ts));
        Ok(Some((Timestamp(ts), entry)))
    }
    /// Lets the walk go on to what is visible now, but not past `limit`.
    pub fn refresh_to(&mut self, limit: Timestamp) {
        self.limit = limit.min(self.log.visible());
    }
    /// Lets the walk go on to what is visible now.
    pub fn refresh(&mut self) {
        self.limit = self.log.visible();
    }
    fn fill(&mut self) -> Result<()> {
        loop {
            let oldest = match self.fill_from_memory(None) {
                Ok(()) => return Ok(()),
                Err(oldest) => oldest,
            };
            self.fill_from_files()?;
            // Nothing on disk after our place: the memory's oldest entry comes next, if it is still the oldest.
            if self.backward || !self.buffer.is_empty() || oldest == 0 {
                return Ok(());
            }
            if self.fill_from_memory(Some(oldest)).is_ok() {
                return Ok(());
            }
        }
    }
    fn fill_from_files(&mut self) -> Result<()> {
        let files = &self.log.0.files;
        let limit = self.limit.0;
        let rows = match (self.from, self.backward) {
            (Bound::Unbounded, false) => files.read_forward(0, true, self.batch)?,
            (Bound::Included(t), false) => files.read_forward(t.0, true, self.batch)?,
            (Bound::Excluded(t), false) => files.read_forward(t.0, false, self.batch)?,
            (Bound::Unbounded, true) => files.read_backward(limit, true)?,
            (Bound::Included(t), true) => files.read_backward(t.0.min(limit), true)?,
            (Bound::Excluded(t), true) if t.0 > limit => files.read_backward(limit, true)?,
            (Bound::Excluded(t), true) => files.read_backward(t.0, false)?,
        };
        self.buffer
            .extend(rows.into_iter().filter(|(ts, _)| *ts <= limit).map(|(ts, b)| (ts, Bytes::from(b))));
        Ok(())
    }
    /// Takes a batch from the recent entries. `Err(oldest in memory)` when the walk may stand before them;
    /// with `before`, the caller knows that it stands right before that entry.
    fn fill_from_memory(&mut self, before: Option<u64>) -> Result<(), u64> {
        let state = self.log.0.state();
        let recent = &state.recent;
        let (limit, backward) = (self.limit.0, self.backward);
        let oldest = recent.front().map_or(0, |(ts, _)| *ts);
        if oldest == 0 {
            return Err(0);
        }
        let below = |t: u64| recent.partition_point(|(ts, _)| *ts < t);
        if backward {
            let end = match self.from {
                Bound::Unbounded => below(limit.saturating_add(1)),
                Bound::Included(t) => below(t.0.min(limit).saturating_add(1)),
                Bound::Excluded(t) => below(t.0.min(limit.saturating_add(1))),
            };
            let start = end.saturating_sub(self.batch);
            self.buffer.extend(recent.range(start..end).rev().cloned());
            return if end > 0 { Ok(()) } else { Err(oldest) };
        }
        let start = match self.from {
            Bound::Included(t) if t.0 >= oldest => below(t.0),
            Bound::Excluded(t) if t.0 >= oldest => below(t.0.saturating_add(1)),
            _ if state.all_in_memory || before == Some(oldest) => 0,
            _ => return Err(oldest),
        };
        let end = below(limit.saturating_add(1)).min(start + self.batch).max(start);
        self.buffer.extend(recent.range(start..end).cloned());
        Ok(())
    }
}
