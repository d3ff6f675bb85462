//! From a document to the keys that an index holds for it.
//!
//! Most documents have no array on the indexed paths and give exactly one key, built straight into a reused
//! buffer. An array on a path gives one key per element; two different arrays in one compound key are refused
//! (code 171). Which path components met an array is noted, because the planner must know.

use crate::geo_spec;
use crate::spec::IndexSpec;
use crate::wildcard::{Coverage, PathFilter};
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
use std::ops::Range;
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
    pub collation: Option<Arc<Collation>>,
    pub partial: Option<Arc<Matcher>>,
    wildcard: Option<Arc<WildcardPaths>>,
    text: Option<Arc<TextSpec>>,
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

#[derive(Debug)]
struct WildcardPaths {
    /// Position among the fields.
    at: usize,
    /// `a` of `a.$**`; empty for `$**`.
    prefix: String,
    filter: PathFilter,
}

/// The keys of one document, ascending and without duplicates. Reuse it from document to document.
#[derive(Debug, Default)]
pub struct KeySet {
    buf: Vec<u8>,
    keys: Vec<KeyRef>,
    /// Per field of the pattern: bit `i` says that the first `i + 1` path components reached an array.
    pub marks: Vec<u64>,
    /// An array was met.
    pub multikey: bool,
    /// Wildcard indexes: paths that held an array.
    pub wild_paths: Vec<String>,
    /// The keys took more than one document's may; the rest was not made.
    too_large: bool,
}

#[derive(Clone, Debug)]
struct KeyRef {
    key: Range<usize>,
    bits: Range<usize>,
}

/// One key and its type bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key<'a> {
    pub bytes: &'a [u8],
    pub type_bits: &'a [u8],
}

impl KeySet {
    pub fn clear(&mut self) {
        self.buf.clear();
        self.keys.clear();
        self.marks.clear();
        self.multikey = false;
        self.wild_paths.clear();
        self.too_large = false;
    }
    pub fn len(&self) -> usize {
        self.keys.len()
    }
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
    pub fn get(&self, i: usize) -> Option<Key<'_>> {
        let r = self.keys.get(i)?;
        Some(Key { bytes: &self.buf[r.key.clone()], type_bits: &self.buf[r.bits.clone()] })
    }
    pub fn iter(&self) -> impl Iterator<Item = Key<'_>> {
        self.keys
            .iter()
            .map(|r| Key { bytes: &self.buf[r.key.clone()], type_bits: &self.buf[r.bits.clone()] })
    }
    pub(crate) fn push(&mut self, b: &KeyBuilder) {
        let start = self.buf.len();
        self.too_large |= start + b.bytes().len() > limits::DOCUMENT_KEYS_BYTES_MAX;
        if self.too_large {
            return;
        }
        self.buf.extend_from_slice(b.bytes());
        let end = self.buf.len();
        self.buf.extend_from_slice(b.type_bits());
        self.keys.push(KeyRef { key: start..end, bits: end..self.buf.len() });
    }
    pub(crate) fn sort(&mut self) {
        if self.keys.len() > 1 {
            let buf = &self.buf;
            self.keys.sort_by(|a, b| buf[a.key.clone()].cmp(&buf[b.key.clone()]));
            self.keys.dedup_by(|a, b| buf[a.key.clone()] == buf[b.key.clone()]);
        }
    }
    pub(crate) fn mark(&mut self, fields: usize, field: usize, component: usize) {
        self.multikey = true;
        if self.marks.len() < fields {
            self.marks.resize(fields, 0);
        }
        self.marks[field] |= 1 << component.min(63);
    }
}

/// Keys of `old` that are not in `new` and the other way round; both are ascending.
pub(crate) fn changes<'a>(old: &'a KeySet, new: &'a KeySet) -> (Vec<Key<'a>>, Vec<Key<'a>>) {
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    loop {
        match (old.get(i), new.get(j)) {
            (None, None) => return (removed, added),
            (Some(a), None) => {
                removed.push(a);
                i += 1;
            }
            (None, Some(b)) => {
                added.push(b);
                j += 1;
            }
            (Some(a), Some(b)) => match a.bytes.cmp(b.bytes) {
                std::cmp::Ordering::Less => {
                    removed.push(a);
                    i += 1;
                }
                std::cmp::Ordering::Greater => {
                    added.push(b);
                    j += 1;
                }
                std::cmp::Ordering::Equal => {
                    // The same key with other numeric types: rewritten in place.
                    if a.type_bits != b.type_bits {
                        added.push(b);
                    }
                    i += 1;
                    j += 1;
                }
            },
        }
    }
}

fn parts(path: &str) -> Vec<Box<str>> {
    path.split('.').map(Box::from).collect()
}

