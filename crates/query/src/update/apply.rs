//! Applying an update tree: one walk over the old document's bytes that writes the new ones.
//!
//! Runs of fields that the update does not name are copied as they are, and the walk stops looking as soon as
//! every named field was met, so `{$inc: {n: 1}}` costs a search for `n` and a copy. Fields that were not
//! found are added behind, in the tree's order. What happened is noted as a [`Log`] whose values are spans of
//! the output.
//!
//! When several fields fail, the error of the first one in the tree's order is reported, whatever the order in
//! the document.

use super::array_filters::ArrayFilters;
use super::encode::{begin, elem_bytes, end, put_elem, put_head, put_indexed_head};
use super::log::Log;
use super::modifier::{Apply, Blocked, Effect, Span};
use super::path::{Path, array_index};
use super::tree::{ArrayNode, Node, ObjectNode, merge, merge_conflict, place_positional};
use pando_base::limits::{ARRAY_BACKFILL_MAX, UPDATE_BUFFER_BYTES_MAX};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{Elem, ElementType, RawDoc, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

pub(super) struct Applier<'a> {
    pub(super) cx: Apply<'a>,
    pub(super) filters: &'a ArrayFilters,
    /// A named field occurs once more beside itself: an update changes the first of them, a replayed diff all.
    pub(super) ambiguous: Cell<bool>,
}

/// Remembers the error of the earliest field.
#[derive(Default)]
struct FirstError(Option<(usize, Error)>);

impl FirstError {
    #[cold]
    fn note(&mut self, rank: usize, e: Error) {
        if self.0.as_ref().is_none_or(|(r, _)| rank < *r) {
            self.0 = Some((rank, e));
        }
    }
    fn result(self) -> Result<()> {
        self.0.map_or(Ok(()), |(_, e)| Err(e))
    }
}

type ObjectLog = Vec<(Arc<str>, Log)>;

/// One value at many places would be without a bound.
fn check_room(out: &[u8]) -> Result<()> {
    if out.len() > UPDATE_BUFFER_BYTES_MAX {
        let (needed, most) = (out.len(), UPDATE_BUFFER_BYTES_MAX >> 20);
        return Err(Error::location(
            13548,
            format!("BufBuilder attempted to grow() to {needed} bytes, past the {most}MB limit."),
        ));
    }
    Ok(())
}

