//! `$cmp`, `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`: MongoDB's order of all values, missing before everything
//! but MinKey.

use crate::expr::{Call, Val};
use pando_base::Result;
use pando_bson::{ElementType, compare::canonical_type};
use std::cmp::Ordering;

/// Order of two values; missing stands where undefined does.
pub(crate) fn order(a: &Val<'_>, b: &Val<'_>, ctx: &crate::ctx::QueryCtx) -> Ordering {
    match (a.value(), b.value()) {
        (Some(x), Some(y)) => ctx.compare(x, y),
        (None, None) => Ordering::Equal,
        (None, Some(y)) => missing_against(y.element_type()),
        (Some(x), None) => missing_against(x.element_type()).reverse(),
    }
}

fn missing_against(other: ElementType) -> Ordering {
    // Missing and undefined are one class.
    canonical_type(ElementType::Undefined).cmp(&canonical_type(other))
}

pub(in crate::expr) fn cmp<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    Ok(Val::int(order(&args[0], &args[1], call.ctx) as i32))
}

macro_rules! comparisons {
    ($($name:ident => $holds:ident;)*) => {
        $(pub(in crate::expr) fn $name<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
            Ok(Val::bool(order(&args[0], &args[1], call.ctx).$holds()))
        })*
    };
}
comparisons! {
    eq => is_eq;
    ne => is_ne;
    gt => is_gt;
    gte => is_ge;
    lt => is_lt;
    lte => is_le;
}
