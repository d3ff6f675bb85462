//! Keys of any length over tables that take keys of 65,535 bytes.
//!
//! Nearly every key is short and lies in the tables as it is. A longer one is cut into steps of [`KeyCut::step`] bytes, and
//! each step but the last leads to a *node*, a number of its own:
//!
//! ```text
//!   the key          ident ‖ AAAA BBBB CC
//!   its rows   ident+LONG ‖ node 0 ‖ AAAA  →  node 7       an inner part: leads on
//!              ident+LONG ‖ node 7 ‖ BBBB  →  node 9       another, shared by all keys that begin in this way
//!              ident+LONG ‖ node 9 ‖ CC    →  the value    the end part, shorter than a step
//! ```
//!
//! So the parts below one node lie in the order of what the keys go on with, and a walk that goes down at inner parts meets
//! long keys in exactly their order. Walks merge it with that over short keys, key by key, and leave it out where the
//! ident has no long keys. Nothing above this file knows of parts.
//!
//! A run is whole with its long keys: their parts come behind all other rows (the highest bit of the ident is set) in
//! the same run. The numbers of nodes come from a counter, which is a row of the same run too. An inner part stays when
//! nothing is left below it, until a whole tree is rewritten or the ident is dropped.

use super::{Gc, Kv, KvBulk, KvIter, KvWalk, RunRow, Tree, TreeStats};
use crate::damage::damaged;
use crate::row;
use byteview::ByteView;
use lsm_tree::Slice;
use pando_base::panics::poisoned;
use pando_base::{Result, limits};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// In the ident of a row: a part of a long key of the ident without this bit.
const LONG: u32 = 1 << 31;
/// Of the ident and the node in front of a part.
const HEAD_LEN: usize = 12;
/// Of the timestamp at the end of a history key, kept behind the value too: a compaction sees only the key's end part.
const STOP_LEN: usize = 8;

/// Where keys are cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyCut {
    /// Longest key of a row, with its ident of four bytes, that lies in the tables as it is.
    pub plain: usize,
    /// Bytes of every part but the last.
    pub step: usize,
}

impl KeyCut {
    /// What the tables take. Never change it: stored keys are cut by it.
    pub const TABLES: KeyCut = KeyCut { plain: 65_535, step: 60_000 };
}

/// What a row of the tables is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// A row as it is, or the counter of nodes.
    Plain,
    Inner,
    End,
}

pub(super) fn part_of(key: &[u8], cut: KeyCut) -> Part {
    match row::ident_of(key) {
        0..=LONG => Part::Plain,
        _ if key.len() >= HEAD_LEN + cut.step => Part::Inner,
        _ => Part::End,
    }
}
/// The ident whose rows lie under this one; `None` for the counter of nodes, which belongs to the tree.
pub(super) fn owner(stored: u32) -> Option<u32> {
    (stored != LONG).then_some(stored & !LONG)
}
/// The stop timestamp of a row of the history.
pub(super) fn stop_of(part: Part, key: &[u8], value: &[u8]) -> u64 {
    row::stop_of(if part == Part::End { value } else { key })
}

fn part_key(ident: u32, node: u64, part: &[u8]) -> Slice {
    let mut head = [0; HEAD_LEN];
    head[..4].copy_from_slice(&(ident | LONG).to_be_bytes());
    head[4..].copy_from_slice(&node.to_be_bytes());
    Slice::from(ByteView::fused(&head, part))
}
fn counter_key() -> Slice {
    Slice::from(LONG.to_be_bytes())
}
/// What the value of an inner part, or of the counter, says.
fn number_of(value: &[u8]) -> Result<u64> {
    let payload = value.get(row::HEADER_BYTES..).and_then(|b| b.first_chunk::<8>());
    payload.map(|b| u64::from_be_bytes(*b)).ok_or_else(|| damaged("a part of a long key".to_owned()))
}
fn without_stop(tree: Tree, value: Slice) -> Slice {
    if tree != Tree::History {
        return value;
    }
    let n = value.len().saturating_sub(STOP_LEN);
    Slice::from(ByteView::from(value).slice(..n))
}

/// Takes keys of any length.
pub(crate) struct LongKeys<K>(Arc<Inner<K>>);

struct Inner<K> {
    kv: K,
    cut: KeyCut,
    trees: Vec<OneTree>,
}

#[derive(Default)]
struct OneTree {
    /// The next node; whoever writes a run holds it.
    next: Mutex<u64>,
    /// Idents that have, or had, long keys.
    idents: RwLock<BTreeSet<u32>>,
}

