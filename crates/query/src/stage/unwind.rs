//! `$unwind`: one document per element of an array.

use super::match_forward::same_root;
use super::{Needs, ROW_BYTES_PER_STEP, Row, Stage, Step, Upstream};
use crate::exec::{Each, Fed};
use crate::expr::{FieldPath, ParseCtx};
use pando_base::limits::STAGE_ROWS_PER_TURN;
use pando_base::{Error, Result, patience};
use pando_bson::{DocBuilder, Elem, ElementType, RawDoc, Value};
use std::collections::BTreeSet;

#[derive(Clone)]
pub(crate) struct Unwind {
    pub(super) path: FieldPath,
    pub(super) preserve: bool,
    pub(super) index: Option<FieldPath>,
    /// The fields that anybody looks at; `None` for all.
    pub(super) keep: Option<BTreeSet<String>>,
    /// The document being unwound, the offset of its next element, and that element's position.
    current: Option<(Row, usize, i64)>,
}

pub(super) fn parse(e: Elem<'_>, _: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    let (mut path, mut preserve, mut index) = (None, false, None);
    match e.value() {
        Value::String(s) => path = Some(s),
        Value::Document(spec) => {
            for f in spec {
                match (f.name(), f.value()) {
                    ("path", Value::String(s)) => path = Some(s),
                    ("path", v) => {
                        return Err(Error::location(
                            28808,
                            format!("expected a string as the path for $unwind stage, got {}", v.type_name()),
                        ));
                    }
                    ("preserveNullAndEmptyArrays", Value::Boolean(b)) => preserve = b,
                    ("preserveNullAndEmptyArrays", v) => {
                        return Err(Error::location(
                            28809,
                            format!(
                                "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got {}",
                                v.type_name()
                            ),
                        ));
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
                        index = Some(FieldPath::parse(s)?);
                    }
                    ("includeArrayIndex", v) => {
                        return Err(Error::location(
                            28810,
                            format!(
                                "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got {}",
                                v.type_name()
                            ),
                        ));
                    }
                    (other, _) => {
                        return Err(Error::location(
                            28811,
                            format!("unrecognized option to $unwind stage: {other}"),
                        ));
                    }
                }
            }
        }
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
    let path = path.filter(|p| !p.is_empty());
    let path = path.ok_or_else(|| Error::location(28812, "no path specified to $unwind stage"))?;
    let Some(dotted) = path.strip_prefix('$') else {
        return Err(Error::location(
            28818,
            format!("path option to $unwind stage should be prefixed with a '$': {path}"),
        ));
    };
    let path = FieldPath::parse(dotted)?;
    out.push(Box::new(Unwind { path, preserve, index, keep: None, current: None }));
    Ok(())
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

    /// The next element of the current document.
    fn next_element(&mut self) -> Option<Row> {
        let (row, offset, position) = self.current.take()?;
        let array = at_path(row.doc(), self.path.parts())?;
        let (e, next) = RawDoc::trusted(array.data()).elem_at(offset)?;
        let out = row.becomes(self.emit(row.doc(), Some((e.ty, e.data())), Some(position)));
        self.current = Some((row, next, position + 1));
        Some(out)
    }

    /// Shows the elements left of the current document, as many as `left` says, in one buffer for all.
    fn feed_elements(
        &mut self,
        buf: &mut Vec<u8>,
        left: &mut u32,
        each: &mut Each<'_>,
    ) -> Result<Option<Fed>> {
        let Some((row, mut offset, mut position)) = self.current.take() else { return Ok(None) };
        let Some(array) = at_path(row.doc(), self.path.parts()) else { return Ok(None) };
        let array = RawDoc::trusted(array.data());
        while let Some((e, next)) = array.elem_at(offset) {
            if *left == 0 {
                self.current = Some((row, offset, position));
                return Ok(Some(Fed::NeedYield));
            }
            *left -= 1;
            buf.clear();
            let mut b = DocBuilder::append_to(std::mem::take(buf));
            self.write(row.doc(), Some((e.ty, e.data())), Some(position), &mut b);
            *buf = b.into_buffer();
            patience::spend(1 + buf.len() / ROW_BYTES_PER_STEP)?;
            (offset, position) = (next, position + 1);
            if !each(buf)? {
                self.current = Some((row, offset, position));
                return Ok(Some(Fed::Stopped));
            }
        }
        Ok(None)
    }

    fn feed_all(&mut self, up: &mut Upstream<'_>, each: &mut Each<'_>) -> Result<Fed> {
        let (mut buf, mut left) = (Vec::with_capacity(256), STAGE_ROWS_PER_TURN);
        loop {
            if let Some(end) = self.feed_elements(&mut buf, &mut left, each)? {
                return Ok(end);
            }
            match up.next()? {
                Step::Row(row) => {
                    if let Some(row) = self.open(row)
                        && !each(row.bytes())?
                    {
                        return Ok(Fed::Stopped);
                    }
                }
                Step::NeedYield => return Ok(Fed::NeedYield),
                Step::Eof => return Ok(Fed::Eof),
            }
        }
    }

    /// A new document: what comes of it at once, if anything; the elements of an array come afterwards.
    fn open(&mut self, row: Row) -> Option<Row> {
        let row = row.narrowed(self.keep.as_ref());
        match at_path(row.doc(), self.path.parts()).map(|e| e.value()) {
            Some(Value::Array(a)) if !a.is_empty() => {
                self.current = Some((row, 4, 0));
                None
            }
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
}

impl Stage for Unwind {
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
    fn needs(&self, needs: &mut Needs) {
        needs.add(&self.path.dotted());
    }
    fn leaves_alone(&self, path: &str) -> bool {
        let other = |p: &FieldPath| !same_root(&p.dotted(), path);
        other(&self.path) && self.index.as_ref().is_none_or(other)
    }
    fn holds_rows(&self) -> bool {
        true
    }
    fn keep_fields(&mut self, names: BTreeSet<String>) {
        self.keep = Some(names);
    }
    fn as_unwind(&self) -> Option<&Unwind> {
        Some(self)
    }
}
