//! From a document to the keys that an index holds for it.
//!
//! Most documents have no array on the indexed paths and give exactly one key, built straight into a reused
//! buffer. An array on a path gives one key per element; two different arrays in one compound key are refused
//! (code 171). Which path components met an array is noted, because the planner must know.

use crate::geo_spec;
use crate::key_set::KeySet;
use crate::spec::IndexSpec;
use crate::wildcard_keys::WildcardPaths;
use pando_base::{Error, ErrorCode, Result, limits, patience};
use pando_bson::compare::StringOrder;
use pando_bson::hashed::hashed_key_with;
use pando_bson::keystring::{Directions, KeyBuilder};
use pando_bson::{Elem, ElementType, RawDoc, Value};
use pando_query::QueryCtx;
use pando_query::collation::Collation;
use pando_query::geo::GeoIndex;
use pando_query::matcher::Matcher;
use pando_query::source::{FieldKind, IndexField, IndexKind};
use pando_query::text::TextSpec;
use pando_query::timeseries::BUCKET_2DSPHERE;
use std::sync::Arc;

/// Bytes of a document that are walked in one step.
const BYTES_PER_STEP: usize = 256;

/// Everything needed to make keys of one index. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KeyGen {
    pub(crate) fields: Arc<[FieldPath]>,
    kind: IndexKind,
    directions: Directions,
    sparse: bool,
    /// Strings are stored as its sort keys; `None` is the simple collation.
    pub collation: Option<Arc<Collation>>,
    /// Documents that do not match have no keys.
    pub partial: Option<Arc<Matcher>>,
    pub(crate) wildcard: Option<Arc<WildcardPaths>>,
    text: Option<Arc<TextSpec>>,
    /// How an index on places divides its space.
    pub geo: Option<Arc<GeoIndex>>,
    /// `2dsphereIndexVersion`
    pub(crate) geo_version: i64,
}

#[derive(Debug)]
pub(crate) struct FieldPath {
    pub(crate) parts: Vec<Box<str>>,
    pub(crate) kind: FieldKind,
    /// A place in a column of a time series' bucket: each row gives keys.
    pub(crate) rows: bool,
}

fn parts(path: &str) -> Vec<Box<str>> {
    path.split('.').map(Box::from).collect()
}

impl KeyGen {
    /// Fails where filter, collation, projection, languages or cells of the specification are not valid.
    pub fn new(spec: &IndexSpec) -> Result<KeyGen> {
        let collation = match &spec.collation {
            Some(c) => Collation::stored(c)?,
            None => None,
        };
        let ctx = QueryCtx::default().with_collation(collation.clone());
        let partial = match &spec.partial {
            Some(filter) => Some(Arc::new(Matcher::parse(filter, &ctx)?)),
            None => None,
        };
        let wildcard = match spec.kind {
            IndexKind::Wildcard => Some(Arc::new(WildcardPaths::of(spec)?)),
            _ => None,
        };
        Ok(KeyGen {
            fields: spec.fields.iter().zip(spec.key.iter()).map(|(f, e)| field_path(f, e)).collect(),
            kind: spec.kind,
            directions: key_directions(spec, wildcard.as_ref().map(|w| w.at)),
            sparse: spec.sparse,
            collation,
            partial,
            wildcard,
            text: match spec.kind {
                IndexKind::Text => Some(Arc::new(TextSpec::from_index(&spec.doc)?)),
                _ => None,
            },
            geo: geo_spec::parameters(spec)?.map(Arc::new),
            geo_version: geo_spec::version(&spec.doc),
        })
    }
    /// Languages, weights and fields of a text index.
    pub fn text(&self) -> Option<&Arc<TextSpec>> {
        self.text.as_ref()
    }
    /// Fields of the key pattern.
    pub fn field_count(&self) -> usize {
        self.fields.len()
    }
    /// Directions of the encoded fields (a wildcard field is encoded as two).
    pub fn directions(&self) -> Directions {
        self.directions
    }
    pub(crate) fn order(&self) -> Option<&dyn StringOrder> {
        self.collation.as_deref().map(|c| c as &dyn StringOrder)
    }
    /// Whether the index covers this document at all, by its partial filter.
    pub fn covers(&self, doc: &RawDoc) -> Result<bool> {
        match &self.partial {
            Some(p) => p.matches(doc),
            None => Ok(true),
        }
    }

