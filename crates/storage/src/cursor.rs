//! A walk over the rows of one ident in one snapshot.
//!
//! Three sorted sources are merged: the transaction's own writes, the rows in memory (fetched in batches, so no
//! lock is held between calls) and the tables. For one key the first source that knows it wins.
//!
//! The tables are pinned when the walk starts. If rows move from memory to tables meanwhile (the epoch changed),
//! the next batch from memory might miss them, so the tables are re-opened at the walk's position first.

use crate::bytes::Bytes;
use crate::history;
use crate::kv::{KvIter, Tree};
use crate::memtable::{MemIdent, MemRow};
use crate::row;
use crate::snapshot::{OnPrepared, Snapshot};
use crate::store::{self, Store};
use crate::txn::Dir;
use crate::writes::empty_range;
use lsm_tree::Slice;
use pando_base::{Result, limits};
use std::cmp::Ordering as Order;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

/// An owned iterator; see the module text.
pub struct Cursor {
    store: Arc<Store>,
    snap: Arc<Snapshot>,
    ident: u32,
    backward: bool,
    /// What remains to be walked from the memory batches' point of view.
    lower: Bound<Slice>,
    upper: Bound<Slice>,
    /// The bounds as given, for seeks.
    bounds: (Bound<Slice>, Bound<Slice>),
    /// Own writes in walking order, and how many are walked past.
    own: Vec<(Slice, Option<Bytes>)>,
    own_at: usize,
    mem: Option<Arc<MemIdent>>,
    rows: VecDeque<MemRow>,
    /// Memory has nothing beyond `rows`.
    rows_end: bool,
    epoch: u64,
    /// Stand at a row unless `None`; at one that was given already if `given`.
    tables: Option<KvIter>,
    given: bool,
    /// The present row, unless it is the tables'.
    held: Option<(Bytes, Bytes)>,
    batch: usize,
    done: bool,
    /// Prepared keys before this (in walking order) are checked.
    checked: Bound<Slice>,
}

const FIRST_BATCH: usize = 16;

impl Cursor {
    pub(crate) fn open(
        store: Arc<Store>,
        snap: Arc<Snapshot>,
        ident: u32,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        dir: Dir,
        own: Vec<(Slice, Option<Bytes>)>,
    ) -> Result<Cursor> {
        store.check_age(&snap)?;
        let backward = dir == Dir::Backward;
        let mut own = own;
        if backward {
            own.reverse();
        }
        let bounds = (lower.map(Slice::from), upper.map(Slice::from));
        let mut cursor = Cursor {
            store,
            snap,
            ident,
            backward,
            lower: bounds.0.clone(),
            upper: bounds.1.clone(),
            bounds,
            own,
            own_at: 0,
            mem: None,
            rows: VecDeque::new(),
            rows_end: false,
            epoch: 0,
            tables: None,
            given: false,
            held: None,
            batch: FIRST_BATCH,
            done: empty_range(lower, upper),
            checked: if backward { upper.map(Slice::from) } else { lower.map(Slice::from) },
        };
        if !cursor.done {
            cursor.reopen()?;
        }
        Ok(cursor)
    }

    /// Opens the tables at the current position and finds the memory rows.
    fn reopen(&mut self) -> Result<()> {
        // The epoch first: tables opened after it hold everything that left memory before it.
        self.epoch = self.store.mem.epoch();
        let (mut low, mut high) = (self.lower.clone(), self.upper.clone());
        // Memory was walked up to `lower` (`upper`), but the tables perhaps not so far.
        if let Some(at) = self.table_key() {
            if !self.backward && matches!(&low, Bound::Included(l) | Bound::Excluded(l) if at <= &**l) {
                low = Bound::Included(Slice::from(at));
            }
            if self.backward && matches!(&high, Bound::Included(h) | Bound::Excluded(h) if at >= &**h) {
                high = Bound::Included(Slice::from(at));
            }
        }
        let low = match &low {
            Bound::Included(k) => Bound::Included(row::key(self.ident, k)),
            Bound::Excluded(k) => Bound::Excluded(row::key(self.ident, k)),
            Bound::Unbounded => Bound::Included(Slice::from(self.ident.to_be_bytes())),
        };
        let high = match &high {
            Bound::Included(k) => Bound::Included(row::key(self.ident, k)),
            Bound::Excluded(k) => Bound::Excluded(row::key(self.ident, k)),
            Bound::Unbounded => {
                row::ident_end(self.ident).map_or(Bound::Unbounded, |e| Bound::Excluded(Slice::from(e)))
            }
        };
        let (low, high) = (low.as_ref().map(|k| &k[..]), high.as_ref().map(|k| &k[..]));
        let mut tables = self.store.kv.range(Tree::of(self.ident), low, high, self.backward);
        (self.tables, self.given) = (None, false);
        self.tables = if tables.step()? { Some(tables) } else { None };
        self.mem = self.store.mem.find(self.ident);
        self.rows_end = self.mem.is_none();
        Ok(())
    }

