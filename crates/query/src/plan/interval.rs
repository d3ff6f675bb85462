//! Intervals of values and ordered lists of them: what an index scan visits in one field.

use crate::matcher::Operand;
use pando_base::{Timestamp, patience};
use pando_bson::compare::cmp_elems;
use pando_bson::{ElementType, ObjectId, RawDoc, StringOrder, Value};
use std::cmp::Ordering;
use std::fmt;

/// The order that bounds of one index are compared in (its collation's, or none).
pub type Order<'a> = Option<&'a dyn StringOrder>;

/// All values between two ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    pub low: Operand,
    pub low_inclusive: bool,
    pub high: Operand,
    pub high_inclusive: bool,
}

impl Interval {
    pub fn new(low: Operand, low_inclusive: bool, high: Operand, high_inclusive: bool) -> Interval {
        Interval { low, low_inclusive, high, high_inclusive }
    }
    pub fn point(v: Operand) -> Interval {
        Interval::new(v.clone(), true, v, true)
    }
    pub fn everything() -> Interval {
        Interval::new(Value::MinKey.into(), true, Value::MaxKey.into(), true)
    }
    /// `[lowest, highest]` of a value's type class, and whether the high end belongs to it.
    pub(crate) fn of_class(ty: ElementType) -> Interval {
        let op = |v: Value<'_>| Operand::from(v);
        let empty = RawDoc::empty();
        let range =
            |low: Value<'_>, high: Value<'_>, inclusive| Interval::new(op(low), true, op(high), inclusive);
        use ElementType as T;
        match ty {
            T::Double | T::Int32 | T::Int64 | T::Decimal128 => {
                range(Value::Double(f64::NAN), Value::Double(f64::INFINITY), true)
            }
            T::String | T::Symbol => range(Value::String(""), Value::Document(empty), false),
            T::Document => range(Value::Document(empty), Value::Array(empty), false),
            T::Array => range(Value::Array(empty), Value::Binary { subtype: 0, bytes: &[] }, false),
            T::Binary => {
                range(Value::Binary { subtype: 0, bytes: &[] }, Value::ObjectId(ObjectId([0; 12])), false)
            }
            T::ObjectId => {
                range(Value::ObjectId(ObjectId([0; 12])), Value::ObjectId(ObjectId([255; 12])), true)
            }
            T::Boolean => range(Value::Boolean(false), Value::Boolean(true), true),
            T::DateTime => range(Value::DateTime(i64::MIN), Value::DateTime(i64::MAX), true),
            T::Timestamp => range(Value::Timestamp(Timestamp::ZERO), Value::Timestamp(Timestamp::MAX), true),
            T::Regex => range(
                Value::Regex { pattern: "", options: "" },
                Value::DbPointer { ns: "", id: ObjectId([0; 12]) },
                false,
            ),
            T::DbPointer => {
                range(Value::DbPointer { ns: "", id: ObjectId([0; 12]) }, Value::JavaScript(""), false)
            }
            T::JavaScript => {
                range(Value::JavaScript(""), Value::JavaScriptWithScope { code: "", scope: empty }, false)
            }
            T::JavaScriptWithScope => {
                range(Value::JavaScriptWithScope { code: "", scope: empty }, Value::MaxKey, false)
            }
            T::Null => range(Value::Null, Value::Null, true),
            T::Undefined => range(Value::Undefined, Value::Undefined, true),
            T::MinKey => range(Value::MinKey, Value::MinKey, true),
            T::MaxKey => range(Value::MaxKey, Value::MaxKey, true),
        }
    }
    /// Exactly one value.
    pub fn is_point(&self) -> bool {
        self.low_inclusive && self.high_inclusive && compare(&self.low, &self.high, None).is_eq()
    }
    pub fn is_everything(&self) -> bool {
        self.low.ty() == ElementType::MinKey
            && self.high.ty() == ElementType::MaxKey
            && self.low_inclusive
            && self.high_inclusive
    }
    fn is_empty(&self, order: Order<'_>) -> bool {
        match compare(&self.low, &self.high, order) {
            Ordering::Less => false,
            Ordering::Equal => !(self.low_inclusive && self.high_inclusive),
            Ordering::Greater => true,
        }
    }
    /// The same values, read from the other end.
    fn reversed(&self) -> Interval {
        Interval::new(self.high.clone(), self.high_inclusive, self.low.clone(), self.low_inclusive)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = if self.low_inclusive { '[' } else { '(' };
        let close = if self.high_inclusive { ']' } else { ')' };
        write!(f, "{open}{}, {}{close}", self.low.value(), self.high.value())
    }
}

pub(crate) fn compare(a: &Operand, b: &Operand, order: Order<'_>) -> Ordering {
    cmp_elems(&a.elem(), &b.elem(), order)
}

/// Compares two low ends: which interval starts first.
fn by_low(a: &Interval, b: &Interval, order: Order<'_>) -> Ordering {
    compare(&a.low, &b.low, order).then_with(|| b.low_inclusive.cmp(&a.low_inclusive))
}