    /// Fills `out` with the keys of `doc`; none when the index does not cover it. `b` is scratch space.
    ///
    /// Fails where a document cannot be indexed: parallel arrays (171), an array under a hashed or text field (16766, 201),
    /// what is no place (16755, 16804 …), or keys of more than `DOCUMENT_KEYS_BYTES_MAX` bytes.
    pub fn keys(&self, doc: &RawDoc, b: &mut KeyBuilder, out: &mut KeySet) -> Result<()> {
        out.clear();
        if !self.covers(doc)? {
            return Ok(());
        }
        match self.kind {
            IndexKind::Btree => {
                if !self.simple_key(doc, b, out) {
                    let mut sink = |values: &[Value<'_>], out: &mut KeySet| self.emit(values, b, out);
                    expand(self, doc, out, &mut sink).map_err(|e| self.of_buckets(e))?;
                    out.sort();
                }
                self.mark_hidden_values(doc, out);
            }
            IndexKind::Hashed => self.hashed_key(doc, b, out)?,
            IndexKind::Wildcard => {
                self.wildcard_keys(doc, b, out)?;
                out.sort();
            }
            IndexKind::Text => {
                if let Some(text) = &self.text {
                    self.text_keys(text, doc, b, out)?;
                }
            }
            IndexKind::Geo2d | IndexKind::Geo2dSphere => self.geo_keys(doc, b, out)?,
        }
        if out.too_large {
            return Err(Error::new(
                ErrorCode::TransactionTooLargeForCache,
                format!(
                    "a document's keys of one index take more than {} bytes",
                    limits::DOCUMENT_KEYS_BYTES_MAX
                ),
            ));
        }
        // Keys of work that was given up are not all there are.
        patience::spend(1 + doc.byte_len() / BYTES_PER_STEP)
    }

    /// The one key of a document without arrays on the indexed paths; `false` when there is an array.
    #[inline]
    fn simple_key(&self, doc: &RawDoc, b: &mut KeyBuilder, out: &mut KeySet) -> bool {
        b.restart(self.directions);
        let mut found = false;
        for f in self.fields.iter() {
            match plain_walk(doc, &f.parts) {
                Walk::Array => return false,
                Walk::Value(e) => {
                    found = true;
                    b.append_elem(&e, self.order());
                }
                Walk::Missing => {
                    b.append(Value::Null);
                }
            }
        }
        if found || !self.sparse {
            out.push(b);
        }
        true
    }

    fn emit(&self, values: &[Value<'_>], b: &mut KeyBuilder, out: &mut KeySet) {
        if out.too_large {
            return;
        }
        b.restart(self.directions);
        for v in values {
            b.append_with(*v, self.order());
        }
        out.push(b);
    }

    fn hashed_key(&self, doc: &RawDoc, b: &mut KeyBuilder, out: &mut KeySet) -> Result<()> {
        b.restart(self.directions);
        let mut found = false;
        for f in self.fields.iter() {
            let value = match plain_walk(doc, &f.parts) {
                Walk::Array => {
                    let text = format!(
                        "Error: hashed indexes do not currently support array values. Found array at path: {}",
                        f.parts.join(".")
                    );
                    return Err(Error::location(16766, text));
                }
                Walk::Value(e) => {
                    found = true;
                    e.value()
                }
                Walk::Missing => Value::Null,
            };
            if f.kind == FieldKind::Hashed {
                b.append(Value::Int64(hashed_key_with(value, self.order())));
            } else {
                b.append_with(value, self.order());
            }
        }
        if found || !self.sparse {
            out.push(b);
        }
        Ok(())
    }
}

/// Bits for the encoded fields: a wildcard field counts twice (path, value).
fn key_directions(spec: &IndexSpec, wildcard: Option<usize>) -> Directions {
    let mut bits = 0u32;
    let mut at = 0;
    for (i, f) in spec.fields.iter().enumerate() {
        if f.kind == FieldKind::Descending && at < 32 {
            bits |= 1 << at;
        }
        at += if Some(i) == wildcard { 2 } else { 1 };
    }
    Directions(bits)
}

pub(crate) enum Walk<'a> {
    Missing,
    Value(Elem<'a>),
    Array,
}

fn field_path(f: &IndexField, e: Elem<'_>) -> FieldPath {
    let rows = e.value().as_str() == Some(BUCKET_2DSPHERE);
    FieldPath { parts: parts(&f.path), kind: f.kind, rows }
}

#[inline]
pub(crate) fn plain_walk<'a>(doc: &'a RawDoc, parts: &[Box<str>]) -> Walk<'a> {
    let mut doc = doc;
    for (i, part) in parts.iter().enumerate() {
        let Some(e) = doc.elem(part) else { return Walk::Missing };
        match e.ty {
            ElementType::Array => return Walk::Array,
            _ if i + 1 == parts.len() => return Walk::Value(e),
            ElementType::Document => doc = RawDoc::trusted(e.data()),
            _ => return Walk::Missing,
        }
    }
    Walk::Missing
}

