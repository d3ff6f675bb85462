//! A walk over the rows of one ident in one snapshot.
//!
//! Three sorted sources are merged: the transaction's own writes, the rows in memory (fetched in batches, so no
//! lock is held between calls) and the tables. For one key the first source that knows it wins.
//!
//! The tables are pinned when the walk starts. If rows move from memory to tables meanwhile (the epoch changed),
//! the next batch from memory might miss them, so the tables are re-opened at the walk's position first.

use crate::bytes::Bytes;
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
    tables: Option<KvIter>,
    table_row: Option<(Slice, Slice)>,
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
            table_row: None,
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
        if let Some((k, _)) = &self.table_row {
            let at = &k[4..];
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
        self.table_row = tables.next().transpose()?;
        self.tables = self.table_row.is_some().then_some(tables);
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
        self.table_row = None;
        self.tables = None;
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
    // tour: find 7/9
    pub fn next(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        if self.done {
            return Ok(None);
        }
        loop {
            if self.rows.is_empty() && !self.rows_end {
                self.refill()?;
            }
            if self.rows.is_empty() && self.own_at >= self.own.len() && self.table_row.is_some() {
                // Only tables are left, as in most scans of what has been flushed.
                if let Some(found) = self.next_of_tables()? {
                    return Ok(Some(found));
                }
                continue;
            }
            let table_key = self.table_row.as_ref().map(|(k, _)| &k[4..]);
            let mem_key = self.rows.front().map(|r| &*r.key);
            let own_key = self.own.get(self.own_at).map(|(k, _)| &**k);
            let Some(low) = lowest([own_key, mem_key, table_key], self.backward) else {
                self.done = true;
                self.check_prepared(None)?;
                return Ok(None);
            };
            let (from_own, from_mem) = (own_key == Some(low), mem_key == Some(low));
            let from_table = table_key == Some(low);
            if !from_own && !from_mem {
                if let Some(found) = self.next_of_tables()? {
                    return Ok(Some(found));
                }
                continue;
            }
            let own = if from_own { self.own.get(self.own_at).cloned() } else { None };
            self.own_at += usize::from(from_own);
            let mem = if from_mem { self.rows.pop_front() } else { None };
            if from_table {
                self.advance_tables()?;
            }
            let Some((k, value)) = own.or(mem.map(|r| (r.key, r.value))) else { continue };
            let key = Bytes::from(k);
            self.pass(&key)?;
            if let Some(value) = value {
                return Ok(Some((key, value)));
            }
        }
    }

    /// The tables' row the walk stands at, as the snapshot sees it; the walk moves on.
    #[inline]
    fn next_of_tables(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        let next = match &mut self.tables {
            Some(tables) => tables.next().transpose()?,
            None => None,
        };
        let Some((k, raw)) = std::mem::replace(&mut self.table_row, next) else { return Ok(None) };
        let value = self.store.resolve(&self.snap, self.ident, &k[4..], raw)?;
        let key = Bytes::from_slice(k, 4);
        self.pass(&key)?;
        Ok(value.map(|value| (key, value)))
    }

    /// Checks prepared keys up to and with this one.
    #[inline]
    fn pass(&mut self, key: &Bytes) -> Result<()> {
        if self.snap.on_prepared == OnPrepared::Conflict && !self.store.prepares.is_empty() {
            self.check_prepared(Some(key))?;
            self.checked = Bound::Excluded(Slice::from(&**key));
        }
        Ok(())
    }

    fn advance_tables(&mut self) -> Result<()> {
        self.table_row = match &mut self.tables {
            Some(tables) => tables.next().transpose()?,
            None => None,
        };
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
        if self.store.prepares.blocks_range(self.ident, lower, upper, self.snap.read) {
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