impl<K: Kv + 'static> LongKeys<K> {
    pub(crate) fn new(kv: K, cut: KeyCut) -> Result<LongKeys<K>> {
        let mut trees = Vec::new();
        for tree in Tree::ALL {
            let mut one = OneTree::default();
            if let Some(value) = kv.get(tree, &counter_key())? {
                one.next = Mutex::new(number_of(&value)?);
                one.idents = RwLock::new(idents_with_parts(&kv, tree)?);
            }
            trees.push(one);
        }
        Ok(LongKeys(Arc::new(Inner { kv, cut, trees })))
    }
}

fn idents_with_parts(kv: &dyn Kv, tree: Tree) -> Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    let mut from = Some(LONG + 1);
    while let Some(low) = from.map(u32::to_be_bytes) {
        let first = kv.range(tree, Bound::Included(&low), Bound::Unbounded, false).next();
        let Some((key, _)) = first.transpose()? else { break };
        let ident = row::ident_of(&key);
        found.insert(ident & !LONG);
        from = ident.checked_add(1);
    }
    Ok(found)
}

impl<K: Kv> Inner<K> {
    fn tree(&self, tree: Tree) -> &OneTree {
        &self.trees[usize::from(tree.number())]
    }
    fn lock(&self, tree: Tree) -> MutexGuard<'_, u64> {
        self.tree(tree).next.lock().unwrap_or_else(poisoned)
    }
    fn is_plain(&self, key: &[u8]) -> bool {
        key.len() <= self.cut.plain
    }

    fn get_long(&self, tree: Tree, key: &[u8]) -> Result<Option<Slice>> {
        let ident = row::ident_of(key);
        if !self.tree(tree).idents.read().unwrap_or_else(poisoned).contains(&ident) {
            return Ok(None);
        }
        let (mut node, mut rest) = (0, &key[4..]);
        while let Some((part, more)) = rest.split_at_checked(self.cut.step) {
            match self.kv.get(tree, &part_key(ident, node, part))? {
                Some(value) => node = number_of(&value)?,
                None => return Ok(None),
            }
            rest = more;
        }
        let found = self.kv.get(tree, &part_key(ident, node, rest))?;
        Ok(found.map(|value| without_stop(tree, value)))
    }

    /// The rows that stand for these long keys, in order. `next` is held by the writer of the run.
    fn parts(&self, tree: Tree, next: &mut u64, rows: Vec<RunRow>) -> Result<Vec<RunRow>> {
        let (first, mut out) = (*next, BTreeMap::new());
        for (key, value) in rows {
            let Some(end) = self.end_part(tree, next, &key, value.is_some(), &mut out)? else { continue };
            let value = match value {
                Some(v) if tree == Tree::History => {
                    Some(Slice::from(ByteView::fused(&v, &key[key.len() - STOP_LEN..])))
                }
                other => other,
            };
            out.insert(end, value);
        }
        if *next != first {
            out.insert(counter_key(), Some(row::stamped_value(0, &next.to_be_bytes())));
        }
        let mut idents = self.tree(tree).idents.write().unwrap_or_else(poisoned);
        idents.extend(out.keys().map(|k| row::ident_of(k) & !LONG).filter(|ident| *ident != 0));
        Ok(out.into_iter().collect())
    }

    /// The key of a long key's end part. `None`: there is no way to it, and none is to be made.
    fn end_part(
        &self,
        tree: Tree,
        next: &mut u64,
        key: &[u8],
        make: bool,
        out: &mut BTreeMap<Slice, Option<Slice>>,
    ) -> Result<Option<Slice>> {
        let ident = row::ident_of(key);
        let (mut node, mut rest) = (0, &key[4..]);
        while let Some((part, more)) = rest.split_at_checked(self.cut.step) {
            let inner = part_key(ident, node, part);
            let there = match out.get(&inner) {
                Some(new) => new.clone(),
                None => self.kv.get(tree, &inner)?,
            };
            node = match there {
                Some(value) => number_of(&value)?,
                None if make => {
                    // Node 0 is every ident's root.
                    *next += 1;
                    out.insert(inner, Some(row::stamped_value(0, &next.to_be_bytes())));
                    *next
                }
                None => return Ok(None),
            };
            rest = more;
        }
        Ok(Some(part_key(ident, node, rest)))
    }

    /// Removes inner parts below which nothing is left.
    fn collect(&self, tree: Tree) -> Result<()> {
        // Nobody puts anything below them meanwhile.
        let _one = self.lock(tree);
        let idents = self.tree(tree).idents.read().unwrap_or_else(poisoned).clone();
        let mut gone = BTreeSet::new();
        for ident in idents {
            self.collect_of(tree, ident, &mut gone)?;
        }
        self.kv.write_run(tree, &mut gone.into_iter().map(|key| Ok((key, None))))
    }
    fn collect_of(&self, tree: Tree, ident: u32, gone: &mut BTreeSet<Slice>) -> Result<()> {
        // Each open node, the inner part that leads to it and whether anything was found below it.
        let mut open = vec![(self.below(tree, ident, 0), Slice::default(), false)];
        while let Some((walk, _, found)) = open.last_mut() {
            if walk.step()? {
                if walk.key().len() < HEAD_LEN + self.cut.step {
                    *found = true;
                } else {
                    let (node, key) = (number_of(walk.value())?, Slice::from(walk.key()));
                    open.push((self.below(tree, ident, node), key, false));
                }
                continue;
            }
            let Some((_, key, found)) = open.pop() else { break };
            match open.last_mut() {
                Some(above) if found => above.2 = true,
                Some(_) => {
                    gone.insert(key);
                }
                None => {}
            }
        }
        Ok(())
    }
    /// The parts below a node.
    fn below(&self, tree: Tree, ident: u32, node: u64) -> KvIter {
        let (low, high) = (part_key(ident, node, &[]), part_key(ident, node + 1, &[]));
        self.kv.range(tree, Bound::Included(&low), Bound::Excluded(&high), false)
    }
}

