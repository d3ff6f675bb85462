//! `{a: {$slice: n}}` and `{a: {$slice: [skip, limit]}}`.

use pando_base::{Error, Result};
use pando_bson::fields::safe_i64;
use pando_bson::{RawDoc, Value};

/// Which elements of an array to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// From the front, or from the end when negative; `None`: `limit` alone decides.
    skip: Option<i64>,
    limit: i64,
}

impl Slice {
    /// The find syntax; any other shape is left to the expression of the same name.
    pub(super) fn parse(v: Value<'_>) -> Result<Slice> {
        if let Some(limit) = whole(v) {
            return Ok(Slice { skip: None, limit });
        }
        let Value::Array(args) = v else {
            return Err(Error::location(31273, "$slice only supports numbers and [skip, limit] arrays"));
        };
        let mut numbers = args.iter().map(|e| whole(e.value()));
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Some(skip)), Some(Some(limit)), None) if limit > 0 => Ok(Slice { skip: Some(skip), limit }),
            (Some(Some(_)), Some(Some(_)), None) => {
                Err(Error::location(31271, "$slice limit must be positive"))
            }
            _ => Err(Error::location(31272, "$slice array argument should be of form [skip, limit]")),
        }
    }

    /// The kept positions of an array of `len` elements, as `start..end`.
    pub(super) fn range(self, len: usize) -> std::ops::Range<usize> {
        let len = len as i64;
        let (start, count) = match self.skip {
            None if self.limit < 0 => (len.saturating_add(self.limit).max(0), self.limit.saturating_neg()),
            None => (0, self.limit),
            Some(skip) if skip < 0 => (len.saturating_add(skip).max(0), self.limit),
            Some(skip) => (skip.min(len), self.limit),
        };
        start as usize..start.saturating_add(count).min(len) as usize
    }
}

/// A number as MongoDB's 32-bit arguments take it: rounded, held at the ends, NaN is 0.
fn whole(v: Value<'_>) -> Option<i64> {
    safe_i64(&v).map(|n| n.clamp(i64::from(i32::MIN), i64::from(i32::MAX)))
}

/// Writes the kept elements of `array` as the array `name`.
pub(super) fn write(slice: Slice, array: &RawDoc, name: &[u8], out: &mut pando_bson::DocBuilder) {
    let keep = slice.range(array.count());
    out.array(name, |b| {
        for e in array.iter().take(keep.end).skip(keep.start) {
            b.raw(e.ty, e.data());
        }
    });
}
