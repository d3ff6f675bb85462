//! What an operator update did, and its form in the log (R-OPLOG-6, R-OPLOG-7).
//!
//! MongoDB logs operators as their results at the paths they name, rather than as the smallest difference:
//! `{$set: {a: {..}}}` logs the whole of `a`. Change streams show these paths, so the same is done here.

use super::modifier::Span;
use pando_bson::{DocBuf, DocBuilder, ElementType};
use std::sync::Arc;

/// What became of one element. Spans point into the new document's bytes.
#[derive(Debug)]
pub(super) enum Log {
    Same,
    Removed,
    Set(Span),
    New(Span),
    /// A sub-document of which some fields changed.
    Object(Vec<(Arc<str>, Log)>),
    /// An array of which some elements changed.
    Array(Vec<(usize, Log)>),
}

impl Log {
    pub(super) fn object(fields: Vec<(Arc<str>, Log)>) -> Log {
        if is_same(&fields) { Log::Same } else { Log::Object(fields) }
    }
    pub(super) fn array(elements: Vec<(usize, Log)>) -> Log {
        if elements.iter().all(|(_, log)| matches!(log, Log::Same)) {
            Log::Same
        } else {
            Log::Array(elements)
        }
    }
}

/// Nothing changed.
pub(super) fn is_same(fields: &[(Arc<str>, Log)]) -> bool {
    fields.iter().all(|(_, log)| matches!(log, Log::Same))
}

/// The diff of the whole document; `bytes` are the new document's.
pub(super) fn diff(fields: &[(Arc<str>, Log)], bytes: &[u8]) -> DocBuf {
    let mut b = DocBuilder::with_capacity(64);
    object_diff(&mut b, fields, bytes);
    b.finish()
}

fn put(b: &mut DocBuilder, name: &str, span: &Span, bytes: &[u8]) {
    b.raw(span.ty, name, &bytes[span.start..span.end]);
}

fn object_diff(b: &mut DocBuilder, fields: &[(Arc<str>, Log)], bytes: &[u8]) {
    if fields.iter().any(|(_, log)| matches!(log, Log::Removed)) {
        b.doc("d", |d| {
            for (name, log) in fields {
                if matches!(log, Log::Removed) {
                    d.raw(ElementType::Boolean, name, &[0]);
                }
            }
        });
    }
    if fields.iter().any(|(_, log)| matches!(log, Log::Set(_))) {
        b.doc("u", |u| {
            for (name, log) in fields {
                if let Log::Set(span) = log {
                    put(u, name, span, bytes);
                }
            }
        });
    }
    if fields.iter().any(|(_, log)| matches!(log, Log::New(_))) {
        b.doc("i", |i| {
            for (name, log) in fields {
                if let Log::New(span) = log {
                    put(i, name, span, bytes);
                }
            }
        });
    }
    for (name, log) in fields {
        sub_diff(b, || format!("s{name}"), log, bytes);
    }
}

fn sub_diff(b: &mut DocBuilder, name: impl Fn() -> String, log: &Log, bytes: &[u8]) {
    match log {
        Log::Object(fields) => {
            b.doc(&name(), |sub| object_diff(sub, fields, bytes));
        }
        Log::Array(elements) => {
            b.doc(&name(), |sub| array_diff(sub, elements, bytes));
        }
        Log::Same | Log::Removed | Log::Set(_) | Log::New(_) => {}
    }
}

fn array_diff(b: &mut DocBuilder, elements: &[(usize, Log)], bytes: &[u8]) {
    b.bool("a", true);
    for (index, log) in elements {
        match log {
            Log::Set(span) | Log::New(span) => put(b, &format!("u{index}"), span, bytes),
            log => sub_diff(b, || format!("s{index}"), log, bytes),
        }
    }
}
