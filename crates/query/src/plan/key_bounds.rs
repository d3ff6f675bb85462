//! Intervals of values into ranges of key bytes, and the check of a key against them.
//!
//! Each field's encoding is self-delimiting, so a key splits into segments that are compared as bytes. When
//! all but the last bounded field are single points, the scan is one plain range and no key needs checking.
//! Otherwise a key between two intervals tells where to seek next, and whole stretches are skipped.

use super::bound_field::BoundField;
use super::interval::Order;
use crate::matcher::Operand;
use crate::source::{Direction, FieldKind};
use pando_base::patience;
use pando_bson::keystring::{AFTER, Directions, KeyBuilder, KeyReader};
use std::cmp::Ordering;

/// The byte form of an index scan's bounds.
#[derive(Clone, Debug)]
pub struct KeyBounds {
    fields: Vec<Vec<KeyRange>>,
    directions: Directions,
    /// All keys wanted are in `[start, end)`; an empty `end` is open.
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    /// All keys in `[start, end)` are wanted.
    pub plain: bool,
    /// No key is wanted.
    pub nothing: bool,
}

/// Segments of one field between two ends.
#[derive(Clone, Debug)]
struct KeyRange {
    low: Vec<u8>,
    low_inclusive: bool,
    high: Vec<u8>,
    high_inclusive: bool,
}

impl KeyRange {
    fn is_point(&self) -> bool {
        self.low == self.high
    }
}

/// What to do with a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyCheck {
    Inside,
    /// Go to the target that was written.
    Seek,
    /// Nothing further can be inside.
    Done,
}

/// Which fields of these run downwards in the key bytes.
pub(super) fn directions(fields: &[BoundField]) -> Directions {
    let bits = fields.iter().enumerate();
    Directions(bits.fold(0, |bits, (i, f)| bits | u32::from(f.kind == FieldKind::Descending) << i))
}

/// One value as a field's segment.
pub(super) fn segment(v: &Operand, descending: bool, order: Order<'_>) -> Vec<u8> {
    let mut b = KeyBuilder::new(Directions(u32::from(descending)));
    b.append_elem(&v.elem(), order);
    b.finish()
}

impl KeyBounds {
    pub fn new(fields: &[BoundField], order: Order<'_>) -> KeyBounds {
        let ranges: Vec<Vec<KeyRange>> = fields.iter().map(|f| field_ranges(f, order)).collect();
        let nothing = ranges.iter().any(Vec::is_empty);
        let (mut start, mut end) = (Vec::new(), Vec::new());
        let mut plain = true;
        if !nothing {
            let points = ranges.iter().take_while(|r| r.len() == 1 && r[0].is_point()).count();
            for r in &ranges[..points] {
                start.extend_from_slice(&r[0].low);
            }
            end.clone_from(&start);
            match ranges.get(points) {
                Some(r) if !fields[points].intervals.is_everything() => {
                    put_low(&mut start, &r[0]);
                    put_high(&mut end, &r[r.len() - 1]);
                    plain = r.len() == 1;
                }
                _ if end.is_empty() => {}
                _ => end.push(AFTER),
            }
            plain &= fields.iter().skip(points + 1).all(|f| f.intervals.is_everything());
        }
        KeyBounds { fields: ranges, directions: directions(fields), start, end, plain, nothing }
    }

    /// An explicit range of keys (`min` and `max` of a query).
    pub fn range(start: Vec<u8>, end: Vec<u8>, directions: Directions) -> KeyBounds {
        KeyBounds { fields: Vec::new(), directions, start, end, plain: true, nothing: false }
    }

    pub fn directions(&self) -> Directions {
        self.directions
    }

    /// Checks a key of a scan that is not plain; on [`KeyCheck::Seek`] `target` says where to go on: forward
    /// the first key `>=` it, backward the first key `<` it.
    pub fn check(&self, key: &[u8], dir: Direction, target: &mut Vec<u8>) -> KeyCheck {
        if self.plain {
            return KeyCheck::Inside;
        }
        let mut reader = KeyReader::new(key, self.directions, &[]);
        let mut at = 0;
        for (i, ranges) in self.fields.iter().enumerate() {
            if !matches!(reader.skip(), Ok(true)) {
                // A key shorter than its pattern: not ours to judge.
                return KeyCheck::Inside;
            }
            let end = reader.position();
            let segment = &key[at..end];
            match locate(ranges, segment) {
                Place::Inside => {}
                Place::Before(j) => {
                    target.clear();
                    target.extend_from_slice(&key[..at]);
                    if dir.is_forward() {
                        self.seek_forward(i, j, target);
                    } else if j == 0 {
                        // Below everything: on to smaller values of the fields before.
                        if i == 0 {
                            return KeyCheck::Done;
                        }
                    } else {
                        put_high(target, &ranges[j - 1]);
                    }
                    return KeyCheck::Seek;
                }
                Place::AfterAll => {
                    target.clear();
                    target.extend_from_slice(&key[..at]);
                    if !dir.is_forward() {
                        put_high(target, &ranges[ranges.len() - 1]);
                    } else {
                        if i == 0 {
                            return KeyCheck::Done;
                        }
                        target.push(AFTER);
                    }
                    return KeyCheck::Seek;
                }
            }
            at = end;
        }
        KeyCheck::Inside
    }

    /// Appends the least continuation that begins with range `j` of field `i`.
    fn seek_forward(&self, i: usize, j: usize, target: &mut Vec<u8>) {
        let first = &self.fields[i][j];
        put_low(target, first);
        if first.low_inclusive {
            for ranges in &self.fields[i + 1..] {
                put_low(target, &ranges[0]);
                if !ranges[0].low_inclusive {
                    break;
                }
            }
        }
    }
}

fn put_low(out: &mut Vec<u8>, r: &KeyRange) {
    out.extend_from_slice(&r.low);
    if !r.low_inclusive {
        out.push(AFTER);
    }
}

fn put_high(out: &mut Vec<u8>, r: &KeyRange) {
    out.extend_from_slice(&r.high);
    if r.high_inclusive {
        out.push(AFTER);
    }
}

fn field_ranges(f: &BoundField, order: Order<'_>) -> Vec<KeyRange> {
    let descending = f.kind == FieldKind::Descending;
    let list = if descending { f.intervals.reversed() } else { f.intervals.clone() };
    list.0
        .iter()
        .take_while(|_| !patience::is_over(2))
        .map(|i| KeyRange {
            low: segment(&i.low, descending, order),
            low_inclusive: i.low_inclusive,
            high: segment(&i.high, descending, order),
            high_inclusive: i.high_inclusive,
        })
        .collect()
}

enum Place {
    Inside,
    /// Before range `j` and after range `j - 1`.
    Before(usize),
    AfterAll,
}

fn locate(ranges: &[KeyRange], segment: &[u8]) -> Place {
    // The first range that does not end before the segment.
    let j = ranges.partition_point(|r| match r.high.as_slice().cmp(segment) {
        Ordering::Less => true,
        Ordering::Equal => !r.high_inclusive,
        Ordering::Greater => false,
    });
    match ranges.get(j) {
        None => Place::AfterAll,
        Some(r) => match r.low.as_slice().cmp(segment) {
            Ordering::Greater => Place::Before(j),
            Ordering::Equal if !r.low_inclusive => Place::Before(j),
            _ => Place::Inside,
        },
    }
}
