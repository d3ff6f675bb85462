//! `$unwind`: one document per element of an array.

use super::needs::Needs;
use super::parsed::{Origin, Parsed};
use super::paths::same_root;
use super::row::{Row, keep_only};
use super::running::{Running, Start};
use super::step::Step;
use super::upstream::{ROW_BYTES_PER_STEP, Upstream};
use crate::exec::{Each, Fed};
use crate::expr::{FieldPath, ParseCtx};
use bytes::Bytes;
use pando_base::limits::STAGE_ROWS_PER_TURN;
use pando_base::{Error, Result, patience};
use pando_bson::{DocBuilder, Elem, ElementType, RawDoc, Value};
use std::collections::BTreeSet;

/// A document for each element of an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unwind {
    pub(super) path: FieldPath,
    pub(super) preserve: bool,
    pub(super) index: Option<FieldPath>,
    /// The fields that anybody looks at; `None` for all.
    pub(super) keep: Option<BTreeSet<String>>,
}

struct Unwinding {
    spec: Unwind,
    /// The document being unwound, the offset of its next element, and that element's position.
    current: Option<(Row, usize, i64)>,
}

/// Of one call of [`Running::feed`].
struct Feeding {
    buf: Vec<u8>,
    /// Rows it may still give.
    left: u32,
}

pub(super) fn parse(e: Elem<'_>, _: &mut ParseCtx<'_>) -> Result<Unwind> {
    let mut given = Given::default();
    match e.value() {
        Value::String(s) => given.path = Some(s),
        Value::Document(spec) => spec.iter().try_for_each(|f| given.option(f))?,
        v => {
            return Err(Error::location(
                15981,
                format!(
                    "expected either a string or an object as specification for $unwind stage, got {}",
                    v.type_name()
                ),
            ));
        }
    }
    let path = given.path.filter(|p| !p.is_empty());
    let path = path.ok_or_else(|| Error::location(28812, "no path specified to $unwind stage"))?;
    let Some(dotted) = path.strip_prefix('$') else {
        return Err(Error::location(
            28818,
            format!("path option to $unwind stage should be prefixed with a '$': {path}"),
        ));
    };
    let path = FieldPath::parse(dotted)?;
    Ok(Unwind { path, preserve: given.preserve, index: given.index, keep: None })
}

/// What a specification says.
#[derive(Default)]
struct Given<'e> {
    path: Option<&'e str>,
    preserve: bool,
    index: Option<FieldPath>,
}

impl<'e> Given<'e> {
    fn option(&mut self, f: Elem<'e>) -> Result<()> {
        let wrong = |code, wanted: &str, v: Value<'_>| {
            Err(Error::location(code, format!("expected {wanted} $unwind stage, got {}", v.type_name())))
        };
        match (f.name(), f.value()) {
            ("path", Value::String(s)) => self.path = Some(s),
            ("path", v) => return wrong(28808, "a string as the path for", v),
            ("preserveNullAndEmptyArrays", Value::Boolean(b)) => self.preserve = b,
            ("preserveNullAndEmptyArrays", v) => {
                return wrong(28809, "a boolean for the preserveNullAndEmptyArrays option to", v);
            }
            ("includeArrayIndex", Value::String(s)) if !s.is_empty() => {
                if s.starts_with('$') {
                    return Err(Error::location(
                        28822,
                        format!(
                            "includeArrayIndex option to $unwind stage should not be prefixed with a '$': {s}"
                        ),
                    ));
                }
                self.index = Some(FieldPath::parse(s)?);
            }
            ("includeArrayIndex", v) => {
                return wrong(28810, "a non-empty string for the includeArrayIndex  option to", v);
            }
            (other, _) => {
                return Err(Error::location(28811, format!("unrecognized option to $unwind stage: {other}")));
            }
        }
        Ok(())
    }
}

/// The value at a path through documents only.
fn at_path<'d>(doc: &'d RawDoc, parts: &[Box<str>]) -> Option<Elem<'d>> {
    let (last, inner) = parts.split_last()?;
    let mut doc = doc;
    for part in inner {
        doc = doc.get(part)?.as_doc()?;
    }
    doc.elem(last)
}

