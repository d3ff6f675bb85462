//! Rows that are committed but not yet in a table: one ordered map per ident, each key with its versions.
//!
//! The newest version comes first. Older ones stay until a flush takes everything at or below the stable
//! timestamp, or until nobody can ask for them. Keeping the versions here (rather than writing a history row at
//! each commit) makes an update one map insert, lets old snapshots of hot keys resolve in memory, lets a flush
//! take exactly the versions up to a timestamp, and makes rollback a matter of forgetting the newer ones.
//!
//! A row leaves this map only after the table that holds it can be read, and then `epoch` moves: a cursor that
//! pinned an older set of tables re-opens them before it trusts a key's absence here.

use crate::bytes::Bytes;
use crate::snapshot::Snapshot;
use lsm_tree::Slice;
use pando_base::HashMap;
use pando_base::panics::poisoned;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// One version of a row.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// Commit timestamp, or the local log's sequence number when `local`.
    pub(crate) ts: u64,
    bytes: Bytes,
    deleted: bool,
    /// Written without a timestamp: seen by every snapshot.
    pub(crate) local: bool,
    /// The writer knew that no live row was there before: a flush need not look for one to keep.
    pub(crate) fresh: bool,
}

impl Version {
    /// `value: None` is a deletion.
    pub(crate) fn new(ts: u64, local: bool, fresh: bool, value: Option<Bytes>) -> Version {
        let deleted = value.is_none();
        Version { ts, bytes: value.unwrap_or_default(), deleted, local, fresh }
    }
    #[inline]
    pub(crate) fn value(&self) -> Option<&Bytes> {
        (!self.deleted).then_some(&self.bytes)
    }
    #[inline]
    pub(crate) fn seen_by(&self, snap: &Snapshot) -> bool {
        self.local || snap.sees(self.ts)
    }
    fn bytes(&self) -> usize {
        size_of::<Version>() + self.bytes.len()
    }
}

/// All versions of a key that are in memory.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) newest: Version,
    /// Oldest first, so that the newest is replaced by a push. Boxed: few keys have any.
    #[expect(clippy::box_collection)]
    older: Option<Box<Vec<Version>>>,
}

impl Chain {
    fn new(newest: Version) -> Chain {
        Chain { newest, older: None }
    }
    fn older(&self) -> &[Version] {
        self.older.as_ref().map_or(&[], |v| v)
    }
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Version> + Clone {
        std::iter::once(&self.newest).chain(self.older().iter().rev())
    }
    #[inline]
    fn seen_by(&self, snap: &Snapshot) -> Option<&Version> {
        if self.newest.seen_by(snap) {
            return Some(&self.newest);
        }
        self.older().iter().rev().find(|v| v.seen_by(snap))
    }
    /// Adds a version; returns the change in bytes.
    fn push(&mut self, version: Version, gc: u64) -> isize {
        let mut grown = version.bytes() as isize;
        if version.local || (version.ts == self.newest.ts && !self.newest.local) {
            // Replaced within one commit, or untimestamped: nobody can ask for the old one.
            let fresh = self.newest.fresh && self.older.is_none();
            grown -= self.newest.bytes() as isize;
            if version.local {
                grown -= self.older().iter().map(|v| v.bytes() as isize).sum::<isize>();
                self.older = None;
            }
            self.newest = Version { fresh: version.fresh || fresh, ..version };
            return grown;
        }
        let older = self.older.get_or_insert_default();
        if version.ts > self.newest.ts || self.newest.local {
            older.push(std::mem::replace(&mut self.newest, version));
        } else {
            // A prepared transaction may commit below a later commit of another key's slot, never of this key;
            // replay may meet an older entry. Keep the order.
            let at = older.partition_point(|v| v.local || v.ts < version.ts);
            match older.get_mut(at) {
                Some(same) if same.ts == version.ts => {
                    grown -= same.bytes() as isize;
                    *same = version;
                }
                _ => older.insert(at, version),
            }
        }
        grown - prune(older, gc) as isize
    }
    /// Removes what `dead` names; returns the bytes freed and whether anything is left.
    fn forget(&mut self, dead: impl Fn(&Version) -> bool) -> (usize, bool) {
        let mut freed = 0;
        if let Some(older) = &mut self.older {
            older.retain(|v| {
                let gone = dead(v);
                freed += if gone { v.bytes() } else { 0 };
                !gone
            });
        }
        let mut left = true;
        if dead(&self.newest) {
            freed += self.newest.bytes();
            match self.older.as_mut().and_then(|older| older.pop()) {
                Some(next) => self.newest = next,
                None => left = false,
            }
        }
        if self.older().is_empty() {
            self.older = None;
        }
        (freed, left)
    }
}

/// Forgets versions that were replaced at or below `gc`. The last one kept remembers whether a row may lie
/// below it in the tables.
fn prune(older: &mut Vec<Version>, gc: u64) -> usize {
    const WORTH_LOOKING: usize = 4;
    if older.len() < WORTH_LOOKING {
        return 0;
    }
    // older[i] is replaced at older[i + 1].ts; keep from the last one whose successor is above gc.
    let dead = older.iter().skip(1).take_while(|next| next.ts <= gc).count();
    if dead == 0 {
        return 0;
    }
    let fresh = older[0].fresh;
    let freed = older.drain(..dead).map(|v| v.bytes()).sum();
    if let Some(oldest) = older.first_mut() {
        oldest.fresh = fresh;
    }
    freed
}

/// What the memory tables know about a key in a snapshot.
#[derive(Debug)]
pub(crate) enum Found {
    Row(Bytes),
    /// Deleted.
    Absent,
    /// Nothing that the snapshot sees: ask the tables.
    Unknown,
}