/// An array element that a path names by its position (`a.1.b`).
#[derive(Clone, Copy)]
struct Positional<'d> {
    /// The element at that position.
    element: Elem<'d>,
    /// What the rest of the path leads to from there, and how much of the path is then left.
    target: Option<Elem<'d>>,
    rest: usize,
}

#[derive(Clone)]
struct FieldState<'d> {
    /// Next path component to look up; all of them used = the value is in `fixed`.
    rest: usize,
    fixed: Option<Value<'d>>,
    positional: Option<Positional<'d>>,
}

type Sink<'s> = dyn FnMut(&[Value<'_>], &mut KeySet) + 's;

/// Calls `sink` with the values of each key of a document that may have arrays.
pub(crate) fn expand(keygen: &KeyGen, doc: &RawDoc, out: &mut KeySet, sink: &mut Sink<'_>) -> Result<()> {
    let skip = keygen.wildcard.as_ref().map(|w| w.at);
    let start = |(i, f): (usize, &FieldPath)| match skip {
        // The wildcard's own position is filled in by the sink.
        Some(at) if at == i => FieldState { rest: f.parts.len(), fixed: Some(Value::Null), positional: None },
        _ => FieldState { rest: 0, fixed: None, positional: None },
    };
    let states: Vec<FieldState<'_>> = keygen.fields.iter().enumerate().map(start).collect();
    expand_from(keygen, doc, states, 0, out, sink)
}

