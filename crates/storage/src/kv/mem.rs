//! Tables as ordered maps: repeatable, without threads.

use super::{Gc, Kv, KvIter, RunRow, Tree, TreeStats};
use crate::row;
use lsm_tree::Slice;
use pando_base::Result;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};

type Map = BTreeMap<Slice, Slice>;

#[derive(Default)]
pub(crate) struct MemKv {
    trees: [RwLock<Arc<Map>>; 3],
}

impl MemKv {
    fn map(&self, tree: Tree) -> Arc<Map> {
        self.trees[tree as usize].read().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn replace(&self, tree: Tree, map: Map) {
        *self.trees[tree as usize].write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
    }
}

/// Walks a map that may be replaced meanwhile: keeps the old one and a position.
struct Walk {
    map: Arc<Map>,
    lower: Bound<Slice>,
    upper: Bound<Slice>,
    backward: bool,
}

impl Iterator for Walk {
    type Item = Result<(Slice, Slice)>;
    fn next(&mut self) -> Option<Self::Item> {
        let bounds = (self.lower.as_ref().map(|k| &**k), self.upper.as_ref().map(|k| &**k));
        if crate::writes::empty_range(bounds.0, bounds.1) {
            return None;
        }
        let mut range = self.map.range::<[u8], _>(bounds);
        let (key, value) = (if self.backward { range.next_back() } else { range.next() })?;
        let found = (key.clone(), value.clone());
        if self.backward {
            self.upper = Bound::Excluded(found.0.clone());
        } else {
            self.lower = Bound::Excluded(found.0.clone());
        }
        Some(Ok(found))
    }
}

/// Whether a compaction may drop this row.
pub(crate) fn is_garbage(tree: Tree, key: &[u8], value: &[u8], gc: &Gc) -> bool {
    if gc.dead.contains(&row::ident_of(key)) {
        return true;
    }
    match tree {
        Tree::History => row::stop_of(key) <= gc.below,
        _ => row::header(value).is_ok_and(|(ts, deleted)| deleted && ts <= gc.below),
    }
}

impl Kv for MemKv {
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Slice>> {
        Ok(self.map(tree).get(key).cloned())
    }
    fn range(&self, tree: Tree, lower: Bound<&[u8]>, upper: Bound<&[u8]>, backward: bool) -> KvIter {
        let (lower, upper) = (lower.map(Slice::from), upper.map(Slice::from));
        Box::new(Walk { map: self.map(tree), lower, upper, backward })
    }
    fn write_run(&self, tree: Tree, rows: &mut dyn Iterator<Item = Result<RunRow>>) -> Result<()> {
        let mut map = Map::clone(&self.map(tree));
        for row in rows {
            match row? {
                (key, Some(value)) => map.insert(key, value),
                (key, None) => map.remove(&key),
            };
        }
        self.replace(tree, map);
        Ok(())
    }
    fn compact(&self, _gc: &Gc) -> Result<bool> {
        Ok(false)
    }
    fn compact_all(&self, tree: Tree, gc: &Gc) -> Result<()> {
        let map = Map::clone(&self.map(tree));
        self.replace(tree, map.into_iter().filter(|(k, v)| !is_garbage(tree, k, v, gc)).collect());
        Ok(())
    }
    fn stats(&self, tree: Tree) -> TreeStats {
        let map = self.map(tree);
        let bytes = map.iter().map(|(k, v)| (k.len() + v.len()) as u64).sum();
        TreeStats { tables: 1, runs: 1, bytes }
    }
}
