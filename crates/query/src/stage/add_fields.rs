//! `$addFields` and its other name `$set`.

use super::shape::Shape;
use super::transform::{Transform, invalid};
use crate::expr::ParseCtx;
use pando_base::{Error, Result};
use pando_bson::{Elem, Value};

fn stage_name(e: Elem<'_>) -> &'static str {
    if e.name() == "$set" { "$set" } else { "$addFields" }
}

pub(super) fn transform(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<Transform> {
    let name = stage_name(e);
    let Value::Document(spec) = e.value() else {
        return Err(Error::location(
            40272,
            format!("{name} specification stage must be an object, got {}", e.ty.name()),
        ));
    };
    Ok(Transform::Shape(Shape::add_fields(spec, p).map_err(|e| invalid(name, e))?))
}
