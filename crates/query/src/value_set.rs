//! Sets of values under MongoDB's equality (1 = 1.0, collation), by their key bytes.

use crate::collation::Collation;
use crate::ctx::QueryCtx;
use pando_base::patience;
use pando_bson::Value;
use pando_bson::keystring::{Directions, KeyBuilder};
use std::collections::BTreeSet;

/// Values seen so far.
#[derive(Default)]
pub(crate) struct ValueSet {
    keys: BTreeSet<Box<[u8]>>,
    bytes: usize,
    scratch: Option<KeyBuilder>,
}

/// What finding a place among many takes.
const SEARCH_STEPS: usize = 4;
/// Per key: the box, the table's share.
const KEY_OVERHEAD_BYTES: usize = 48;

impl ValueSet {
    fn key(&mut self, v: Value<'_>, ctx: &QueryCtx) -> &[u8] {
        let b = self.scratch.get_or_insert_with(|| KeyBuilder::new(Directions(0)));
        b.clear();
        b.append_with(v, Collation::order(&ctx.collation));
        b.bytes()
    }
    /// True when the value was not in the set.
    pub(crate) fn insert(&mut self, v: Value<'_>, ctx: &QueryCtx) -> bool {
        patience::is_over(SEARCH_STEPS);
        let key: Box<[u8]> = self.key(v, ctx).into();
        let size = key.len() + KEY_OVERHEAD_BYTES;
        let new = self.keys.insert(key);
        if new {
            self.bytes += size;
        }
        new
    }
    pub(crate) fn contains(&mut self, v: Value<'_>, ctx: &QueryCtx) -> bool {
        let b = self.scratch.get_or_insert_with(|| KeyBuilder::new(Directions(0)));
        b.clear();
        b.append_with(v, Collation::order(&ctx.collation));
        self.keys.contains(b.bytes())
    }
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes
    }
}
