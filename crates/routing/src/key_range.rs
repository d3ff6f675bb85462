//! `[min, max)` of a shard key, as bytes.

use crate::ShardKey;
use pando_base::{Error, Result};
use pando_bson::RawDoc;

/// The range up to the end of everything holds that, too: a document whose key is nothing but `MaxKey` lies in the last chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    holds_end: bool,
}

impl ShardKey {
    /// # Errors
    /// 2 for bounds that are none of this key, or for a range of nothing.
    pub fn range(&self, min: &RawDoc, max: &RawDoc) -> Result<KeyRange> {
        let (start, end) = (self.key_of_bound(min)?, self.key_of_bound(max)?);
        if start >= end {
            return Err(Error::bad_value(format!("[{min}, {max}) is no range")));
        }
        Ok(KeyRange { start, end, holds_end: *max == *self.greatest() })
    }
}

impl KeyRange {
    pub fn holds(&self, key: &[u8]) -> bool {
        key >= self.start.as_slice() && (self.holds_end || key < self.end.as_slice())
    }
    /// Where entries of an index that begins with the key end, as index scans take it: nothing is the end of all.
    pub fn index_end(&self) -> &[u8] {
        if self.holds_end { &[] } else { &self.end }
    }
    /// Whether it shares something with `[start, end)`.
    pub fn meets(&self, start: &[u8], end: &[u8]) -> bool {
        self.start.as_slice() < end && start < self.end.as_slice()
    }
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        self.meets(&other.start, &other.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::keystring::KeyBuilder;
    use pando_bson::{Bson, doc};

    fn key() -> ShardKey {
        ShardKey::parse(&doc! { "k": 1 }.to_raw()).unwrap()
    }
    fn at(k: impl Into<Bson>) -> Vec<u8> {
        let mut out = KeyBuilder::default();
        key().key_of(&doc! { "k": k.into() }.to_raw(), &mut out).unwrap();
        out.finish()
    }
    fn range(min: impl Into<Bson>, max: impl Into<Bson>) -> Result<KeyRange> {
        key().range(&doc! { "k": min.into() }.to_raw(), &doc! { "k": max.into() }.to_raw())
    }

    #[test]
    fn a_range_holds_its_lower_bound_and_its_upper_one_at_the_end_of_everything_alone() {
        let some = range(0, 5).unwrap();
        assert_eq!([-1, 0, 4, 5].map(|k| some.holds(&at(k))), [false, true, true, false]);
        assert_eq!(some.index_end(), some.end);
        let last = range(5, Bson::MaxKey).unwrap();
        assert!(last.holds(&at(Bson::MaxKey)) && last.index_end().is_empty() && !last.holds(&at(4)));
        assert!(range(5, 5).is_err() && range(5, 4).is_err());
    }
    #[test]
    fn ranges_that_only_touch_share_nothing() {
        let some = range(0, 5).unwrap();
        let overlaps = |min, max| some.overlaps(&range(min, max).unwrap());
        assert_eq!(
            [overlaps(5, 9), overlaps(-5, 0), overlaps(4, 9), overlaps(1, 2), overlaps(-9, 9)],
            [false, false, true, true, true]
        );
    }
}