impl<K: Kv + 'static> Kv for LongKeys<K> {
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Slice>> {
        if self.0.is_plain(key) { self.0.kv.get(tree, key) } else { self.0.get_long(tree, key) }
    }

    fn range(&self, tree: Tree, lower: Bound<&[u8]>, upper: Bound<&[u8]>, backward: bool) -> KvIter {
        let plain = self.0.plain_range(tree, lower, upper, backward);
        let (low, high) = (bound_ident(lower).unwrap_or(0), bound_ident(upper).unwrap_or(LONG));
        let mut idents: Vec<u32> = {
            let all = self.0.tree(tree).idents.read().unwrap_or_else(poisoned);
            if low > high { Vec::new() } else { all.range(low..=high).copied().collect() }
        };
        if idents.is_empty() {
            return plain;
        }
        // The next one is taken from the end.
        if !backward {
            idents.reverse();
        }
        let long = LongWalk {
            inner: self.0.clone(),
            tree,
            backward,
            lower: lower.map(Slice::from),
            upper: upper.map(Slice::from),
            idents,
            key: Vec::new(),
            levels: Vec::new(),
        };
        Box::new(Both { plain, long, backward, at_plain: true, at_long: true, of_long: None })
    }

    fn write_run(&self, tree: Tree, rows: &mut dyn Iterator<Item = Result<RunRow>>) -> Result<()> {
        let inner = &*self.0;
        let mut next = inner.lock(tree);
        let (mut long, mut parts) = (Vec::new(), None);
        let mut all = std::iter::from_fn(|| {
            while parts.is_none() {
                match rows.next() {
                    Some(Ok((key, value))) if !inner.is_plain(&key) => long.push((key, value)),
                    Some(row) => return Some(row),
                    None => match inner.parts(tree, &mut next, std::mem::take(&mut long)) {
                        Ok(made) => parts = Some(made.into_iter()),
                        Err(e) => {
                            parts = Some(Vec::new().into_iter());
                            return Some(Err(e));
                        }
                    },
                }
            }
            parts.as_mut().and_then(Iterator::next).map(Ok)
        });
        inner.kv.write_run(tree, &mut all)
    }

    fn compact(&self, gc: &Gc) -> Result<bool> {
        self.0.kv.compact(gc)
    }
    fn compact_all(&self, tree: Tree, gc: &Gc) -> Result<()> {
        self.0.kv.compact_all(tree, gc)?;
        self.0.collect(tree)
    }
    fn stats(&self, tree: Tree) -> TreeStats {
        self.0.kv.stats(tree)
    }
    fn memory(&self) -> (u64, u64) {
        self.0.kv.memory()
    }
    fn pin(&self, each: &mut dyn FnMut(String) -> Result<()>) -> Result<()> {
        self.0.kv.pin(each)
    }
    fn has_rows(&self, tree: Tree, ident: u32) -> Result<bool> {
        Ok(self.0.kv.has_rows(tree, ident)? || self.0.kv.has_rows(tree, ident | LONG)?)
    }
    fn has_long_keys(&self) -> bool {
        let any = |t: &OneTree| !t.idents.read().unwrap_or_else(poisoned).is_empty();
        self.0.trees.iter().any(any)
    }
    fn bulk(&self, tree: Tree) -> Result<Box<dyn KvBulk>> {
        let plain = self.0.kv.bulk(tree)?;
        Ok(Box::new(Bulk { inner: self.0.clone(), tree, plain, long: Vec::new(), bytes: 0 }))
    }
}