    pub fn is_backward(&self) -> bool {
        self.backward
    }
    /// Goes on at the first row at or after `key` in walking order, within the bounds of the scan.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.store.check_age(&self.snap)?;
        let at = Bound::Included(Slice::from(key));
        let (lower, upper) = &self.bounds;
        if self.backward {
            let beyond = matches!(upper, Bound::Included(u) | Bound::Excluded(u) if key >= &**u);
            self.upper = if beyond { upper.clone() } else { at };
            self.lower = lower.clone();
            self.own_at = self.own.partition_point(|(k, _)| &**k > key);
        } else {
            let before = matches!(lower, Bound::Included(l) | Bound::Excluded(l) if key <= &**l);
            self.lower = if before { lower.clone() } else { at };
            self.upper = upper.clone();
            self.own_at = self.own.partition_point(|(k, _)| &**k < key);
        }
        self.rows.clear();
        self.tables = None;
        self.given = false;
        self.held = None;
        self.batch = FIRST_BATCH;
        self.checked = if self.backward { self.upper.clone() } else { self.lower.clone() };
        self.done = empty_range(self.lower.as_ref().map(|k| &**k), self.upper.as_ref().map(|k| &**k));
        if self.done { Ok(()) } else { self.reopen() }
    }

    /// Fetches the next batch from memory when the last one is used up.
    fn refill(&mut self) -> Result<()> {
        while self.rows.is_empty() && !self.rows_end {
            self.store.check_age(&self.snap)?;
            let Some(mem) = self.mem.clone() else {
                self.rows_end = true;
                break;
            };
            let bounds = (self.lower.as_ref().map(|k| &**k), self.upper.as_ref().map(|k| &**k));
            let more = mem.batch(bounds.0, bounds.1, self.backward, &self.snap, self.batch, &mut self.rows);
            if self.store.mem.epoch() != self.epoch {
                // Rows may have left memory since the tables were opened: open them again and look again.
                self.rows.clear();
                self.reopen()?;
                continue;
            }
            self.batch = (self.batch * 2).min(limits::CURSOR_MEMORY_ROWS_MAX);
            match more {
                Some(key) if self.backward => self.upper = Bound::Excluded(key),
                Some(key) => self.lower = Bound::Excluded(key),
                None => self.rows_end = true,
            }
            if empty_range(self.lower.as_ref().map(|k| &**k), self.upper.as_ref().map(|k| &**k)) {
                self.rows_end = true;
            }
        }
        Ok(())
    }

    /// The next row, or `None` at the end.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        Ok(if self.advance()? { Some((Bytes::from(self.key()), self.share())) } else { None })
    }

    /// Goes to the next row; false at the end. The row can then be looked at where it lies.
    // tour: find 7/9
    pub fn advance(&mut self) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        self.held = None;
        self.leave_given()?;
        loop {
            if self.rows.is_empty() && !self.rows_end {
                self.refill()?;
            }
            if self.rows.is_empty() && self.own_at >= self.own.len() && self.tables.is_some() {
                // Only tables are left, as in most scans of what has been flushed.
                if self.take_of_tables()? {
                    return Ok(true);
                }
                continue;
            }
            let table_key = self.table_key();
            let mem_key = self.rows.front().map(|r| &*r.key);
            let own_key = self.own.get(self.own_at).map(|(k, _)| &**k);
            let Some(low) = lowest([own_key, mem_key, table_key], self.backward) else {
                self.done = true;
                self.check_prepared(None)?;
                return Ok(false);
            };
            let (from_own, from_mem) = (own_key == Some(low), mem_key == Some(low));
            if !from_own && !from_mem {
                if self.take_of_tables()? {
                    return Ok(true);
                }
                continue;
            }
            if table_key == Some(low) {
                self.given = true;
            }
            let own = if from_own { self.own.get(self.own_at).cloned() } else { None };
            self.own_at += usize::from(from_own);
            let mem = if from_mem { self.rows.pop_front() } else { None };
            self.leave_given()?;
            let Some((key, value)) = own.or(mem.map(|r| (r.key, r.value))) else { continue };
            self.pass(Some(&key))?;
            if let Some(value) = value {
                self.held = Some((Bytes::from(key), value));
                return Ok(true);
            }
        }
    }

    /// The row the cursor stands at, after [`Cursor::advance`] said that there is one.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match &self.held {
            Some((key, _)) => key,
            None => self.table_key().expect("a cursor that stands at a row"),
        }
    }
    #[inline]
    pub fn value(&self) -> &[u8] {
        match (&self.held, &self.tables) {
            (Some((_, value)), _) => value,
            (None, Some(tables)) => row::payload_of(tables.value()),
            (None, None) => &[],
        }
    }
    /// The value for as long as wanted, without copying it.
    pub fn share(&self) -> Bytes {
        match (&self.held, &self.tables) {
            (Some((_, value)), _) => value.clone(),
            (None, Some(tables)) => row::payload(tables.share()),
            (None, None) => Bytes::new(),
        }
    }

    #[inline]
    fn table_key(&self) -> Option<&[u8]> {
        self.tables.as_ref().map(|t| &t.key()[4..])
    }

    /// Leaves the tables' row if it was given.
    #[inline]
    fn leave_given(&mut self) -> Result<()> {
        if std::mem::take(&mut self.given)
            && let Some(mut tables) = self.tables.take()
            && tables.step()?
        {
            self.tables = Some(tables);
        }
        Ok(())
    }

    /// Takes the tables' row as the snapshot sees it; false, and one row further, when it sees none.
    #[inline]
    fn take_of_tables(&mut self) -> Result<bool> {
        let Some(tables) = &self.tables else { return Ok(false) };
        let (ts, deleted) = row::header(tables.value())?;
        let seen = ts == 0 || self.snap.sees(ts);
        let older = match seen {
            true => None,
            false => history::find(&*self.store.kv, &self.snap, self.ident, &tables.key()[4..], ts)?,
        };
        self.pass(None)?;
        self.given = true;
        if seen && !deleted {
            return Ok(true);
        }
        if let (Some(value), Some(key)) = (older, self.table_key()) {
            self.held = Some((Bytes::from(key), value));
            return Ok(true);
        }
        self.leave_given()?;
        Ok(false)
    }

    /// Checks prepared keys up to and with this one, the tables' if none is named.
    #[inline]
    fn pass(&mut self, key: Option<&[u8]>) -> Result<()> {
        if self.snap.on_prepared == OnPrepared::Conflict && !self.store.prepares.is_empty() {
            let Some(key) = key.or(self.table_key()) else { return Ok(()) };
            let key = Slice::from(key);
            self.check_prepared(Some(&key))?;
            self.checked = Bound::Excluded(key);
        }
        Ok(())
    }

    /// Fails when a prepared key lies between the last row and `to` (the end when `None`).
    fn check_prepared(&self, to: Option<&[u8]>) -> Result<()> {
        if self.snap.on_prepared == OnPrepared::Ignore || self.store.prepares.is_empty() {
            return Ok(());
        }
        let checked = self.checked.as_ref().map(|k| &**k);
        let (low, high) = (self.bounds.0.as_ref().map(|k| &**k), self.bounds.1.as_ref().map(|k| &**k));
        let (lower, upper) = if self.backward {
            (to.map_or(low, Bound::Included), checked)
        } else {
            (checked, to.map_or(high, Bound::Included))
        };
        if self.store.prepares.blocks_range(self.ident, lower, upper, &self.snap) {
            return Err(store::prepare_conflict());
        }
        Ok(())
    }
}

/// The first key in walking order among those present.
#[inline]
fn lowest(keys: [Option<&[u8]>; 3], backward: bool) -> Option<&[u8]> {
    let ahead = if backward { Order::Greater } else { Order::Less };
    let mut best: Option<&[u8]> = None;
    for key in keys.into_iter().flatten() {
        if best.is_none_or(|b| key.cmp(b) == ahead) {
            best = Some(key);
        }
    }
    best
}