/// Writes `doc` with the value at a path replaced, removed (`None`), or added with the documents that lead to it.
pub(super) fn write_with(
    doc: &RawDoc,
    parts: &[Box<str>],
    value: Option<(ElementType, &[u8])>,
    b: &mut DocBuilder,
) {
    let Some((head, rest)) = parts.split_first() else { return };
    let mut found = false;
    for e in doc {
        if found || e.name_bytes() != head.as_bytes() {
            b.elem(e);
            continue;
        }
        found = true;
        put(Some(e), head, rest, value, b);
    }
    if !found && value.is_some() {
        put(None, head, rest, value, b);
    }
}

fn put(
    old: Option<Elem<'_>>,
    name: &str,
    rest: &[Box<str>],
    value: Option<(ElementType, &[u8])>,
    b: &mut DocBuilder,
) {
    if rest.is_empty() {
        if let Some((ty, data)) = value {
            b.raw(ty, name, data);
        }
        return;
    }
    let inner = old.and_then(|e| e.value().as_doc());
    match (inner, old) {
        (None, Some(e)) if value.is_none() => {
            b.elem(e);
        }
        (inner, _) => {
            b.doc(name, |sub| write_with(inner.unwrap_or(RawDoc::empty()), rest, value, sub));
        }
    }
}

impl Unwind {
    pub(super) fn emit(&self, doc: &RawDoc, value: Option<(ElementType, &[u8])>, index: Option<i64>) -> Row {
        let mut b = DocBuilder::with_capacity(doc.byte_len() + 32);
        self.write(doc, value, index, &mut b);
        b.finish().into()
    }

    fn write(
        &self,
        doc: &RawDoc,
        value: Option<(ElementType, &[u8])>,
        index: Option<i64>,
        b: &mut DocBuilder,
    ) {
        let Some(at) = &self.index else { return write_with(doc, self.path.parts(), value, b) };
        let mut unwound = DocBuilder::with_capacity(doc.byte_len() + 32);
        write_with(doc, self.path.parts(), value, &mut unwound);
        let bytes = index.map(i64::to_le_bytes);
        let data: (ElementType, &[u8]) = match &bytes {
            Some(n) => (ElementType::Int64, n),
            None => (ElementType::Null, &[]),
        };
        write_with(&unwound.finish(), at.parts(), Some(data), b);
    }

    /// What comes of a document without elements.
    fn without_elements(&self, row: Row) -> Option<Row> {
        match at_path(row.doc(), self.path.parts()).map(|e| e.value()) {
            Some(Value::Array(_)) => self.preserve.then(|| row.becomes(self.emit(row.doc(), None, None))),
            None | Some(Value::Null | Value::Undefined) => self.preserve.then(|| self.without_array(&row)),
            Some(_) => Some(self.without_array(&row)),
        }
    }

    /// The document as it is, with a null index when one is wanted.
    fn without_array(&self, row: &Row) -> Row {
        match &self.index {
            None => row.clone(),
            Some(at) => {
                let mut b = DocBuilder::with_capacity(row.doc().byte_len() + 16);
                write_with(row.doc(), at.parts(), Some((ElementType::Null, &[])), &mut b);
                row.becomes(b.finish().into())
            }
        }
    }

    /// Shows the elements of `array`, in `doc`, from here on: as many as `left` says, in one buffer for all. What is left of
    /// them then, and why.
    fn feed_elements(
        &self,
        doc: &RawDoc,
        (mut offset, mut position): (usize, i64),
        feed: &mut Feeding,
        each: &mut Each<'_>,
    ) -> Result<Option<(usize, i64, Fed)>> {
        let Some(array) = at_path(doc, self.path.parts()) else { return Ok(None) };
        while let Some((e, next)) = RawDoc::trusted(array.data()).elem_at(offset) {
            if feed.left == 0 {
                return Ok(Some((offset, position, Fed::NeedYield)));
            }
            feed.left -= 1;
            feed.buf.clear();
            let mut b = DocBuilder::append_to(std::mem::take(&mut feed.buf));
            self.write(doc, Some((e.ty, e.data())), Some(position), &mut b);
            feed.buf = b.into_buffer();
            patience::spend(1 + feed.buf.len() / ROW_BYTES_PER_STEP)?;
            (offset, position) = (next, position + 1);
            if !each(&feed.buf)? {
                return Ok(Some((offset, position, Fed::Stopped)));
            }
        }
        Ok(None)
    }
}

