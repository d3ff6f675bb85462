//! `$count`: a `$group` of everything and a `$project` that drops its `_id`.

use super::{Stage, group, transform};
use crate::expr::ParseCtx;
use pando_base::{Error, Result};
use pando_bson::{DocBuilder, Elem, Value};

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    let Value::String(field) = e.value() else {
        return Err(Error::location(40156, "the count field must be a non-empty string"));
    };
    if field.is_empty() {
        return Err(Error::location(40157, "the count field must be a non-empty string"));
    }
    if field.starts_with('$') {
        return Err(Error::location(40158, "the count field cannot be a $-prefixed path"));
    }
    if field.contains('\0') {
        return Err(Error::location(40159, "the count field cannot contain a null byte"));
    }
    if field.contains('.') {
        return Err(Error::location(40160, "the count field cannot contain '.'"));
    }
    let mut spec = DocBuilder::new();
    spec.doc("$group", |g| {
        g.null("_id");
        g.doc(field, |sum| {
            sum.i32("$sum", 1);
        });
    });
    spec.doc("$project", |pr| {
        pr.bool("_id", false);
    });
    let spec = spec.finish();
    for e in &*spec {
        match e.name() {
            "$group" => group::parse(e, p, out)?,
            _ => transform::parse_project(e, p, out)?,
        }
    }
    Ok(())
}
