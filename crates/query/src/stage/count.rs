//! `$count`: a `$group` of everything and a `$project` that drops its `_id`.

use crate::expr::ParseCtx;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, Value};

pub(super) fn rewritten(e: Elem<'_>, _: &ParseCtx<'_>) -> Result<DocBuf> {
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
        pr.bool(field, true);
        pr.bool("_id", false);
    });
    Ok(spec.finish())
}
