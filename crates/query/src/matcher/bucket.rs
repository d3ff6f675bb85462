//! A condition on measurements, asked of their bucket: whether its extremes leave room for one that meets it.
//!
//! `{$_internalBucketHolds: {field: "x", $gt: 5}}` becomes the test of the bucket's control document and, beside it,
//! what that says of `control.min.x` and `control.max.x`, for indexes on these.

use super::compare::{CmpOp, Comparison};
use super::operand::Operand;
use crate::ctx::QueryCtx;
use crate::timeseries::Extent;
use pando_base::{Error, Result};
use pando_bson::compare::{canonical_type, cmp_elems};
use pando_bson::{DocBuf, DocBuilder, Elem, ElementType as T, RawDoc, Value};

pub const BUCKET_HOLDS: &str = "$_internalBucketHolds";

/// Whether a bucket may hold a measurement with such a value.
#[derive(Clone, Debug)]
pub struct BucketTest {
    pub(crate) path: String,
    parts: Vec<String>,
    pub(crate) op: CmpOp,
    /// One of these; more than one only with `$eq`.
    pub(crate) values: Vec<Operand>,
    /// An expression compares across classes, a filter within one.
    pub(crate) across: bool,
    pub(crate) source: DocBuf,
}

/// Whether buckets can be asked about comparisons with this constant.
pub(crate) fn is_askable(v: Value<'_>, collated: bool) -> bool {
    match v.element_type() {
        T::String => !collated,
        T::Double | T::Decimal128 => !Operand::from(v).is_nan(),
        T::Int32 | T::Int64 | T::Binary | T::ObjectId | T::Boolean | T::DateTime | T::Timestamp => true,
        _ => false,
    }
}

fn operator(name: &str) -> Option<CmpOp> {
    Some(match name {
        "$eq" | "$in" => CmpOp::Eq,
        "$lt" => CmpOp::Lt,
        "$lte" => CmpOp::Lte,
        "$gt" => CmpOp::Gt,
        "$gte" => CmpOp::Gte,
        _ => return None,
    })
}

pub(super) fn cmp(a: &Elem<'_>, b: &Elem<'_>) -> std::cmp::Ordering {
    cmp_elems(a, b, None)
}

impl BucketTest {
    pub(super) fn parse(e: Elem<'_>, ctx: &QueryCtx) -> Result<BucketTest> {
        let bad = || Error::failed_to_parse(format!("{BUCKET_HOLDS} takes a field and a comparison"));
        let spec = e.value().as_doc().ok_or_else(bad)?;
        let path = spec.get("field").and_then(|f| f.as_str()).ok_or_else(bad)?;
        let condition = spec.iter().find(|f| operator(f.name()).is_some()).ok_or_else(bad)?;
        let values: Vec<Operand> = match condition.value() {
            Value::Array(list) if condition.name() == "$in" => list.iter().map(Operand::from).collect(),
            _ => vec![Operand::from(condition)],
        };
        if values.is_empty() || !values.iter().all(|v| is_askable(v.value(), ctx.collation.is_some())) {
            return Err(bad());
        }
        let mut source = DocBuilder::new();
        source.elem(e);
        Ok(BucketTest {
            path: path.to_owned(),
            parts: path.split('.').map(str::to_owned).collect(),
            op: operator(condition.name()).ok_or_else(bad)?,
            values,
            across: spec.get("across").is_some_and(|v| v.is_truthy()),
            source: source.finish(),
        })
    }

    pub(super) fn test(&self, control: Option<&Elem<'_>>) -> bool {
        let Some(control) = control.and_then(|c| c.value().as_doc()) else { return true };
        let end = |name: &str| control.get(name).and_then(|d| d.as_doc());
        let (Some(min), Some(max)) = (end("min"), end("max")) else { return true };
        match Extent::of(min, max, &self.parts) {
            Extent::Absent => false,
            Extent::Unknown => true,
            Extent::Between(min, max) => self.values.iter().any(|v| self.leaves_room(&min, &max, v)),
        }
    }

    fn leaves_room(&self, min: &Elem<'_>, max: &Elem<'_>, v: &Operand) -> bool {
        let class = canonical_type(v.ty());
        if !self.across && !(canonical_type(min.ty)..=canonical_type(max.ty)).contains(&class) {
            return false;
        }
        let v = v.elem();
        match self.op {
            CmpOp::Eq => cmp(min, &v).is_le() && cmp(max, &v).is_ge(),
            CmpOp::Lt | CmpOp::Lte => self.op.holds(cmp(min, &v)),
            CmpOp::Gt | CmpOp::Gte => self.op.holds(cmp(max, &v)),
        }
    }

    /// Whether every bucket that passes this one passes `other`.
    pub(crate) fn implies(&self, other: &BucketTest) -> bool {
        let one = |test: &BucketTest| match &test.values[..] {
            [v] => Some(Comparison::new(test.op, v.clone(), None)),
            _ => None,
        };
        if self.path != other.path || self.across && !other.across {
            return false;
        }
        match (one(self), one(other)) {
            (Some(a), Some(b)) => a.implies(&b),
            _ => self.source == other.source,
        }
    }

    pub(super) fn spec(&self) -> &RawDoc {
        &self.source
    }
}