fn bound_ident(bound: Bound<&[u8]>) -> Option<u32> {
    match bound {
        Bound::Included(k) | Bound::Excluded(k) => k.first_chunk::<4>().map(|b| u32::from_be_bytes(*b)),
        Bound::Unbounded => None,
    }
}

impl<K: Kv> Inner<K> {
    /// The short keys within the bounds. No short key lies between a long bound and its first bytes, so these take
    /// its place: what is longer than they are comes behind them.
    fn plain_range(&self, tree: Tree, lower: Bound<&[u8]>, upper: Bound<&[u8]>, backward: bool) -> KvIter {
        let long = |k: &[u8]| !self.is_plain(k);
        let lower = match lower {
            Bound::Included(k) | Bound::Excluded(k) if long(k) => Bound::Excluded(&k[..self.cut.plain]),
            other => other,
        };
        let end = LONG.to_be_bytes();
        let upper = match upper {
            Bound::Included(k) | Bound::Excluded(k) if k >= &end[..] => Bound::Excluded(&end[..]),
            Bound::Included(k) | Bound::Excluded(k) if long(k) => Bound::Included(&k[..self.cut.plain]),
            Bound::Unbounded => Bound::Excluded(&end[..]),
            other => other,
        };
        self.kv.range(tree, lower, upper, backward)
    }
}

/// A walk over long keys: down at inner parts, up at the end of what is below them.
struct LongWalk<K> {
    inner: Arc<Inner<K>>,
    tree: Tree,
    backward: bool,
    lower: Bound<Slice>,
    upper: Bound<Slice>,
    /// Still to come, the next one last.
    idents: Vec<u32>,
    /// The key it stands at.
    key: Vec<u8>,
    levels: Vec<Level>,
}

struct Level {
    /// Over the parts below one node.
    walk: KvIter,
    /// Bytes of the key in front of them.
    at: usize,
    /// What is left of the bound where the walk begins, if that lies below this node.
    begin: Option<Vec<u8>>,
}

impl<K: Kv> LongWalk<K> {
    fn open(&self, ident: u32, node: u64, at: usize, begin: Option<Vec<u8>>) -> Level {
        let (first, end) = (part_key(ident, node, &[]), part_key(ident, node + 1, &[]));
        let part = |rest: &Vec<u8>| part_key(ident, node, &rest[..rest.len().min(self.inner.cut.step)]);
        let begin_key = begin.as_ref().map(part);
        let (low, high) = match &begin_key {
            Some(k) if self.backward => (&first, Bound::Included(&k[..])),
            Some(k) => (k, Bound::Excluded(&end[..])),
            None => (&first, Bound::Excluded(&end[..])),
        };
        let walk = self.inner.kv.range(self.tree, Bound::Included(low), high, self.backward);
        Level { walk, at, begin }
    }
    fn open_ident(&mut self, ident: u32) {
        self.key.clear();
        self.key.extend_from_slice(&ident.to_be_bytes());
        let begin = match if self.backward { &self.upper } else { &self.lower } {
            Bound::Included(k) | Bound::Excluded(k) => k.strip_prefix(&self.key[..]).map(<[u8]>::to_vec),
            Bound::Unbounded => None,
        };
        let root = self.open(ident, 0, self.key.len(), begin);
        self.levels.push(root);
    }
    /// The key lies before the beginning of the walk, within it, or behind its end.
    fn place(&self) -> std::cmp::Ordering {
        let low = match &self.lower {
            Bound::Included(k) => self.key[..] < k[..],
            Bound::Excluded(k) => self.key[..] <= k[..],
            Bound::Unbounded => false,
        };
        let high = match &self.upper {
            Bound::Included(k) => self.key[..] > k[..],
            Bound::Excluded(k) => self.key[..] >= k[..],
            Bound::Unbounded => false,
        };
        match (low, high) {
            (true, _) if self.backward => std::cmp::Ordering::Greater,
            (true, _) => std::cmp::Ordering::Less,
            (_, true) if self.backward => std::cmp::Ordering::Less,
            (_, true) => std::cmp::Ordering::Greater,
            _ => std::cmp::Ordering::Equal,
        }
    }
}

