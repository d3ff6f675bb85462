//! Zones: ranges of a collection's keys that only shards with a tag may hold (SH-CAT-5, SH-BAL-6).

use crate::fields::Fields;
use crate::shard_key::ShardKey;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};

/// A document of `config.tags`: `[min, max)` of one collection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneRange {
    pub ns: String,
    pub min: DocBuf,
    pub max: DocBuf,
    pub zone: String,
}

impl ZoneRange {
    pub fn parse(doc: &RawDoc) -> Result<ZoneRange> {
        let f = Fields { kind: "TagsType", doc };
        let (min, max) = (f.document("min")?.to_buf(), f.document("max")?.to_buf());
        Ok(ZoneRange { ns: f.text("ns")?.to_owned(), min, max, zone: f.text("tag")?.to_owned() })
    }
    pub fn to_doc(&self) -> DocBuf {
        let mut d = DocBuilder::new();
        d.doc("_id", |id| {
            id.str("ns", &self.ns).raw_doc("min", &self.min);
        });
        d.str("ns", &self.ns).raw_doc("min", &self.min).raw_doc("max", &self.max).str("tag", &self.zone);
        d.finish()
    }
}

/// The zones of one collection, in the order of their keys.
#[derive(Clone, Default, Debug)]
pub struct Zones {
    ranges: Vec<Keyed>,
}

#[derive(Clone, Debug)]
struct Keyed {
    start: Vec<u8>,
    end: Vec<u8>,
    range: ZoneRange,
}

impl Zones {
    /// # Errors
    /// 178 when two overlap.
    pub fn new(key: &ShardKey, ranges: &[ZoneRange]) -> Result<Zones> {
        let mut keyed = Vec::with_capacity(ranges.len());
        for range in ranges {
            keyed.push(Zones::keyed(key, range)?);
        }
        keyed.sort_by(|a, b| a.start.cmp(&b.start));
        if let Some(two) = keyed.windows(2).find(|two| two[1].start < two[0].end) {
            return Err(overlap(&two[1].range, &two[0].range));
        }
        Ok(Zones { ranges: keyed })
    }
    fn keyed(key: &ShardKey, range: &ZoneRange) -> Result<Keyed> {
        let (min, max) = (key.extend_bound(&range.min), key.extend_bound(&range.max));
        let (start, end) = (key.key_of_bound(&min)?, key.key_of_bound(&max)?);
        if start >= end {
            let text = format!("min: {min} should be less than max: {max}");
            return Err(Error::new(ErrorCode::FailedToParse, text));
        }
        Ok(Keyed { start, end, range: ZoneRange { min, max, ..range.clone() } })
    }
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
    pub fn iter(&self) -> impl Iterator<Item = &ZoneRange> {
        self.ranges.iter().map(|k| &k.range)
    }
    /// The zone of `[start, end)`: none where it has none, and none where it has several, which must be split first.
    pub fn of(&self, start: &[u8], end: &[u8]) -> Option<&str> {
        let i = self.ranges.partition_point(|k| k.start.as_slice() <= start).checked_sub(1)?;
        let k = &self.ranges[i];
        (end <= k.end.as_slice()).then_some(&*k.range.zone)
    }
    /// Whether a zone begins or ends strictly within `[start, end)`.
    pub fn end_within(&self, start: &[u8], end: &[u8]) -> bool {
        // The first that ends behind the start: it begins or ends within, or all others are behind.
        let i = self.ranges.partition_point(|k| k.end.as_slice() <= start);
        self.ranges.get(i).is_some_and(|k| k.end.as_slice() < end || (start < &*k.start && &*k.start < end))
    }
    /// Bounds of zones strictly within `[start, end)`: where a chunk must be split.
    pub fn bounds_within(&self, start: &[u8], end: &[u8]) -> Vec<&RawDoc> {
        let within = |key: &[u8]| start < key && key < end;
        let mut out: Vec<(&[u8], &RawDoc)> = Vec::new();
        for k in &self.ranges {
            let ends = [(k.start.as_slice(), &*k.range.min), (k.end.as_slice(), &*k.range.max)];
            out.extend(ends.into_iter().filter(|(key, _)| within(key)));
        }
        out.dedup_by(|b, a| a.0 == b.0);
        out.into_iter().map(|(_, doc)| doc).collect()
    }
    /// With one more; the same once more changes nothing.
    pub fn with(&self, key: &ShardKey, range: &ZoneRange) -> Result<Zones> {
        let new = Zones::keyed(key, range)?;
        let mut ranges = self.ranges.clone();
        if let Some(other) = ranges.iter().find(|k| k.start < new.end && new.start < k.end) {
            return if other.range == new.range {
                Ok(self.clone())
            } else {
                Err(overlap(&new.range, &other.range))
            };
        }
        let at = ranges.partition_point(|k| k.start < new.start);
        ranges.insert(at, new);
        Ok(Zones { ranges })
    }
    /// Without the range that has just these bounds; taking away what is not there changes nothing.
    pub fn without(&self, key: &ShardKey, min: &RawDoc, max: &RawDoc) -> Result<Zones> {
        let (start, end) =
            (key.key_of_bound(&key.extend_bound(min))?, key.key_of_bound(&key.extend_bound(max))?);
        let kept = self.ranges.iter().filter(|k| k.start != start || k.end != end);
        Ok(Zones { ranges: kept.cloned().collect() })
    }
}

