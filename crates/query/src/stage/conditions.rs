//! Filters taken apart into conditions and put together again.

use crate::ctx::QueryCtx;
use crate::matcher::Matcher;
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc, Value};

/// The conditions that all have to hold, each as a filter of its own.
pub(super) fn conditions(filter: &RawDoc, out: &mut Vec<DocBuf>) {
    for e in filter {
        match (e.name(), e.value()) {
            ("$and", Value::Array(list)) => {
                for c in list {
                    if let Value::Document(d) = c.value() {
                        conditions(d, out);
                    }
                }
            }
            _ => {
                let mut b = DocBuilder::new();
                b.elem(e);
                out.push(b.finish());
            }
        }
    }
}

pub(super) fn joined(parts: &[DocBuf]) -> DocBuf {
    let mut b = DocBuilder::new();
    match parts {
        [one] => {
            b.elems_of(one);
        }
        many => {
            b.array("$and", |a| {
                for p in many {
                    a.raw_doc(p);
                }
            });
        }
    }
    b.finish()
}

/// The condition with its paths as `to` names them; `None` when one of them has no other name.
pub(super) fn renamed(condition: &RawDoc, to: &dyn Fn(&str) -> Option<String>) -> Option<DocBuf> {
    let mut b = DocBuilder::new();
    for e in condition {
        match (e.name(), e.value()) {
            ("$and" | "$or" | "$nor", Value::Array(list)) => {
                let mut all = ArrayBuilder::new();
                for c in list {
                    all.raw_doc(&renamed(c.value().as_doc()?, to)?);
                }
                b.raw_array(e.name_bytes(), &all.finish());
            }
            (name, _) if name.starts_with('$') => return None,
            (name, v) => {
                b.value(&to(name)?, v);
            }
        }
    }
    Some(b.finish())
}

/// The `$match` of a filter, as it is written.
pub(super) fn text(filter: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    b.raw_doc("$match", filter);
    b.finish()
}

/// The `$match` of a filter, as explain spells it.
pub(super) fn spelled(filter: &RawDoc, ctx: &QueryCtx) -> DocBuf {
    Matcher::parse(filter, ctx).map_or_else(|_| text(filter), |m| text(&m.root().to_doc()))
}
