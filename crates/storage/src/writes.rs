//! The writes a transaction has made and not yet committed.
//!
//! A list in the order made; small lists are searched from the back, larger ones keep an ordered index per
//! ident so that the transaction's own reads stay cheap.

use crate::bytes::Bytes;
use lsm_tree::Slice;
use std::collections::BTreeMap;
use std::ops::Bound;

#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) ident: u32,
    pub(crate) key: Slice,
    /// `None` deletes.
    pub(crate) value: Option<Bytes>,
    /// 0 = the commit timestamp.
    pub(crate) ts: u64,
    pub(crate) fresh: bool,
}

#[derive(Default)]
pub(crate) struct Writes {
    ops: Vec<Op>,
    index: BTreeMap<u32, BTreeMap<Slice, u32>>,
    bytes: usize,
}

/// Up to here a backward search beats the index.
const SEARCHED: usize = 8;

impl Writes {
    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
    pub(crate) fn ops(&self) -> &[Op] {
        &self.ops
    }
    pub(crate) fn push(&mut self, op: Op) {
        self.bytes += op.key.len() + op.value.as_ref().map_or(0, |v| v.len());
        self.ops.push(op);
        if self.ops.len() == SEARCHED + 1 {
            self.reindex();
        } else if self.ops.len() > SEARCHED {
            let at = self.ops.len() - 1;
            let op = &self.ops[at];
            self.index.entry(op.ident).or_default().insert(op.key.clone(), at as u32);
        }
    }
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.ops.len() {
            self.ops.truncate(len);
            self.reindex();
        }
    }
    fn reindex(&mut self) {
        self.index.clear();
        if self.ops.len() > SEARCHED {
            for (at, op) in self.ops.iter().enumerate() {
                self.index.entry(op.ident).or_default().insert(op.key.clone(), at as u32);
            }
        }
    }
    /// The transaction's own last write of a key.
    pub(crate) fn find(&self, ident: u32, key: &[u8]) -> Option<&Op> {
        if self.ops.len() <= SEARCHED {
            return self.ops.iter().rev().find(|op| op.ident == ident && &*op.key == key);
        }
        let at = self.index.get(&ident)?.get(key)?;
        self.ops.get(*at as usize)
    }
    /// The transaction's own last writes within the bounds, in key order.
    pub(crate) fn range(
        &self,
        ident: u32,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Vec<(Slice, Option<Bytes>)> {
        if self.ops.is_empty() || empty_range(lower, upper) {
            return Vec::new();
        }
        if self.ops.len() > SEARCHED {
            let Some(index) = self.index.get(&ident) else { return Vec::new() };
            let rows = index.range::<[u8], _>((lower, upper));
            return rows.map(|(k, at)| (k.clone(), self.ops[*at as usize].value.clone())).collect();
        }
        let mut rows: BTreeMap<Slice, Option<Bytes>> = BTreeMap::new();
        for op in self.ops.iter().filter(|op| op.ident == ident) {
            rows.insert(op.key.clone(), op.value.clone());
        }
        rows.range::<[u8], _>((lower, upper)).map(|(k, v)| (k.clone(), v.clone())).collect()
    }
    /// Idents written, each once, in the order first met.
    pub(crate) fn idents(&self) -> Vec<u32> {
        let mut seen: Vec<u32> = Vec::new();
        for op in &self.ops {
            if seen.last() != Some(&op.ident) && !seen.contains(&op.ident) {
                seen.push(op.ident);
            }
        }
        seen
    }
}

/// `BTreeMap::range` refuses such bounds.
pub(crate) fn empty_range(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    match (lower, upper) {
        (Bound::Included(l), Bound::Included(u)) => l > u,
        (Bound::Included(l) | Bound::Excluded(l), Bound::Excluded(u) | Bound::Included(u)) => l >= u,
        _ => false,
    }
}
