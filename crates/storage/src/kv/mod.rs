//! Ordered tables on disk, seen through four calls.
//!
//! A backend holds some trees. It knows nothing about versions or timestamps beyond what [`Gc`] tells it while
//! it compacts. All its writes are whole sorted runs, each atomic and durable when the call returns, and made
//! only by one flusher at a time; reads come from any thread at any time.

mod block;
pub(crate) mod long;
pub(crate) mod lsm;
mod manifest;
pub(crate) mod mem;
mod run;
mod sealed;
mod walk;

use crate::ident::Ident;
use lsm_tree::Slice;
use pando_base::Result;
use std::collections::BTreeSet;
use std::ops::Bound;

/// The trees. Record stores are apart from indexes so that appended records compact trivially, and spread over several
/// trees by their ident: a tree moves and merges by whole levels, so a load into one collection would be merged over
/// and over when rows of another, between which its keys lie, are written beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tree {
    /// Below [`RECORD_TREES`].
    Records(u8),
    Indexes,
    History,
}

pub(crate) const RECORD_TREES: u8 = 8;

impl Tree {
    /// Each at its number.
    pub(crate) const ALL: [Tree; 10] = [
        Tree::Records(0),
        Tree::Indexes,
        Tree::History,
        Tree::Records(1),
        Tree::Records(2),
        Tree::Records(3),
        Tree::Records(4),
        Tree::Records(5),
        Tree::Records(6),
        Tree::Records(7),
    ];
    pub(crate) fn records() -> impl Iterator<Item = Tree> {
        (0..RECORD_TREES).map(Tree::Records)
    }
    pub(crate) fn number(self) -> u8 {
        match self {
            Tree::Records(0) => 0,
            Tree::Indexes => 1,
            Tree::History => 2,
            Tree::Records(n) => 2 + n,
        }
    }
    /// The catalog and the server's own small rows, some of which change with every checkpoint, come first in key order:
    /// among the records they would make each run overlap all others, and appended records would be merged over and
    /// over. Among the indexes they are not worth a mention.
    pub(crate) fn of(ident: u32) -> Tree {
        debug_assert!(ident < 1 << 31, "the highest bit marks parts of long keys");
        if ident & 1 == 1 || ident < Ident::FIRST_FREE {
            return Tree::Indexes;
        }
        // The golden ratio: collections are spread whatever the step from one number to the next.
        let spread = (ident >> 1).wrapping_mul(0x9e37_79b9);
        Tree::Records((spread >> (32 - RECORD_TREES.ilog2())) as u8)
    }
    /// Its folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tree::Records(0) => "records",
            Tree::Records(n) => {
                ["records1", "records2", "records3", "records4", "records5", "records6", "records7"]
                    [usize::from(n) - 1]
            }
            Tree::Indexes => "indexes",
            Tree::History => "history",
        }
    }
}

/// A walk over rows that looks at them where they lie.
pub(crate) trait KvWalk: Send {
    /// Goes to the next row; false at the end.
    fn step(&mut self) -> Result<bool>;
    /// The row it stands at, until the next step.
    fn key(&self) -> &[u8];
    fn value(&self) -> &[u8];
    /// The value without copying it, for as long as wanted.
    fn share(&self) -> Slice;
}

pub(crate) type KvIter = Box<dyn KvWalk>;

impl Iterator for dyn KvWalk {
    type Item = Result<(Slice, Slice)>;
    fn next(&mut self) -> Option<Self::Item> {
        match self.step() {
            Ok(true) => Some(Ok((Slice::from(self.key()), self.share()))),
            Ok(false) => None,
            Err(e) => Some(Err(e)),
        }
    }
}

/// `None` removes the key.
pub(crate) type RunRow = (Slice, Option<Slice>);

/// What a compaction may drop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gc {
    /// Versions replaced, and rows deleted, at or below this are needed by nobody.
    pub(crate) below: u64,
    /// Idents whose rows are gone for good.
    pub(crate) dead: BTreeSet<u32>,
}

/// Figures of one tree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreeStats {
    pub(crate) tables: usize,
    pub(crate) runs: usize,
    pub(crate) bytes: u64,
}

pub(crate) trait Kv: Send + Sync {
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Slice>>;
    /// Rows within the bounds, in key order or against it, from the tables as they are now.
    fn range(&self, tree: Tree, lower: Bound<&[u8]>, upper: Bound<&[u8]>, backward: bool) -> KvIter;
    /// Adds a sorted run (unique ascending keys) above everything written before; durable on return.
    fn write_run(&self, tree: Tree, rows: &mut dyn Iterator<Item = Result<RunRow>>) -> Result<()>;
    /// Does one piece of compaction if any is due; true when something was done.
    fn compact(&self, gc: &Gc) -> Result<bool>;
    /// Rewrites a whole tree, dropping what `gc` allows.
    fn compact_all(&self, tree: Tree, gc: &Gc) -> Result<()>;
    /// Whether any table holds a row of `ident`, be it a deleted one.
    fn has_rows(&self, tree: Tree, ident: u32) -> Result<bool>;
    fn stats(&self, tree: Tree) -> TreeStats;
    /// Bytes of table blocks in memory: cached ones, and those that stay as long as their table.
    fn memory(&self) -> (u64, u64);
    /// Names the files that are the tables now, none of which changes or goes while `each` runs.
    fn pin(&self, each: &mut dyn FnMut(String) -> Result<()>) -> Result<()>;
    /// Whether there are, or were, keys that lie in parts.
    fn has_long_keys(&self) -> bool {
        false
    }
    /// Starts a run that is written piece by piece and appears whole when finished.
    fn bulk(&self, tree: Tree) -> Result<Box<dyn KvBulk>>;
}

/// See [`Kv::bulk`]. Dropping it leaves nothing behind.
pub(crate) trait KvBulk: Send {
    /// Keys ascend.
    fn push(&mut self, key: Slice, value: Slice) -> Result<()>;
    /// Durable and readable on return.
    fn finish(self: Box<Self>) -> Result<()>;
}