impl KeyGen {
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
        let mut wildcard = None;
        if spec.kind == IndexKind::Wildcard {
            let is_wild = |path: &str| path == "$**" || path.ends_with(".$**");
            let at = spec.fields.iter().position(|f| is_wild(&f.path)).unwrap_or(0);
            let prefix = spec.fields[at].path.strip_suffix(".$**").unwrap_or_default().to_owned();
            let filter = match &spec.wildcard_projection {
                Some(p) => PathFilter::parse(p)?,
                None => PathFilter::default(),
            };
            wildcard = Some(Arc::new(WildcardPaths { at, prefix, filter }));
        }
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
    pub(crate) fn text(&self) -> Option<&Arc<TextSpec>> {
        self.text.as_ref()
    }
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
    /// Whether the index covers this document at all.
    pub fn covers(&self, doc: &RawDoc) -> Result<bool> {
        match &self.partial {
            Some(p) => p.matches(doc),
            None => Ok(true),
        }
    }

    /// Fills `out` with the keys of `doc`; none when the index does not cover it.
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

    fn wildcard_keys(&self, doc: &RawDoc, b: &mut KeyBuilder, out: &mut KeySet) -> Result<()> {
        let Some(w) = &self.wildcard else { return Ok(()) };
        let mut leaves = Vec::new();
        let walk = LeafWalk { filter: &w.filter, prefix: &w.prefix };
        walk.document(doc, false, &mut String::new(), &mut leaves, &mut out.wild_paths);
        out.multikey = !out.wild_paths.is_empty();
        if self.fields.len() == 1 {
            for leaf in &leaves {
                b.restart(self.directions);
                b.append(Value::String(&leaf.path));
                b.append_with(leaf.value, self.order());
                out.push(b);
            }
            return Ok(());
        }
        if leaves.is_empty() {
            leaves.push(Leaf { path: String::new(), value: Value::MinKey });
        }
        let mut sink = |values: &[Value<'_>], out: &mut KeySet| {
            for leaf in &leaves {
                b.restart(self.directions);
                for (i, v) in values.iter().enumerate() {
                    if i != w.at {
                        b.append_with(*v, self.order());
                        continue;
                    }
                    if leaf.path.is_empty() {
                        b.append(Value::MinKey);
                    } else {
                        b.append(Value::String(&leaf.path));
                    }
                    b.append_with(leaf.value, self.order());
                }
                out.push(b);
            }
        };
        expand(self, doc, out, &mut sink)
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
fn expand(keygen: &KeyGen, doc: &RawDoc, out: &mut KeySet, sink: &mut Sink<'_>) -> Result<()> {
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
                match &array {
                    None => array = Some(e),
                    Some(a) if !std::ptr::eq(a.data().as_ptr(), e.data().as_ptr()) => {
                        return Err(Error::new(
                            ErrorCode::CannotIndexParallelArrays,
                            format!("cannot index parallel arrays [{}] [{}]", e.name(), a.name()),
                        ));
                    }
                    Some(_) => {}
                }
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
        let parts = &keygen.fields[i].parts;
        s.positional = None;
        if let Some(element) = parts.get(s.rest).and_then(|part| elements.elem(part)) {
            let mut rest = s.rest;
            let target = element_or_array(elements, parts, &mut rest);
            s.positional = Some(Positional { element, target, rest });
        }
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

struct Leaf<'d> {
    path: String,
    value: Value<'d>,
}

struct LeafWalk<'f> {
    filter: &'f PathFilter,
    /// Only paths at or below this one; empty = all.
    prefix: &'f str,
}

impl LeafWalk<'_> {
    fn coverage(&self, path: &str) -> Coverage {
        if self.prefix.is_empty() {
            return self.filter.coverage(path);
        }
        let below =
            |p: &str, q: &str| p.strip_prefix(q).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if below(path, self.prefix) {
            Coverage::All
        } else if below(self.prefix, path) {
            Coverage::Below
        } else {
            Coverage::None
        }
    }

    fn document<'d>(
        &self,
        doc: &'d RawDoc,
        is_array: bool,
        path: &mut String,
        leaves: &mut Vec<Leaf<'d>>,
        arrays: &mut Vec<String>,
    ) {
        for e in doc {
            let outer = path.len();
            if !is_array {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(e.name());
            }
            let coverage = self.coverage(path);
            if coverage != Coverage::None {
                self.element(e, coverage, is_array, path, leaves, arrays);
            }
            path.truncate(outer);
        }
    }

    fn element<'d>(
        &self,
        e: Elem<'d>,
        coverage: Coverage,
        in_array: bool,
        path: &mut String,
        leaves: &mut Vec<Leaf<'d>>,
        arrays: &mut Vec<String>,
    ) {
        let leaf = |value| Leaf { path: path.clone(), value };
        match e.value() {
            Value::Array(a) if !in_array => {
                if !arrays.contains(path) {
                    arrays.push(path.clone());
                }
                if a.is_empty() {
                    if coverage == Coverage::All {
                        leaves.push(leaf(Value::Undefined));
                    }
                } else {
                    self.document(a, true, path, leaves, arrays);
                }
            }
            Value::Document(d) if !d.is_empty() => self.document(d, false, path, leaves, arrays),
            v if coverage == Coverage::All => leaves.push(leaf(v)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
