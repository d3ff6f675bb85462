//! Documents that are ranges of a shard key, `{min, max}`, in the order of their keys: chunks and zones.

use pando_bson::{DocBuf, RawDoc};
use pando_routing::ShardKey;
use std::collections::BTreeSet;

pub(super) struct Range<'a> {
    pub(super) start: Vec<u8>,
    pub(super) end: Vec<u8>,
    pub(super) doc: &'a RawDoc,
}

/// How a range begins behind others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meets {
    /// Before they end.
    Overlap,
    /// Not where they end.
    Gap,
}

/// Sorted by where they begin.
pub(super) struct Ranges<'a> {
    pub(super) sorted: Vec<Range<'a>>,
    /// With a bound that is none of the key.
    pub(super) corrupted: Vec<&'a RawDoc>,
    /// Where corrupted ones begin, and where some end, as far as that can be read.
    starts: BTreeSet<Vec<u8>>,
    ends: BTreeSet<Vec<u8>>,
}

pub(super) fn bound<'a>(doc: &'a RawDoc, name: &str) -> &'a RawDoc {
    doc.get(name).and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty())
}

impl<'a> Ranges<'a> {
    pub(super) fn of(key: &ShardKey, docs: &'a [DocBuf]) -> Ranges<'a> {
        let (starts, ends) = (BTreeSet::new(), BTreeSet::new());
        let mut all = Ranges { sorted: Vec::with_capacity(docs.len()), corrupted: Vec::new(), starts, ends };
        for doc in docs {
            let [start, end] = ["min", "max"].map(|name| key.key_of_bound(bound(doc, name)).ok());
            match (start, end) {
                (Some(start), Some(end)) => all.sorted.push(Range { start, end, doc }),
                (start, end) => {
                    all.corrupted.push(doc);
                    all.starts.extend(start);
                    all.ends.extend(end);
                }
            }
        }
        all.sorted.sort_by(|a, b| (&a.start, &a.end).cmp(&(&b.start, &b.end)));
        all
    }
    /// Whether a corrupted range may be what lies between two others: it begins where the one ends, or ends where the other begins.
    pub(super) fn may_fill(&self, from: &[u8], to: &[u8]) -> bool {
        self.starts.contains(from) || self.ends.contains(to)
    }
    /// Tells of each range that does not begin where those before it end, with the one of those that reaches furthest. Returns the
    /// one that reaches furthest of all.
    pub(super) fn walk(&self, mut each: impl FnMut(Meets, &Range<'a>, &Range<'a>)) -> Option<&Range<'a>> {
        let mut all = self.sorted.iter();
        let mut furthest = all.next()?;
        for next in all {
            // What begins with the last one lies within it, however little that is.
            if next.start < furthest.end || next.start == furthest.start {
                each(Meets::Overlap, furthest, next);
            } else if next.start > furthest.end {
                each(Meets::Gap, furthest, next);
            }
            if next.end >= furthest.end {
                furthest = next;
            }
        }
        Some(furthest)
    }
}