/// Compares two high ends: which interval ends first.
fn by_high(a: &Interval, b: &Interval, order: Order<'_>) -> Ordering {
    compare(&a.high, &b.high, order).then_with(|| a.high_inclusive.cmp(&b.high_inclusive))
}

/// Disjoint intervals in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntervalList(pub Vec<Interval>);

impl IntervalList {
    pub fn everything() -> IntervalList {
        IntervalList(vec![Interval::everything()])
    }
    pub fn one(i: Interval) -> IntervalList {
        IntervalList(vec![i])
    }
    pub fn is_everything(&self) -> bool {
        matches!(self.0.as_slice(), [one] if one.is_everything())
    }
    pub fn is_single_point(&self) -> bool {
        matches!(self.0.as_slice(), [one] if one.is_point())
    }
    pub fn all_points(&self) -> bool {
        self.0.iter().all(Interval::is_point)
    }

    /// Sorts, drops empty intervals and merges those that overlap or touch.
    pub fn normalize(mut self, order: Order<'_>) -> IntervalList {
        self.0.retain(|i| !i.is_empty(order));
        let by_ends = |a: &Interval, b: &Interval| by_low(a, b, order).then_with(|| by_high(a, b, order));
        if patience::sort_by(&mut self.0, patience::COMPARE_STEPS, by_ends).is_err() {
            return self;
        }
        let mut out: Vec<Interval> = Vec::with_capacity(self.0.len());
        for i in self.0 {
            if patience::is_over(1) {
                break;
            }
            match out.last_mut() {
                Some(last) if touches(last, &i, order) => {
                    if by_high(last, &i, order).is_lt() {
                        last.high = i.high;
                        last.high_inclusive = i.high_inclusive;
                    }
                }
                _ => out.push(i),
            }
        }
        IntervalList(out)
    }

    pub fn union(mut self, other: IntervalList, order: Order<'_>) -> IntervalList {
        self.0.extend(other.0);
        self.normalize(order)
    }

    pub fn intersect(&self, other: &IntervalList, order: Order<'_>) -> IntervalList {
        let mut out = Vec::new();
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (self.0.get(i), other.0.get(j))
            && !patience::is_over(1)
        {
            let low = if by_low(a, b, order).is_ge() { a } else { b };
            let high = if by_high(a, b, order).is_le() { a } else { b };
            let both =
                Interval::new(low.low.clone(), low.low_inclusive, high.high.clone(), high.high_inclusive);
            if !both.is_empty(order) {
                out.push(both);
            }
            if by_high(a, b, order).is_le() { i += 1 } else { j += 1 }
        }
        IntervalList(out)
    }

    /// Everything else.
    pub fn complement(&self) -> IntervalList {
        let mut out = Vec::new();
        let (mut low, mut low_inclusive) = (Operand::from(Value::MinKey), true);
        for i in &self.0 {
            let gap = Interval::new(low, low_inclusive, i.low.clone(), !i.low_inclusive);
            if !gap.is_empty(None) {
                out.push(gap);
            }
            (low, low_inclusive) = (i.high.clone(), !i.high_inclusive);
        }
        let rest = Interval::new(low, low_inclusive, Value::MaxKey.into(), true);
        if !rest.is_empty(None) {
            out.push(rest);
        }
        IntervalList(out)
    }

    /// In the order a descending field is visited.
    pub fn reversed(&self) -> IntervalList {
        IntervalList(self.0.iter().rev().map(Interval::reversed).collect())
    }
}

/// Whether `b`, which does not start before `a`, overlaps or continues it.
fn touches(a: &Interval, b: &Interval, order: Order<'_>) -> bool {
    match compare(&a.high, &b.low, order) {
        Ordering::Greater => true,
        Ordering::Equal => a.high_inclusive || b.low_inclusive,
        Ordering::Less => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn i(low: i32, li: bool, high: i32, hi: bool) -> Interval {
        Interval::new(Value::Int32(low).into(), li, Value::Int32(high).into(), hi)
    }
    fn text(l: &IntervalList) -> String {
        l.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn union_merges_what_touches() {
        let l = IntervalList(vec![
            i(5, true, 9, true),
            i(1, true, 3, false),
            i(3, true, 4, true),
            i(7, true, 12, false),
        ]);
        assert_eq!(text(&l.normalize(None)), "[1, 4] [5, 12)");
        let l = IntervalList(vec![i(1, true, 3, false), i(3, false, 4, true), i(6, false, 6, true)]);
        assert_eq!(text(&l.normalize(None)), "[1, 3) (3, 4]");
    }

    #[test]
    fn intersection_and_complement_agree() {
        let a = IntervalList(vec![i(1, true, 5, true), i(8, false, 20, true)]);
        let b = IntervalList(vec![i(4, false, 10, true), i(15, true, 15, true)]);
        assert_eq!(text(&a.intersect(&b, None)), "(4, 5] (8, 10] [15, 15]");
        assert_eq!(text(&a.complement()), "[MinKey, 1) (5, 8] (20, MaxKey]");
        assert!(a.intersect(&a.complement(), None).0.is_empty());
        assert!(a.clone().union(a.complement(), None).is_everything());
        assert_eq!(text(&a.reversed()), "[20, 8) [5, 1]");
    }
}
