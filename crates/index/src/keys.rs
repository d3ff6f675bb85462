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
use pando_query::expand::{self as arrays, Keys, NoKeys};
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
    /// Fails where a document cannot be indexed: parallel arrays (171), an array under a hashed or text field (16766, 201), a symbol
    /// under a collation (201),
    /// what is no place (16755, 16804 …), or keys of more than `DOCUMENT_KEYS_BYTES_MAX` bytes.
    pub fn keys(&self, doc: &RawDoc, b: &mut KeyBuilder, out: &mut KeySet) -> Result<()> {
        out.clear();
        if !self.covers(doc)? {
            return Ok(());
        }
        b.take_uncollated();
        match self.kind {
            IndexKind::Btree => {
                if !self.simple_key(doc, b, out) {
                    let sink = |values: &[Value<'_>], out: &mut KeySet| self.emit(values, b, out);
                    expand(self, doc, out, sink).map_err(|e| self.of_buckets(e))?;
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
        if b.take_uncollated() {
            let text = "KeyString format error: Cannot index type Symbol with a collation.";
            return Err(Error::new(ErrorCode::CannotBuildIndexKeys, text));
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

/// Puts a document's keys into a set, and notes which parts of the paths met an array.
struct IntoSet<'a, F> {
    keygen: &'a KeyGen,
    out: &'a mut KeySet,
    sink: F,
}

impl<F: FnMut(&[Value<'_>], &mut KeySet)> Keys for IntoSet<'_, F> {
    const POSITIONS_ARE_CLEAR: bool = true;

    fn key(&mut self, values: &[Value<'_>], missing: usize) {
        if !(self.keygen.sparse && missing == values.len()) {
            (self.sink)(values, self.out);
        }
    }
    fn through_array(&mut self, path: usize, parts: usize) {
        self.out.mark(self.keygen.fields.len(), path, parts - 1);
    }
}

/// Calls `sink` with the values of each key of a document that may have arrays; that of a wildcard field is for it to fill in.
pub(crate) fn expand(
    keygen: &KeyGen,
    doc: &RawDoc,
    out: &mut KeySet,
    sink: impl FnMut(&[Value<'_>], &mut KeySet),
) -> Result<()> {
    let paths: Vec<&[Box<str>]> = keygen.fields.iter().map(|f| &*f.parts).collect();
    let wildcard = keygen.wildcard.as_ref().map(|w| w.at);
    arrays::expand(&paths, wildcard, doc, &mut IntoSet { keygen, out, sink }).map_err(|why| match why {
        NoKeys::ParallelArrays(a, b) => Error::new(
            ErrorCode::CannotIndexParallelArrays,
            format!("cannot index parallel arrays [{a}] [{b}]"),
        ),
        NoKeys::Ambiguous(field) => Error::location(
            16746,
            format!(
                "Ambiguous field name found in array (do not use numeric field names in embedded elements in an \
                 array), field: '{field}'"
            ),
        ),
    })
}

#[cfg(test)]
mod tests;