/// A row for a cursor; `None` hides the tables' row of that key.
#[derive(Debug, Clone)]
pub(crate) struct MemRow {
    pub(crate) key: Slice,
    pub(crate) value: Option<Bytes>,
}

pub(crate) type Rows = BTreeMap<Slice, Chain>;

/// The rows of one ident.
#[derive(Default)]
pub(crate) struct MemIdent {
    rows: RwLock<Rows>,
    pub(crate) bytes: AtomicUsize,
    /// A bulk load is under way: its rows must reach the tables first.
    pub(crate) held: AtomicBool,
}

const KEY_OVERHEAD: usize = size_of::<Slice>() + 2 * size_of::<usize>();

impl MemIdent {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read().unwrap_or_else(poisoned)
    }
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Rows> {
        self.rows.write().unwrap_or_else(poisoned)
    }
    pub(crate) fn get(&self, key: &[u8], snap: &Snapshot) -> Found {
        let rows = self.read();
        match rows.get(key).and_then(|chain| chain.seen_by(snap)) {
            None => Found::Unknown,
            Some(version) => version.value().map_or(Found::Absent, |v| Found::Row(v.clone())),
        }
    }
    /// The newest version of `key`, if any is in memory.
    pub(crate) fn newest(&self, key: &[u8]) -> Option<Version> {
        self.read().get(key).map(|chain| chain.newest.clone())
    }
    /// Up to `max` rows within the bounds in the wanted direction. Returns where to go on, `None` at the end.
    pub(crate) fn batch(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        backward: bool,
        snap: &Snapshot,
        max: usize,
        out: &mut std::collections::VecDeque<MemRow>,
    ) -> Option<Slice> {
        let rows = self.read();
        let mut range = rows.range::<[u8], _>((lower, upper));
        // Unseen rows cost time under the lock as well.
        let mut looked = 0;
        loop {
            let (key, chain) = (if backward { range.next_back() } else { range.next() })?;
            if let Some(version) = chain.seen_by(snap) {
                out.push_back(MemRow { key: key.clone(), value: version.value().cloned() });
            }
            looked += 1;
            if looked >= max {
                return Some(key.clone());
            }
        }
    }
    /// Adds versions in order; returns the bytes added.
    pub(crate) fn apply<'a>(&self, versions: impl Iterator<Item = (&'a Slice, Version)>, gc: u64) -> isize {
        let mut grown = 0;
        let mut rows = self.write();
        for (key, version) in versions {
            match rows.entry(key.clone()) {
                std::collections::btree_map::Entry::Occupied(mut e) => grown += e.get_mut().push(version, gc),
                std::collections::btree_map::Entry::Vacant(e) => {
                    grown += (key.len() + KEY_OVERHEAD + version.bytes()) as isize;
                    e.insert(Chain::new(version));
                }
            }
        }
        drop(rows);
        add(&self.bytes, grown);
        grown
    }
    /// Removes what `dead` names from every chain; returns the bytes freed.
    pub(crate) fn forget(&self, dead: impl Fn(&Version) -> bool) -> usize {
        /// Rows taken out under one lock.
        const AT_ONCE: usize = 1024;
        let mut total = 0;
        let mut from: Option<Slice> = None;
        loop {
            let mut freed = 0;
            let gone: Vec<(Slice, Chain)> = {
                let lower = from.as_ref().map_or(Bound::Unbounded, |k| Bound::Excluded(k.clone()));
                let mut rows = self.write();
                let out = rows.extract_if((lower, Bound::Unbounded), |key, chain| {
                    let (bytes, left) = chain.forget(&dead);
                    freed += bytes + if left { 0 } else { key.len() + KEY_OVERHEAD };
                    !left
                });
                out.take(AT_ONCE).collect()
            };
            add(&self.bytes, -(freed as isize));
            total += freed;
            // The values are freed here, outside the lock.
            match gone.last() {
                Some((key, _)) if gone.len() == AT_ONCE => from = Some(key.clone()),
                _ => return total,
            }
        }
    }
}

fn add(counter: &AtomicUsize, n: isize) {
    if n >= 0 {
        counter.fetch_add(n as usize, Ordering::Relaxed);
    } else {
        counter.fetch_sub(n.unsigned_abs(), Ordering::Relaxed);
    }
}

/// Every ident's rows.
#[derive(Default)]
pub(crate) struct MemTable {
    idents: RwLock<HashMap<u32, Arc<MemIdent>>>,
    bytes: AtomicUsize,
    epoch: AtomicU64,
}

impl MemTable {
    pub(crate) fn find(&self, ident: u32) -> Option<Arc<MemIdent>> {
        self.idents.read().unwrap_or_else(poisoned).get(&ident).cloned()
    }
    pub(crate) fn get_or_add(&self, ident: u32) -> Arc<MemIdent> {
        if let Some(found) = self.find(ident) {
            return found;
        }
        let mut idents = self.idents.write().unwrap_or_else(poisoned);
        idents.entry(ident).or_default().clone()
    }
    /// (ident, rows) in ident order.
    pub(crate) fn all(&self) -> Vec<(u32, Arc<MemIdent>)> {
        let idents = self.idents.read().unwrap_or_else(poisoned);
        let mut all: Vec<_> = idents.iter().map(|(i, m)| (*i, m.clone())).collect();
        all.sort_by_key(|(i, _)| *i);
        all
    }
    pub(crate) fn remove(&self, ident: u32) {
        let gone = self.idents.write().unwrap_or_else(poisoned).remove(&ident);
        if let Some(gone) = gone {
            self.bytes.fetch_sub(gone.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
    pub(crate) fn grew(&self, by: isize) {
        add(&self.bytes, by);
    }
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
    /// Call after new tables can be read and before their rows leave memory.
    pub(crate) fn next_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}