fn expand_from<'d>(
    keygen: &KeyGen,
    obj: &'d RawDoc,
    mut states: Vec<FieldState<'d>>,
    mut missing: usize,
    out: &mut KeySet,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let mut array: Option<Elem<'d>> = None;
    let mut in_array = 0u64;
    let mut unwrap_elements = true;
    for (i, s) in states.iter_mut().enumerate() {
        let parts = &keygen.fields[i].parts;
        if s.rest == parts.len() && s.fixed.is_some() {
            continue;
        }
        let (found, nested) = next_element(obj, parts, s)?;
        match found {
            None => {
                s.fixed = Some(Value::Null);
                s.rest = parts.len();
                missing += 1;
            }
            Some(e) if e.ty == ElementType::Array => {
                the_one_array(&mut array, e)?;
                in_array |= 1 << i;
                unwrap_elements &= !nested;
                out.mark(keygen.fields.len(), i, s.rest - 1);
            }
            Some(e) => s.fixed = Some(e.value()),
        }
    }
    let Some(array) = array else {
        if !(keygen.sparse && missing == states.len()) {
            let values: Vec<Value<'_>> = states.iter().map(|s| s.fixed.unwrap_or(Value::Null)).collect();
            sink(&values, out);
        }
        return Ok(());
    };
    let elements = RawDoc::trusted(array.data());
    for (i, s) in states.iter_mut().enumerate().filter(|(i, _)| in_array >> i & 1 != 0) {
        s.positional = positional(elements, &keygen.fields[i].parts, s.rest);
    }
    let mut each = |entry: Value<'d>, out: &mut KeySet| {
        let mut next = states.clone();
        for (i, s) in next.iter_mut().enumerate().filter(|(i, _)| in_array >> i & 1 != 0) {
            if s.rest == keygen.fields[i].parts.len() {
                // An array inside an array is a value of its own, but for the empty one.
                let unwrap = unwrap_elements || elements.is_empty();
                s.fixed = Some(if unwrap { entry } else { array.value() });
            }
        }
        let inner = match entry {
            Value::Document(d) => d,
            _ => RawDoc::empty(),
        };
        expand_from(keygen, inner, next, missing, out, sink)
    };
    if elements.is_empty() {
        return each(Value::Undefined, out);
    }
    for e in elements {
        each(e.value(), out)?;
    }
    Ok(())
}

/// Keeps the array that was met; a second one is refused (171).
fn the_one_array<'d>(array: &mut Option<Elem<'d>>, met: Elem<'d>) -> Result<()> {
    match array {
        Some(a) if !std::ptr::eq(a.data().as_ptr(), met.data().as_ptr()) => Err(Error::new(
            ErrorCode::CannotIndexParallelArrays,
            format!("cannot index parallel arrays [{}] [{}]", met.name(), a.name()),
        )),
        Some(_) => Ok(()),
        None => {
            *array = Some(met);
            Ok(())
        }
    }
}

/// The element that the next part of a path names by its position, if it names one.
fn positional<'d>(elements: &'d RawDoc, parts: &[Box<str>], rest: usize) -> Option<Positional<'d>> {
    let element = parts.get(rest).and_then(|part| elements.elem(part))?;
    let mut rest = rest;
    let target = element_or_array(elements, parts, &mut rest);
    Some(Positional { element, target, rest })
}

/// What the rest of a field's path leads to, up to the first array; and whether that is an array inside an array
/// (reached by position), which is indexed as a whole.
fn next_element<'d>(
    obj: &'d RawDoc,
    parts: &[Box<str>],
    s: &mut FieldState<'d>,
) -> Result<(Option<Elem<'d>>, bool)> {
    let here = parts.get(s.rest).is_some_and(|part| obj.elem(part).is_some());
    match &s.positional {
        Some(p) if here => Err(Error::location(
            16746,
            format!(
                "Ambiguous field name found in array (do not use numeric field names in embedded elements in an \
                 array), field: '{}'",
                p.element.name()
            ),
        )),
        Some(p) => {
            s.rest = p.rest;
            Ok((p.target, p.element.ty == ElementType::Array))
        }
        None => Ok((element_or_array(obj, parts, &mut s.rest), false)),
    }
}

/// Walks from `obj` along the path until its end or an array; `rest` moves on accordingly.
fn element_or_array<'d>(obj: &'d RawDoc, parts: &[Box<str>], rest: &mut usize) -> Option<Elem<'d>> {
    let mut doc = obj;
    loop {
        let e = doc.elem(parts.get(*rest)?)?;
        *rest += 1;
        if *rest == parts.len() || e.ty == ElementType::Array {
            return Some(e);
        }
        doc = e.value().as_doc()?;
    }
}

#[cfg(test)]
mod tests;
