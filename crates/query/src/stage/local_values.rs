//! The values that a document brings to an equality join, and the filter they make on the other side.

use crate::expr::FieldPath;
use pando_bson::{DocBuf, DocBuilder, ElementType, RawDoc, Value};

/// Calls `each` with every value at a path: arrays on the way and at the end give their elements. A missing field
/// (and an empty array) give null.
pub(super) fn local_values<'d>(doc: &'d RawDoc, path: &FieldPath, each: &mut dyn FnMut(Value<'d>)) {
    let mut any = false;
    visit_path(doc, path, &mut |v| {
        any = true;
        each(v);
    });
    if !any {
        each(Value::Null);
    }
}

/// The same without the null.
pub(super) fn visit_path<'d>(doc: &'d RawDoc, path: &FieldPath, each: &mut dyn FnMut(Value<'d>)) {
    visit(Value::Document(doc), path.parts(), each);
}

fn visit<'d>(v: Value<'d>, parts: &[Box<str>], each: &mut dyn FnMut(Value<'d>)) {
    let Some((first, rest)) = parts.split_first() else {
        match v {
            Value::Array(a) => a.iter().for_each(|e| each(e.value())),
            v => each(v),
        }
        return;
    };
    match v {
        Value::Document(d) => {
            if let Some(v) = d.get(first) {
                visit(v, rest, each);
            }
        }
        Value::Array(a) => {
            // A number is a position, too.
            if first.bytes().all(|b| b.is_ascii_digit())
                && let Some(v) = a.get(first)
            {
                visit(v, rest, each);
            }
            for e in a {
                if let Value::Document(d) = e.value()
                    && let Some(v) = d.get(first)
                {
                    visit(v, rest, each);
                }
            }
        }
        _ => {}
    }
}

/// `{foreign: {$eq: value}}`, or one branch per value; null is what a missing field equals.
pub(super) fn filter(doc: &RawDoc, local: &FieldPath, foreign: &str) -> DocBuf {
    let mut values: Vec<Value<'_>> = Vec::new();
    local_values(doc, local, &mut |v| values.push(v));
    let mut b = DocBuilder::new();
    if let [one] = *values {
        b.doc(foreign, |d| {
            d.value("$eq", one);
        });
        return b.finish();
    }
    if values.iter().any(|v| v.element_type() == ElementType::Regex) {
        b.array("$or", |a| {
            for v in &values {
                a.doc(|d| {
                    d.doc(foreign, |d| {
                        d.value("$eq", *v);
                    });
                });
            }
        });
        return b.finish();
    }
    b.doc(foreign, |d| {
        d.array("$in", |a| {
            for v in &values {
                a.value(*v);
            }
        });
    });
    b.finish()
}
