//! From memory to tables: the rows of one checkpoint, as sorted runs.
//!
//! Three walks over the memory tables, each a stream that the backend turns into tables: replaced versions into
//! the history, then index rows, then records. History first, so that whoever finds a newer row in a table also
//! finds what it replaced; indexes before records, so that a stored record of timestamp `t` implies its index
//! rows of `t`, and replay can always read the old document to find the old index keys.

use crate::kv::{RunRow, Tree};
use crate::memtable::{MemIdent, Version};
use crate::row;
use crate::store::Store;
use lsm_tree::Slice;
use pando_base::Result;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

/// What a checkpoint takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Timestamped versions up to here.
    pub(crate) upto: u64,
    /// Untimestamped rows up to this number.
    pub(crate) local_upto: u64,
    /// Versions replaced at or below this need not be kept.
    pub(crate) gc: u64,
}

impl Cut {
    pub(crate) fn takes(&self, v: &Version) -> bool {
        if v.local { v.ts <= self.local_upto } else { v.ts <= self.upto }
    }
}

/// One walk, as an iterator of rows.
pub(crate) struct Walk<'a> {
    store: &'a Store,
    cut: Cut,
    tree: Tree,
    idents: std::slice::Iter<'a, (u32, Arc<MemIdent>)>,
    current: Option<(u32, &'a MemIdent, Option<Slice>)>,
    rows: VecDeque<RunRow>,
}

/// Keys looked at under the lock at a time.
const BATCH: usize = 512;

impl<'a> Walk<'a> {
    pub(crate) fn new(
        store: &'a Store,
        cut: Cut,
        tree: Tree,
        idents: &'a [(u32, Arc<MemIdent>)],
    ) -> Walk<'a> {
        Walk { store, cut, tree, idents: idents.iter(), current: None, rows: VecDeque::new() }
    }

    fn fill(&mut self) -> Result<bool> {
        loop {
            if self.current.is_none() {
                let next = self.idents.find(|(i, _)| self.tree == Tree::History || Tree::of(*i) == self.tree);
                let Some((ident, rows)) = next else { return Ok(false) };
                self.current = Some((*ident, rows, None));
            }
            let Some((ident, rows, from)) = &mut self.current else { continue };
            let ident = *ident;
            let history = self.tree == Tree::History;
            let mut newest: Vec<(Slice, Version)> = Vec::with_capacity(if history { 0 } else { BATCH });
            let mut replaced: Vec<(Slice, Vec<Version>)> = Vec::new();
            let (mut looked, mut last) = (0, None);
            {
                let rows = rows.read();
                let lower = from.as_ref().map_or(Bound::Unbounded, |k| Bound::Excluded(&**k));
                for (key, chain) in rows.range::<[u8], _>((lower, Bound::Unbounded)).take(BATCH) {
                    (looked, last) = (looked + 1, Some(key));
                    let mut taken = chain.newest_first().filter(|v| self.cut.takes(v));
                    if !history {
                        newest.extend(taken.next().map(|v| (key.clone(), v.clone())));
                    } else if leaves_history(taken.clone(), &self.cut) {
                        replaced.push((key.clone(), taken.cloned().collect()));
                    }
                }
                *from = last.cloned();
            }
            if looked < BATCH {
                self.current = None;
            }
            for (key, version) in &newest {
                self.current_row(ident, key, version);
            }
            for (key, versions) in &replaced {
                self.history_rows(ident, key, versions)?;
            }
            if !self.rows.is_empty() {
                return Ok(true);
            }
        }
    }

    /// The newest version taken becomes the key's row.
    fn current_row(&mut self, ident: u32, key: &[u8], v: &Version) {
        let value = match (v.value(), v.local) {
            (Some(payload), true) => Some(row::value(0, Some(payload))),
            (None, true) => None,
            (Some(payload), false) => Some(row::value(v.ts, Some(payload))),
            // Somebody may still read below the deletion: leave a marker.
            (None, false) if v.ts > self.cut.gc => Some(row::value(v.ts, None)),
            (None, false) => None,
        };
        self.rows.push_back((row::key(ident, key), value));
    }

    /// Every version that another one replaces, as far as somebody may still ask for it.
    fn history_rows(&mut self, ident: u32, key: &[u8], newest_first: &[Version]) -> Result<()> {
        let Some(oldest) = newest_first.last() else { return Ok(()) };
        if oldest.local {
            return self.rest_of_history(ident, key, newest_first);
        }
        if !oldest.fresh && oldest.ts > self.cut.gc {
            let engine_key = row::key(ident, key);
            if let Some(value) = self.store.kv.get(Tree::of(ident), &engine_key)? {
                let (start, deleted) = row::header(&value)?;
                if !deleted && start < oldest.ts {
                    self.rows.push_back((row::history_key(ident, key, oldest.ts).into(), Some(value)));
                }
            }
        }
        self.rest_of_history(ident, key, newest_first)
    }
    fn rest_of_history(&mut self, ident: u32, key: &[u8], newest_first: &[Version]) -> Result<()> {
        for pair in newest_first.windows(2).rev() {
            let [newer, older] = pair else { continue };
            if let Some(payload) = older.value()
                && !newer.local
                && newer.ts > self.cut.gc
            {
                let start = if older.local { 0 } else { older.ts };
                self.rows.push_back((
                    row::history_key(ident, key, newer.ts).into(),
                    Some(row::value(start, Some(payload))),
                ));
            }
        }
        Ok(())
    }
}

/// Whether the versions taken of a key can leave rows in the history: one replaces another, or something that may
/// lie in a table.
fn leaves_history<'v>(mut newest_first: impl Iterator<Item = &'v Version>, cut: &Cut) -> bool {
    let Some(first) = newest_first.next() else { return false };
    newest_first.next().is_some() || (!first.local && !first.fresh && first.ts > cut.gc)
}

impl Iterator for Walk<'_> {
    type Item = Result<RunRow>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.rows.is_empty() {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
        self.rows.pop_front().map(Ok)
    }
}

/// Takes the flushed versions out of memory.
pub(crate) fn forget(store: &Store, cut: &Cut, idents: &[(u32, Arc<MemIdent>)]) {
    for (ident, rows) in idents {
        let freed = rows.forget(|v| cut.takes(v));
        // A dropped ident has left the table with all its bytes already.
        if store.mem.find(*ident).is_some_and(|now| Arc::ptr_eq(&now, rows)) {
            store.mem.grew(-(freed as isize));
        }
    }
}
