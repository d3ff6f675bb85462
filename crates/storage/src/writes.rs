//! The writes a transaction has made and not yet committed.
//!
//! A list in the order made. Small lists are searched from the back; larger ones keep a hash table for the
//! transaction's own point reads, and an ordered index that is built only when it scans what it has written.

use crate::bytes::Bytes;
use lsm_tree::Slice;
use pando_base::HashMap;
use pando_base::panics::poisoned;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Mutex;

#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) ident: u32,
    pub(crate) key: Slice,
    /// `None` deletes.
    pub(crate) value: Option<Bytes>,
    /// 0 = the commit timestamp.
    pub(crate) ts: u64,
    pub(crate) fresh: bool,
    /// Of ident and key, as the conflict table has it.
    pub(crate) hash: u64,
}

#[derive(Default)]
pub(crate) struct Writes {
    ops: Vec<Op>,
    /// Hash -> last write of a key with that hash.
    last: HashMap<u64, u32>,
    /// Two keys shared a hash: `last` cannot be trusted to tell that a key was not written.
    ambiguous: bool,
    ordered: Mutex<Ordered>,
    bytes: usize,
}

/// The first `upto` writes, by ident and key.
#[derive(Default)]
struct Ordered {
    upto: usize,
    index: BTreeMap<u32, BTreeMap<Slice, u32>>,
}

/// Up to here a backward search beats the table.
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
            self.rehash();
        } else if self.ops.len() > SEARCHED {
            self.note(self.ops.len() - 1);
        }
    }
    fn note(&mut self, at: usize) {
        let op = &self.ops[at];
        if let Some(before) = self.last.insert(op.hash, at as u32) {
            let before = &self.ops[before as usize];
            self.ambiguous |= before.key != op.key || before.ident != op.ident;
        }
    }
    fn rehash(&mut self) {
        self.last.clear();
        self.ambiguous = false;
        if self.ops.len() > SEARCHED {
            (0..self.ops.len()).for_each(|at| self.note(at));
        }
    }
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.ops.len() {
            self.ops.truncate(len);
            self.rehash();
            *self.ordered.get_mut().unwrap_or_else(poisoned) = Ordered::default();
        }
    }
    /// Takes the writes of one ident out again; returns their hashes.
    pub(crate) fn remove_ident(&mut self, ident: u32) -> Vec<u64> {
        let mut hashes = Vec::new();
        self.ops.retain(|op| {
            let out = op.ident == ident;
            if out {
                hashes.push(op.hash);
            }
            !out
        });
        self.rehash();
        *self.ordered.get_mut().unwrap_or_else(poisoned) = Ordered::default();
        hashes
    }
    /// The transaction's own last write of a key.
    pub(crate) fn find(&self, ident: u32, key: &[u8], hash: impl FnOnce() -> u64) -> Option<&Op> {
        if self.ops.len() > SEARCHED && !self.ambiguous {
            let op = &self.ops[*self.last.get(&hash())? as usize];
            return (op.ident == ident && &*op.key == key).then_some(op);
        }
        self.ops.iter().rev().find(|op| op.ident == ident && &*op.key == key)
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
        let mut ordered = self.ordered.lock().unwrap_or_else(poisoned);
        let ordered = &mut *ordered;
        for (at, op) in self.ops.iter().enumerate().skip(ordered.upto) {
            ordered.index.entry(op.ident).or_default().insert(op.key.clone(), at as u32);
        }
        ordered.upto = self.ops.len();
        let Some(index) = ordered.index.get(&ident) else { return Vec::new() };
        let rows = index.range::<[u8], _>((lower, upper));
        rows.map(|(k, at)| (k.clone(), self.ops[*at as usize].value.clone())).collect()
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
