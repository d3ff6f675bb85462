//! What several shards send, put together as a [`Split`](super::Split) says: in order, or as it comes.

use super::row::Row;
use super::split::{MergeOrder, OrderedBy};
use super::step::{Input, Step};
use crate::ctx::QueryCtx;
use crate::sort::SortKeys;
use pando_base::{Error, Result};
use pando_bson::keystring::KeyBuilder;

/// The rows of all inputs. With an order, each input has to come in it, and of equal rows those of the first input go first.
pub struct Merged<I> {
    inputs: Vec<Arm<I>>,
    order: Option<Keys>,
}

struct Arm<I> {
    input: I,
    /// The next row, with its key.
    head: Option<(Vec<u8>, Row)>,
    ended: bool,
}

enum Keys {
    Fields(SortKeys),
    /// Strings in them are as the collation compares them already.
    Carried(KeyBuilder),
}

impl Keys {
    fn new(order: &MergeOrder, q: &QueryCtx) -> Keys {
        match order.by {
            OrderedBy::Fields => Keys::Fields(SortKeys::new(order.pattern.clone(), q.collation.clone())),
            OrderedBy::Carried => Keys::Carried(KeyBuilder::new(order.pattern.directions())),
        }
    }
    fn of(&mut self, row: &Row) -> Result<Vec<u8>> {
        match self {
            Keys::Fields(keys) => Ok(keys.key(row.doc(), row.facts())?.to_vec()),
            Keys::Carried(b) => {
                let key = row.facts().and_then(|f| f.sort_key.as_ref());
                let key =
                    key.ok_or_else(|| Error::internal("a row of a sorted stream without its sort key"))?;
                b.clear();
                for e in &**key {
                    b.append_elem(&e, None);
                }
                Ok(b.bytes().to_vec())
            }
        }
    }
}

impl<I: Input> Merged<I> {
    pub fn new(inputs: Vec<I>, order: Option<&MergeOrder>, q: &QueryCtx) -> Merged<I> {
        let arm = |input| Arm { input, head: None, ended: false };
        Merged { inputs: inputs.into_iter().map(arm).collect(), order: order.map(|o| Keys::new(o, q)) }
    }

    fn as_it_comes(&mut self) -> Result<Step> {
        let mut end = Step::Eof;
        for arm in self.inputs.iter_mut().filter(|arm| !arm.ended) {
            match arm.input.next()? {
                Step::Eof => arm.ended = true,
                Step::NeedYield => end = Step::NeedYield,
                row => return Ok(row),
            }
        }
        Ok(end)
    }
}

impl<I: Input> Input for Merged<I> {
    fn next(&mut self) -> Result<Step> {
        let Some(keys) = &mut self.order else { return self.as_it_comes() };
        let mut waiting = false;
        for arm in self.inputs.iter_mut().filter(|arm| !arm.ended && arm.head.is_none()) {
            match arm.input.next()? {
                Step::Row(row) => arm.head = Some((keys.of(&row)?, row)),
                Step::NeedYield => waiting = true,
                Step::Eof => arm.ended = true,
            }
        }
        if waiting {
            return Ok(Step::NeedYield);
        }
        let heads = self.inputs.iter_mut().filter(|arm| arm.head.is_some());
        let first = heads.min_by(|a, b| {
            let key = |arm: &Arm<I>| arm.head.as_ref().map(|(key, _)| key.clone());
            key(a).cmp(&key(b))
        });
        Ok(first.and_then(|arm| arm.head.take()).map_or(Step::Eof, |(_, row)| Step::Row(row)))
    }
}