impl Applier<'_> {
    /// Writes the updated document.
    pub(super) fn root(&self, node: &ObjectNode, doc: &RawDoc, out: &mut Vec<u8>) -> Result<ObjectLog> {
        self.object(node, doc, &Path::ROOT, out)
    }

    /// The node with `$` resolved.
    fn placed<'n>(&self, node: &'n ObjectNode, path: &Path<'_>) -> Result<Cow<'n, ObjectNode>> {
        if node.positional.is_none() {
            return Ok(Cow::Borrowed(node));
        }
        let position = self.cx.position.ok_or_else(|| {
            Error::bad_value("The positional operator did not find the match needed from the query.")
        })?;
        Ok(Cow::Owned(place_positional(node, position, path)?))
    }

    fn object(
        &self,
        node: &ObjectNode,
        doc: &RawDoc,
        path: &Path<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ObjectLog> {
        let node = &*self.placed(node, path)?;
        let mut logs: Vec<Option<Log>> = node.fields.iter().map(|_| None).collect();
        let mut missing = logs.len();
        let mut errors = FirstError::default();
        let bytes = doc.as_bytes();
        let start = begin(out);
        // Bytes up to `copied` are in `out`; `at` is where the next element begins.
        let (mut copied, mut at) = (4, 4);
        let mut elems = doc.iter();
        while missing > 0 {
            let Some(e) = elems.next() else { break };
            let next = at + elem_bytes(&e);
            let found = node.find(e.name_bytes());
            if found.is_some_and(|rank| logs[rank].is_some()) {
                self.ambiguous.set(true);
            } else if let Some(rank) = found {
                out.extend_from_slice(&bytes[copied..at]);
                copied = next;
                missing -= 1;
                match self.field(&node.fields[rank], e, path, out) {
                    Ok(log) => logs[rank] = Some(log),
                    Err(e) => {
                        logs[rank] = Some(Log::Same);
                        errors.note(rank, e);
                    }
                }
            }
            at = next;
        }
        out.extend_from_slice(&bytes[copied..bytes.len() - 1]);
        if missing > 0 {
            for (rank, (name, child)) in node.fields.iter().enumerate() {
                if logs[rank].is_none() {
                    match self.add_field(name, child, path, out) {
                        Ok(log) => logs[rank] = Some(log),
                        Err(e) => errors.note(rank, e),
                    }
                }
            }
        }
        errors.result()?;
        if elems.any(|e| node.find(e.name_bytes()).is_some()) {
            self.ambiguous.set(true);
        }
        end(out, start);
        let logs = logs.into_iter().map(|log| log.unwrap_or(Log::Same));
        Ok(node.fields.iter().map(|(name, _)| name.clone()).zip(logs).collect())
    }

    fn field(
        &self,
        (name, node): &(Arc<str>, Node),
        e: Elem<'_>,
        path: &Path<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Log> {
        let here = path.child(name);
        let log = self.elem(node, e, &here, false, out)?;
        if path.parent.is_none() && &**name == "_id" {
            self.check_id(&log, &here, out)?;
        }
        Ok(log)
    }

    /// `_id` of a stored document stays what it is.
    fn check_id(&self, log: &Log, path: &Path<'_>, out: &[u8]) -> Result<()> {
        let text = match log {
            Log::Same => return Ok(()),
            Log::Removed | Log::Set(_) => {
                format!("Performing an update on the path '{path}' would modify the immutable field '_id'")
            }
            Log::Object(fields) => {
                for (name, log) in fields {
                    self.check_id(log, &path.child(name), out)?;
                }
                return Ok(());
            }
            Log::New(_) | Log::Array(_) => {
                let id = self.cx.root.elem("_id").map(|e| e.name_bytes().len() + 2).unwrap_or(0);
                debug_assert!(id > 0);
                let shown = written_id(out).unwrap_or_default();
                format!("Updating the path '_id' to {shown} would modify the immutable field '_id'")
            }
        };
        Err(Error::new(ErrorCode::ImmutableField, text))
    }

    /// A field that the document does not have.
    fn add_field(&self, name: &Arc<str>, node: &Node, path: &Path<'_>, out: &mut Vec<u8>) -> Result<Log> {
        let head = out.len();
        put_head(out, ElementType::Null, name.as_bytes());
        let start = out.len();
        let Some(ty) = self.create(node, &path.child(name), out)? else {
            out.truncate(head);
            return Ok(Log::Same);
        };
        check_room(out)?;
        // What an upsert inserts may have any names.
        if path.parent.is_none() && name.starts_with('$') && !self.cx.insert {
            return Err(dollar_field(name, ty));
        }
        out[head] = ty as u8;
        Ok(Log::New(Span { ty, start, end: out.len() }))
    }

    /// The value of a node whose path does not exist; `None` when nothing below wants to be created.
    fn create(&self, node: &Node, path: &Path<'_>, out: &mut Vec<u8>) -> Result<Option<ElementType>> {
        match node {
            Node::Leaf(m) if m.idle(&self.cx) => Ok(None),
            Node::Leaf(m) => m.create(&self.cx, out),
            Node::Object(o) => {
                let o = &*self.placed(o, path)?;
                let start = begin(out);
                let mut any = false;
                for (name, child) in &o.fields {
                    let head = out.len();
                    put_head(out, ElementType::Null, name.as_bytes());
                    match self.create(child, &path.child(name), out)? {
                        Some(ty) => {
                            out[head] = ty as u8;
                            any = true;
                        }
                        None => out.truncate(head),
                    }
                }
                if !any {
                    out.truncate(start);
                    return Ok(None);
                }
                end(out, start);
                Ok(Some(ElementType::Document))
            }
            Node::Array(_) => Err(Error::bad_value(format!(
                "The path '{path}' must exist in the document in order to apply array updates."
            ))),
        }
    }

    /// An element that exists; writes it whole, head included.
    fn elem(
        &self,
        node: &Node,
        e: Elem<'_>,
        path: &Path<'_>,
        in_array: bool,
        out: &mut Vec<u8>,
    ) -> Result<Log> {
        let head = out.len();
        put_head(out, e.ty, e.name_bytes());
        let start = out.len();
        match (node, e.value()) {
            (Node::Leaf(m), _) => {
                let effect = if m.idle(&self.cx) { Effect::Same } else { m.update(&self.cx, e, path, out)? };
                check_room(out)?;
                let set = |out: &mut Vec<u8>, ty: ElementType| {
                    out[head] = ty as u8;
                    Span { ty, start, end: out.len() }
                };
                Ok(match effect {
                    Effect::Same => {
                        out.truncate(start);
                        out.extend_from_slice(e.data());
                        Log::Same
                    }
                    Effect::Set(ty) => Log::Set(set(out, ty)),
                    Effect::Appended { first, elements } => {
                        set(out, ElementType::Array);
                        Log::Array(
                            elements.into_iter().enumerate().map(|(i, s)| (first + i, Log::New(s))).collect(),
                        )
                    }
                    Effect::Remove if in_array => {
                        out.truncate(start);
                        Log::Set(set(out, ElementType::Null))
                    }
                    Effect::Remove => {
                        out.truncate(head);
                        Log::Removed
                    }
                })
            }
            (Node::Object(o), Value::Document(d)) => {
                let fields = self.object(o, d, path, out)?;
                Ok(Log::object(fields))
            }
            (Node::Object(o), Value::Array(a)) => self.positions(o, a, e, path, out),
            (Node::Object(o), _) => {
                self.blocked(o, e, path, path, None)?;
                out.extend_from_slice(e.data());
                Ok(Log::Same)
            }
            (Node::Array(f), Value::Array(a)) => self.filtered(f, a, path, out),
            (Node::Array(_), _) => {
                Err(Error::bad_value(format!("Cannot apply array updates to non-array element {e:#}")))
            }
        }
    }

    /// `e` is where the path ends though `node` wants to go on: an error, unless no modifier below minds.
    /// `first` is the first component that could not be walked.
    fn blocked(
        &self,
        node: &ObjectNode,
        e: Elem<'_>,
        e_path: &Path<'_>,
        path: &Path<'_>,
        first: Option<&str>,
    ) -> Result<()> {
        let node = &*self.placed(node, path)?;
        for (name, child) in &node.fields {
            self.blocked_child(name, child, e, e_path, path, first)?;
        }
        Ok(())
    }

    fn blocked_child(
        &self,
        name: &str,
        child: &Node,
        e: Elem<'_>,
        e_path: &Path<'_>,
        path: &Path<'_>,
        first: Option<&str>,
    ) -> Result<()> {
        let here = path.child(name);
        let first = first.unwrap_or(name);
        match child {
            Node::Leaf(m) if m.idle(&self.cx) => Ok(()),
            Node::Leaf(m) => {
                let text = match m.blocked(&self.cx)? {
                    Blocked::Ignore => return Ok(()),
                    Blocked::Refuse => format!("Cannot create field '{first}' in element {{{e:#}}}"),
                    Blocked::RefuseTraversal => {
                        format!(
                            "Cannot use the part ({first}) of ({here}) to traverse the element ({{{e:#}}})"
                        )
                    }
                };
                Err(Error::new(ErrorCode::PathNotViable, text))
            }
            Node::Object(o) => self.blocked(o, e, e_path, &here, Some(first)),
            Node::Array(_) => Err(Error::bad_value(format!(
                "The path '{here}' must exist in the document in order to apply array updates."
            ))),
        }
    }

    /// Children named by array position.
    fn positions(
        &self,
        node: &ObjectNode,
        array: &RawDoc,
        e: Elem<'_>,
        path: &Path<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Log> {
        let node = &*self.placed(node, path)?;
        let mut wanted: Vec<(usize, &Arc<str>, &Node)> = Vec::with_capacity(node.fields.len());
        for (name, child) in &node.fields {
            match array_index(name) {
                Some(index) => wanted.push((index, name, child)),
                None => self.blocked_child(name, child, e, path, path, None)?,
            }
        }
        wanted.sort_by_key(|w| w.0);
        if let Some(w) = wanted.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(merge_conflict(&path.child(w[1].1)));
        }
        let mut logs: Vec<(usize, Log)> = Vec::with_capacity(wanted.len());
        let mut wanted = wanted.into_iter().peekable();
        let start = begin(out);
        let mut len = 0;
        for old in array {
            match wanted.next_if(|w| w.0 == len) {
                Some((index, name, child)) => {
                    let log = self.elem(child, old, &path.child(name), true, out)?;
                    logs.push((index, log));
                }
                None => put_elem(out, old),
            }
            len += 1;
        }
        for (index, name, child) in wanted {
            let before = out.len();
            let backfill = index - len;
            if backfill > ARRAY_BACKFILL_MAX {
                // Only an error when something would be put there.
                if self.create(child, &path.child(name), &mut Vec::new())?.is_none() {
                    continue;
                }
                return Err(Error::new(
                    ErrorCode::CannotBackfillArray,
                    format!("can't backfill more than {ARRAY_BACKFILL_MAX} elements"),
                ));
            }
            check_room(out)?;
            for i in len..index {
                put_indexed_head(out, ElementType::Null, i);
            }
            let head = out.len();
            put_indexed_head(out, ElementType::Null, index);
            let value = out.len();
            match self.create(child, &path.child(name), out)? {
                Some(ty) => {
                    out[head] = ty as u8;
                    logs.push((index, Log::New(Span { ty, start: value, end: out.len() })));
                    len = index + 1;
                }
                None => out.truncate(before),
            }
        }
        end(out, start);
        Ok(Log::array(logs))
    }

    /// Children under `$[]` and `$[id]`.
    fn filtered(&self, node: &ArrayNode, array: &RawDoc, path: &Path<'_>, out: &mut Vec<u8>) -> Result<Log> {
        let mut matched = 0;
        let mut changed: Vec<(usize, Log, Span)> = Vec::new();
        let start = begin(out);
        for (index, e) in array.iter().enumerate() {
            let mut hits = Vec::new();
            for (id, child) in &node.children {
                if id.is_empty() || self.filters.matches(id, e)? {
                    hits.push(child);
                }
            }
            let Some((first, more)) = hits.split_first() else {
                put_elem(out, e);
                continue;
            };
            matched += 1;
            let name = e.name();
            let here = path.child(name);
            let mut target = Cow::Borrowed(*first);
            for other in more {
                target = Cow::Owned(merge(&target, other, &here)?);
            }
            let head = out.len();
            let log = self.elem(&target, e, &here, true, out)?;
            if !matches!(log, Log::Same) {
                let ty = ElementType::from_byte(out[head]).unwrap_or(e.ty);
                let span = Span { ty, start: head + 2 + e.name_bytes().len(), end: out.len() };
                changed.push((index, log, span));
            }
        }
        end(out, start);
        // The finer the log, the more must be known to be untouched: with several matches whole elements
        // (or the whole array) are logged.
        Ok(match changed.len() {
            0 => Log::Same,
            1 if matched == 1 => Log::array(changed.into_iter().map(|(i, log, _)| (i, log)).collect()),
            1 => Log::array(changed.into_iter().map(|(i, _, span)| (i, Log::Set(span))).collect()),
            _ => Log::Set(Span { ty: ElementType::Array, start, end: out.len() }),
        })
    }
}

/// The `_id` element as it stands last in a half-written root document.
fn written_id(out: &[u8]) -> Option<String> {
    let mut root = out.to_vec();
    end(&mut root, 0);
    let root = RawDoc::trusted(&root);
    root.elem("_id").map(|id| format!("{id:#}"))
}

/// A new top-level field whose name is an operator's, or a part of a reference that is not whole.
fn dollar_field(name: &str, ty: ElementType) -> Error {
    let text = match name {
        "$ref" | "$db" if ty != ElementType::String => {
            format!("The DBRef {name} field must be a String, not a {}", ty.name())
        }
        "$ref" => "The DBRef $ref field must be followed by a $id field".to_owned(),
        "$id" => "Found $id field without a $ref before it, which is invalid.".to_owned(),
        "$db" => "Found $db field without a $id before it, which is invalid.".to_owned(),
        _ => return dollar_prefixed(name),
    };
    Error::new(ErrorCode::InvalidDBRef, text)
}

/// A new top-level field may not look like an operator.
pub(super) fn dollar_prefixed(name: &str) -> Error {
    Error::new(
        ErrorCode::DollarPrefixedFieldName,
        format!(
            "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's \
             replacement document. Consider using an aggregation pipeline with $replaceWith."
        ),
    )
}
