//! `$eq $gt $gte $lt $lte`: a value against a constant, within one type class.

use super::number::decimal_is_nan;
use super::operand::Operand;
use crate::collation::Collation;
use pando_bson::compare::{canonical_type, cmp_elems};
use pando_bson::{Elem, ElementType, Value};
use std::cmp::Ordering;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CmpOp {
    Eq,
    Lt,
    Lte,
    Gt,
    Gte,
}

impl CmpOp {
    pub fn name(self) -> &'static str {
        match self {
            CmpOp::Eq => "$eq",
            CmpOp::Lt => "$lt",
            CmpOp::Lte => "$lte",
            CmpOp::Gt => "$gt",
            CmpOp::Gte => "$gte",
        }
    }
    #[inline]
    pub fn holds(self, o: Ordering) -> bool {
        match self {
            CmpOp::Eq => o.is_eq(),
            CmpOp::Lt => o.is_lt(),
            CmpOp::Lte => o.is_le(),
            CmpOp::Gt => o.is_gt(),
            CmpOp::Gte => o.is_ge(),
        }
    }
    /// Holds for equal values.
    pub fn includes_equal(self) -> bool {
        matches!(self, CmpOp::Eq | CmpOp::Lte | CmpOp::Gte)
    }
}

/// A comparison with a constant.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub op: CmpOp,
    pub rhs: Operand,
    pub collation: Option<Arc<Collation>>,
    fast: Fast,
}

/// What makes most comparisons cheap.
#[derive(Clone, Copy, Debug)]
enum Fast {
    Int(i64),
    /// Not NaN.
    Double(f64),
    /// Strings in byte order.
    Text,
    /// Equal exactly when the encoded bytes are.
    SameBytes,
    Date(i64),
    General,
}

impl Comparison {
    pub fn new(op: CmpOp, rhs: Operand, collation: Option<Arc<Collation>>) -> Comparison {
        let fast = match rhs.value() {
            Value::Int32(n) => Fast::Int(n.into()),
            Value::Int64(n) => Fast::Int(n),
            Value::Double(d) if !d.is_nan() => Fast::Double(d),
            Value::String(_) if collation.is_none() => Fast::Text,
            Value::ObjectId(_) | Value::Boolean(_) if op == CmpOp::Eq => Fast::SameBytes,
            Value::DateTime(ms) => Fast::Date(ms),
            _ => Fast::General,
        };
        Comparison { op, rhs, collation, fast }
    }

    /// `None` is a missing field.
    #[inline]
    pub(crate) fn test(&self, e: Option<&Elem<'_>>) -> bool {
        let Some(e) = e else { return self.test_missing() };
        match (self.fast, e.ty) {
            (Fast::Int(n), ElementType::Int32) => match e.data().first_chunk() {
                Some(bytes) => self.op.holds(i64::from(i32::from_le_bytes(*bytes)).cmp(&n)),
                None => false,
            },
            (Fast::Int(n), ElementType::Int64) | (Fast::Date(n), ElementType::DateTime) => {
                match e.data().first_chunk() {
                    Some(bytes) => self.op.holds(i64::from_le_bytes(*bytes).cmp(&n)),
                    None => false,
                }
            }
            (Fast::Double(d), ElementType::Double) => match e.data().first_chunk() {
                // NaN is in no range and equal to no other number.
                Some(bytes) => f64::from_le_bytes(*bytes).partial_cmp(&d).is_some_and(|o| self.op.holds(o)),
                None => false,
            },
            (Fast::Text, ElementType::String) => {
                let (a, b) = (e.data(), self.rhs.data());
                match self.op {
                    CmpOp::Eq => a == b,
                    _ => self.op.holds(a.get(4..).cmp(&b.get(4..))),
                }
            }
            (Fast::SameBytes, ty) if ty == self.rhs.ty() => e.data() == self.rhs.data(),
            _ => self.test_slow(e),
        }
    }

    /// Whether every value that passes this one passes `p`.
    pub(crate) fn implies(&self, p: &Comparison) -> bool {
        if canonical_type(self.rhs.ty()) != canonical_type(p.rhs.ty()) {
            return false;
        }
        if !Collation::same(&self.collation, &p.collation) && self.rhs.ty() == ElementType::String {
            return false;
        }
        let order = cmp_elems(&self.rhs.elem(), &p.rhs.elem(), Collation::order(&self.collation));
        if self.rhs.is_nan() || p.rhs.is_nan() {
            return order == Ordering::Equal && self.op.includes_equal() && p.op.includes_equal();
        }
        match p.op {
            CmpOp::Eq => self.op == CmpOp::Eq && order.is_eq(),
            CmpOp::Lt => match self.op {
                CmpOp::Eq | CmpOp::Lte => order.is_lt(),
                CmpOp::Lt => order.is_le(),
                _ => false,
            },
            CmpOp::Lte => matches!(self.op, CmpOp::Eq | CmpOp::Lt | CmpOp::Lte) && order.is_le(),
            CmpOp::Gt => match self.op {
                CmpOp::Eq | CmpOp::Gte => order.is_gt(),
                CmpOp::Gt => order.is_ge(),
                _ => false,
            },
            CmpOp::Gte => matches!(self.op, CmpOp::Eq | CmpOp::Gt | CmpOp::Gte) && order.is_ge(),
        }
    }

    fn test_missing(&self) -> bool {
        match self.rhs.ty() {
            ElementType::Null => self.op.includes_equal(),
            ElementType::MinKey | ElementType::MaxKey => {
                // Missing sorts as null here.
                let between =
                    if self.rhs.ty() == ElementType::MinKey { Ordering::Greater } else { Ordering::Less };
                self.op.holds(between)
            }
            _ => false,
        }
    }

    fn test_slow(&self, e: &Elem<'_>) -> bool {
        let rhs = self.rhs.elem();
        if canonical_type(e.ty) != canonical_type(rhs.ty) {
            return match (e.ty, rhs.ty) {
                (ElementType::Undefined, ElementType::Null) | (ElementType::Null, ElementType::Undefined) => {
                    self.op.includes_equal()
                }
                // Only the extreme keys compare across types.
                (_, ElementType::MinKey | ElementType::MaxKey) => {
                    self.op.holds(canonical_type(e.ty).cmp(&canonical_type(rhs.ty)))
                }
                _ => false,
            };
        }
        let order = cmp_elems(e, &rhs, Collation::order(&self.collation));
        if self.rhs.is_number() && (self.rhs.is_nan() || is_nan(e)) {
            // NaN equals itself and is in no range.
            return self.op.includes_equal() && order.is_eq();
        }
        self.op.holds(order)
    }
}

fn is_nan(e: &Elem<'_>) -> bool {
    match e.value() {
        Value::Double(d) => d.is_nan(),
        Value::Decimal128(d) => decimal_is_nan(d),
        _ => false,
    }
}