impl Parsed for Unwind {
    fn start(self, _: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Ok(Box::new(Unwinding { spec: self, current: None }))
    }
    fn needs(&self, needs: &mut Needs) {
        needs.add(&self.path.dotted());
    }
    fn origin(&self, path: &str) -> Option<Origin> {
        let other = |p: &FieldPath| !same_root(&p.dotted(), path);
        (other(&self.path) && self.index.as_ref().is_none_or(other)).then(|| Origin::same(path))
    }
}

impl Unwinding {
    /// The next element of the current document.
    fn next_element(&mut self) -> Option<Row> {
        let (row, offset, position) = self.current.take()?;
        let array = at_path(row.doc(), self.spec.path.parts())?;
        let (e, next) = RawDoc::trusted(array.data()).elem_at(offset)?;
        let out = row.becomes(self.spec.emit(row.doc(), Some((e.ty, e.data())), Some(position)));
        self.current = Some((row, next, position + 1));
        Some(out)
    }

    /// Documents are looked at where they lie.
    fn feed_all(&mut self, up: &mut Upstream<'_>, each: &mut Each<'_>) -> Result<Fed> {
        let mut feed = Feeding { buf: Vec::with_capacity(256), left: STAGE_ROWS_PER_TURN };
        if let Some((row, offset, position)) = self.current.take()
            && let Some((offset, position, end)) =
                self.spec.feed_elements(row.doc(), (offset, position), &mut feed, each)?
        {
            self.current = Some((row, offset, position));
            return Ok(end);
        }
        let (mut narrow, mut rest) = (Vec::new(), None);
        let this = &self.spec;
        let fed = up.feed(&mut |doc| {
            let doc = match &this.keep {
                None => RawDoc::trusted(doc),
                Some(keep) => {
                    narrow.clear();
                    let mut b = DocBuilder::append_to(std::mem::take(&mut narrow));
                    keep_only(RawDoc::trusted(doc), keep, &mut b);
                    narrow = b.into_buffer();
                    RawDoc::trusted(&narrow)
                }
            };
            let copied = || Row::new(Bytes::copy_from_slice(doc.as_bytes()));
            if !matches!(at_path(doc, this.path.parts()).map(|e| e.value()), Some(Value::Array(a)) if !a.is_empty()) {
                return this.without_elements(copied()).map_or(Ok(true), |row| each(row.bytes()));
            }
            let Some((offset, position, end)) = this.feed_elements(doc, (4, 0), &mut feed, each)? else {
                return Ok(true);
            };
            rest = Some(((copied(), offset, position), end));
            Ok(false)
        })?;
        let Some((current, end)) = rest else { return Ok(fed) };
        self.current = Some(current);
        Ok(end)
    }

    /// A new document: what comes of it at once, if anything; the elements of an array come afterwards.
    fn open(&mut self, row: Row) -> Option<Row> {
        let row = row.narrowed(self.spec.keep.as_ref());
        match at_path(row.doc(), self.spec.path.parts()).map(|e| e.value()) {
            Some(Value::Array(a)) if !a.is_empty() => {
                self.current = Some((row, 4, 0));
                None
            }
            _ => self.spec.without_elements(row),
        }
    }
}

impl Running for Unwinding {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            if let Some(row) = self.next_element() {
                return Ok(Step::Row(row));
            }
            match up.next()? {
                Step::Row(row) => {
                    if let Some(row) = self.open(row) {
                        return Ok(Step::Row(row));
                    }
                }
                step => return Ok(step),
            }
        }
    }
    fn feed(&mut self, up: &mut Upstream<'_>, each: &mut Each<'_>) -> Option<Result<Fed>> {
        Some(self.feed_all(up, each))
    }
}