impl<K: Kv> KvWalk for LongWalk<K> {
    fn step(&mut self) -> Result<bool> {
        loop {
            let Some(level) = self.levels.last_mut() else {
                match self.idents.pop() {
                    Some(ident) => self.open_ident(ident),
                    None => return Ok(false),
                }
                continue;
            };
            self.key.truncate(level.at);
            if !level.walk.step()? {
                self.levels.pop();
                continue;
            }
            let part = level.walk.key().get(HEAD_LEN..);
            let part = part.ok_or_else(|| damaged("the key of a part of a long key".to_owned()))?;
            self.key.extend_from_slice(part);
            if part.len() >= self.inner.cut.step {
                let node = number_of(level.walk.value())?;
                let begin = level.begin.as_ref().and_then(|b| b.strip_prefix(part)).map(<[u8]>::to_vec);
                let below = self.open(row::ident_of(&self.key), node, self.key.len(), begin);
                self.levels.push(below);
                continue;
            }
            match self.place() {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Ok(true),
                std::cmp::Ordering::Greater => {
                    self.levels.clear();
                    self.idents.clear();
                    return Ok(false);
                }
            }
        }
    }
    fn key(&self) -> &[u8] {
        &self.key
    }
    fn value(&self) -> &[u8] {
        let value = self.levels.last().map_or(&[][..], |l| l.walk.value());
        let stop = if self.tree == Tree::History { STOP_LEN } else { 0 };
        &value[..value.len().saturating_sub(stop)]
    }
    fn share(&self) -> Slice {
        self.levels.last().map_or_else(Slice::default, |l| without_stop(self.tree, l.walk.share()))
    }
}

/// Short and long keys merged; no key is both.
struct Both<K> {
    plain: KvIter,
    long: LongWalk<K>,
    backward: bool,
    at_plain: bool,
    at_long: bool,
    /// Which one the walk stands at; `None` before its first step.
    of_long: Option<bool>,
}

impl<K: Kv> KvWalk for Both<K> {
    fn step(&mut self) -> Result<bool> {
        if self.at_plain && self.of_long != Some(true) {
            self.at_plain = self.plain.step()?;
        }
        if self.at_long && self.of_long != Some(false) {
            self.at_long = self.long.step()?;
        }
        let long = match (self.at_plain, self.at_long) {
            (false, false) => return Ok(false),
            (true, true) => (self.long.key() < self.plain.key()) != self.backward,
            (_, long) => long,
        };
        self.of_long = Some(long);
        Ok(true)
    }
    fn key(&self) -> &[u8] {
        if self.of_long == Some(true) { self.long.key() } else { self.plain.key() }
    }
    fn value(&self) -> &[u8] {
        if self.of_long == Some(true) { self.long.value() } else { self.plain.value() }
    }
    fn share(&self) -> Slice {
        if self.of_long == Some(true) { self.long.share() } else { self.plain.share() }
    }
}

/// Long keys of a bulk load become runs of their own. Nobody reads the ident before all is finished, and what is given
/// up goes with the ident.
struct Bulk<K> {
    inner: Arc<Inner<K>>,
    tree: Tree,
    plain: Box<dyn KvBulk>,
    long: Vec<RunRow>,
    bytes: usize,
}

impl<K: Kv> Bulk<K> {
    fn write_long(&mut self) -> Result<()> {
        self.bytes = 0;
        let mut next = self.inner.lock(self.tree);
        let parts = self.inner.parts(self.tree, &mut next, std::mem::take(&mut self.long))?;
        self.inner.kv.write_run(self.tree, &mut parts.into_iter().map(Ok))
    }
}

impl<K: Kv> KvBulk for Bulk<K> {
    fn push(&mut self, key: Slice, value: Slice) -> Result<()> {
        if self.inner.is_plain(&key) {
            return self.plain.push(key, value);
        }
        self.bytes += key.len() + value.len();
        self.long.push((key, Some(value)));
        if self.bytes >= limits::BULK_TABLE_BYTES { self.write_long() } else { Ok(()) }
    }
    fn finish(mut self: Box<Self>) -> Result<()> {
        if !self.long.is_empty() {
            self.write_long()?;
        }
        self.plain.finish()
    }
}

#[cfg(test)]
mod tests;
