//! `$replaceRoot` and `$replaceWith`.

use super::transform::Transform;
use crate::expr::ParseCtx;
use pando_base::{Error, Result};
use pando_bson::{Elem, Value};

const ROOT_LABEL: &str = "'newRoot' expression ";
const WITH_LABEL: &str = "'replacement document' ";

pub(super) fn root(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<Transform> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::location(
            40229,
            format!("expected an object as specification for $replaceRoot stage, got {}", e.ty.name()),
        ));
    };
    let mut new_root = None;
    for f in spec {
        if f.name() != "newRoot" {
            return Err(Error::location(
                40415,
                format!("BSON field '$replaceRoot.{}' is an unknown field.", f.name()),
            ));
        }
        new_root = Some(f.value());
    }
    let Some(expr) = new_root.map(|v| p.parse(v)).transpose()? else {
        return Err(Error::location(
            40414,
            "BSON field '$replaceRoot.newRoot' is missing but a required field",
        ));
    };
    Ok(Transform::NewRoot(expr, ROOT_LABEL))
}

pub(super) fn with(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<Transform> {
    Ok(Transform::NewRoot(p.parse(e.value())?, WITH_LABEL))
}
