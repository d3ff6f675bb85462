//! What an update operator does at one path, and what it is done with.

use super::encode::{begin, end, put_indexed_head};
use super::path::Path;
use crate::ctx::QueryCtx;
use pando_base::Result;
use pando_bson::{Elem, ElementType, RawDoc, Value};
use std::cmp::Ordering;
use std::fmt;

/// What a modifier may look at besides its target.
pub(super) struct Apply<'a> {
    /// The document before the update.
    pub(super) root: &'a RawDoc,
    pub(super) ctx: &'a QueryCtx,
    /// The document is about to be inserted by an upsert.
    pub(super) insert: bool,
    /// Array position that the query matched, as a field name.
    pub(super) position: Option<&'a str>,
}

impl Apply<'_> {
    /// Order of values under the operation's collation.
    pub(super) fn compare(&self, a: Value<'_>, b: Value<'_>) -> Ordering {
        self.ctx.compare(a, b)
    }
}

/// An encoded value in the output buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) ty: ElementType,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What a modifier did to an existing value.
pub(super) enum Effect {
    /// Nothing; whatever it wrote is dropped.
    Same,
    /// The value of this type is in the buffer.
    Set(ElementType),
    /// As `Set` of an array, which only grew: new elements from this position on.
    Appended { first: usize, elements: Vec<Span> },
    /// The field goes away (an array element becomes null).
    Remove,
}

/// How a modifier takes a path that cannot be walked to its end.
pub(super) enum Blocked {
    /// It wanted to create the rest: code 28.
    Refuse,
    /// It has nothing to do there.
    Ignore,
    /// Code 28 with another text.
    RefuseTraversal,
}

/// One operator at one path.
pub(super) trait Modifier: fmt::Debug + Send + Sync {
    /// Writes the new encoded value of an existing field to the end of `out`.
    fn update(&self, cx: &Apply<'_>, old: Elem<'_>, path: &Path<'_>, out: &mut Vec<u8>) -> Result<Effect>;
    /// Writes the value of a field that is not there yet; `None` leaves it missing.
    fn create(&self, cx: &Apply<'_>, out: &mut Vec<u8>) -> Result<Option<ElementType>>;
    fn blocked(&self, _cx: &Apply<'_>) -> Result<Blocked> {
        Ok(Blocked::Refuse)
    }
    /// What it makes of a missing field is an array with elements.
    fn makes_array(&self) -> bool {
        false
    }
    /// Levels of nesting in the value it may put.
    fn depth(&self) -> usize {
        0
    }
    /// Does nothing to this document at all.
    fn idle(&self, _cx: &Apply<'_>) -> bool {
        false
    }
}

/// What an operator's parser gets: the element `path: argument`.
pub(super) struct Arg<'a> {
    pub(super) elem: Elem<'a>,
    pub(super) ctx: &'a QueryCtx,
}

/// A value kept with the plan.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) ty: ElementType,
    pub(super) data: Box<[u8]>,
}

impl Stored {
    pub(super) fn of(e: Elem<'_>) -> Stored {
        Stored { ty: e.ty, data: e.data().into() }
    }
    pub(super) fn elem(&self) -> Elem<'_> {
        Elem::new(self.ty, "", &self.data)
    }
    pub(super) fn value(&self) -> Value<'_> {
        self.elem().value()
    }
    pub(super) fn put(&self, out: &mut Vec<u8>) -> ElementType {
        out.extend_from_slice(&self.data);
        self.ty
    }
    pub(super) fn is_same(&self, e: Elem<'_>) -> bool {
        self.ty == e.ty && *self.data == *e.data()
    }
}

/// Levels of documents and arrays in a value; a scalar has none.
pub(super) fn value_depth(v: Value<'_>) -> usize {
    match v {
        Value::Document(d) | Value::Array(d) => {
            1 + d.iter().map(|e| value_depth(e.value())).max().unwrap_or(0)
        }
        _ => 0,
    }
}

/// Writes an array's elements one by one, with their positions as names.
pub(super) struct ArrayOut<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    len: usize,
}

impl<'o> ArrayOut<'o> {
    pub(super) fn begin(out: &'o mut Vec<u8>) -> ArrayOut<'o> {
        let start = begin(out);
        ArrayOut { out, start, len: 0 }
    }
    pub(super) fn push(&mut self, ty: ElementType, data: &[u8]) -> Span {
        put_indexed_head(self.out, ty, self.len);
        self.len += 1;
        let start = self.out.len();
        self.out.extend_from_slice(data);
        Span { ty, start, end: self.out.len() }
    }
    pub(super) fn elem(&mut self, e: Elem<'_>) -> Span {
        self.push(e.ty, e.data())
    }
    pub(super) fn end(self) {
        end(self.out, self.start);
    }
}

/// `{_id: 1}`, as messages name a document.
pub(super) fn id_text(root: &RawDoc) -> String {
    match root.elem("_id") {
        Some(id) => format!("{{{id:#}}}"),
        None => "{no id}".to_owned(),
    }
}

/// `_id: 1`
pub(super) fn bare_id_text(root: &RawDoc) -> String {
    root.elem("_id").map_or_else(|| "no id".to_owned(), |id| format!("{id:#}"))
}
