//! `$sortByCount`: a `$group` that counts, and a `$sort`.

use crate::expr::{Expr, ParseCtx};
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, Value};

pub(super) fn rewritten(e: Elem<'_>, _: &ParseCtx<'_>) -> Result<DocBuf> {
    let not_an_expression = |code| {
        Error::location(
            code,
            "the sortByCount field must be defined as a $-prefixed path or an expression inside an object",
        )
    };
    match e.value() {
        Value::Document(d) => {
            let first = d.first().map(|f| f.name()).unwrap_or_default();
            if !Expr::is_operator(first) && !first.starts_with('$') {
                return Err(not_an_expression(40147));
            }
        }
        Value::String(s) if s.starts_with('$') => {}
        Value::String(_) => return Err(not_an_expression(40148)),
        _ => {
            return Err(Error::location(
                40149,
                "the sortByCount field must be specified as a string or as an object",
            ));
        }
    }
    let mut spec = DocBuilder::new();
    spec.doc("$group", |g| {
        g.value("_id", e.value());
        g.doc("count", |sum| {
            sum.i32("$sum", 1);
        });
    });
    spec.doc("$sort", |s| {
        s.i32("count", -1);
    });
    Ok(spec.finish())
}