fn overlap(new: &ZoneRange, old: &ZoneRange) -> Error {
    let text = format!(
        "Zone range: [{}, {}) is overlapping with existing: [{}, {})",
        new.min, new.max, old.min, old.max
    );
    Error::new(ErrorCode::RangeOverlapConflict, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::doc;

    fn range(min: &str, max: &str, zone: &str) -> ZoneRange {
        ZoneRange { ns: "d.c".to_owned(), min: doc(min), max: doc(max), zone: zone.to_owned() }
    }

    #[test]
    fn zones_do_not_overlap_and_cut_chunks() {
        let key = ShardKey::parse(&doc(r#"{"a": 1, "b": 1}"#)).unwrap();
        let at = |n: i32| key.key_of_bound(&doc(&format!(r#"{{"a": {n}, "b": {{"$minKey": 1}}}}"#))).unwrap();
        let zones = Zones::default().with(&key, &range(r#"{"a": 10}"#, r#"{"a": 20}"#, "x")).unwrap();
        let zones = zones.with(&key, &range(r#"{"a": 20}"#, r#"{"a": 30}"#, "y")).unwrap();
        assert_eq!(zones.with(&key, &range(r#"{"a": 10}"#, r#"{"a": 20}"#, "x")).unwrap().ranges.len(), 2);
        let refused = zones.with(&key, &range(r#"{"a": 15}"#, r#"{"a": 16}"#, "x")).unwrap_err();
        assert_eq!(refused.code, ErrorCode::RangeOverlapConflict);
        assert_eq!(zones.of(&at(10), &at(20)), Some("x"));
        assert_eq!(zones.of(&at(11), &at(12)), Some("x"));
        assert_eq!(zones.of(&at(15), &at(25)), None);
        assert_eq!(zones.of(&at(1), &at(5)), None);
        assert_eq!(zones.bounds_within(&at(0), &at(25)).len(), 2);
        assert_eq!(zones.bounds_within(&at(0), &at(99)).len(), 3);
        assert!(zones.bounds_within(&at(10), &at(20)).is_empty());
        let one = zones.without(&key, &doc(r#"{"a": 10}"#), &doc(r#"{"a": 20}"#)).unwrap();
        assert!(one.ranges.len() == 1 && one.of(&at(10), &at(20)).is_none());
        assert!(Zones::default().with(&key, &range(r#"{"a": 3}"#, r#"{"a": 3}"#, "x")).is_err());
        let stored = zones.iter().next().unwrap();
        assert_eq!(&ZoneRange::parse(&stored.to_doc()).unwrap(), stored);
    }
}
