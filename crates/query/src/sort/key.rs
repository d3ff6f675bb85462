//! Sort keys of documents.

use super::{SortMeta, SortPattern};
use crate::collation::Collation;
use crate::expand::expand;
use crate::facts::Facts;
use pando_base::{Error, Result};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{Bson, DocBuf, DocBuilder, Elem, ElementType, RawDoc, StringOrder, Value};
use std::sync::Arc;

pub(crate) fn parallel_arrays() -> Error {
    Error::bad_value("cannot sort with keys that are parallel arrays")
}

/// Makes sort keys of one pattern, one after another.
#[derive(Clone, Debug)]
pub struct SortKeys {
    pattern: Arc<SortPattern>,
    /// Per part, its path components.
    paths: Vec<Vec<Box<str>>>,
    collation: Option<Arc<Collation>>,
    builder: KeyBuilder,
}

impl SortKeys {
    pub fn new(pattern: Arc<SortPattern>, collation: Option<Arc<Collation>>) -> SortKeys {
        let split = |path: &str| path.split('.').map(Into::into).collect();
        let paths = pattern.parts.iter().map(|p| split(&p.path)).collect();
        let builder = KeyBuilder::new(pattern.directions());
        SortKeys { pattern, paths, collation, builder }
    }

    pub fn pattern(&self) -> &Arc<SortPattern> {
        &self.pattern
    }

    /// The key of `doc`; `facts` has the values of metadata parts.
    pub fn key(&mut self, doc: &RawDoc, facts: Option<&Facts>) -> Result<&[u8]> {
        self.builder.clear();
        let order = Collation::order(&self.collation);
        for (i, part) in self.pattern.parts.iter().enumerate() {
            if let Some(meta) = part.meta {
                self.builder.append(meta.of(facts));
                continue;
            }
            match plain(doc, &self.paths[i]) {
                Found::Value(e) => {
                    self.builder.append_elem(&e, order);
                }
                Found::Missing => {
                    self.builder.append(Value::Null);
                }
                Found::Array => return self.key_with_arrays(doc, facts),
            }
        }
        Ok(self.builder.bytes())
    }

    /// There are arrays on the way to what it is sorted by.
    pub fn meets_arrays(&self, doc: &RawDoc) -> bool {
        let mut parts = self.pattern.parts.iter().zip(&self.paths);
        parts.any(|(part, path)| part.meta.is_none() && matches!(plain(doc, path), Found::Array))
    }

    #[cold]
    fn key_with_arrays(&mut self, doc: &RawDoc, facts: Option<&Facts>) -> Result<&[u8]> {
        let parts = &self.pattern.parts;
        let plain: Vec<usize> = (0..parts.len()).filter(|i| parts[*i].meta.is_none()).collect();
        let paths: Vec<&[Box<str>]> = plain.iter().map(|i| &*self.paths[*i]).collect();
        let order = Collation::order(&self.collation);
        let mut least: Option<KeyBuilder> = None;
        let mut b = KeyBuilder::new(self.pattern.directions());
        expand(&paths, None, doc, &mut |values: &[Value<'_>]| {
            b.clear();
            let mut values = values.iter();
            for part in parts {
                match part.meta {
                    Some(meta) => b.append(meta.of(facts)),
                    None => b.append_with(values.next().copied().unwrap_or(Value::Null), order),
                };
            }
            if least.as_ref().is_none_or(|l| b.bytes() < l.bytes()) {
                least = Some(b.clone());
            }
        })
        .map_err(|_| parallel_arrays())?;
        if let Some(key) = least {
            self.builder = key;
        }
        Ok(self.builder.bytes())
    }

    /// The values that the document is sorted by, as an array. Under a collation strings are the keys that it compares by, so
    /// that whoever merges rows compares bytes (asked of 6.0.5).
    pub fn values(&mut self, doc: &RawDoc, facts: Option<&Facts>) -> Result<DocBuf> {
        let plain = self.pattern.parts.iter().zip(&self.paths).filter(|(part, _)| part.meta.is_none());
        let paths: Vec<&[Box<str>]> = plain.map(|(_, path)| &**path).collect();
        let order = Collation::order(&self.collation);
        let mut least: Option<(Vec<u8>, DocBuf)> = None;
        let b = &mut self.builder;
        expand(&paths, None, doc, &mut |values: &[Value<'_>]| {
            b.clear();
            let mut shown = DocBuilder::new();
            let mut values = values.iter();
            for (i, part) in self.pattern.parts.iter().enumerate() {
                let v = match part.meta {
                    Some(meta) => meta.of(facts),
                    None => values.next().copied().unwrap_or(Value::Null),
                };
                b.append_with(v, order);
                append_collated(&mut shown, &i.to_string(), v, order);
            }
            if least.as_ref().is_none_or(|(key, _)| b.bytes() < key.as_slice()) {
                least = Some((b.bytes().to_vec(), shown.finish()));
            }
        })
        .map_err(|_| parallel_arrays())?;
        Ok(least.map_or_else(DocBuf::new, |(_, shown)| shown))
    }
}

fn append_collated(b: &mut DocBuilder, name: &str, v: Value<'_>, order: Option<&dyn StringOrder>) {
    let Some(collation) = order else {
        b.value(name, v);
        return;
    };
    let inner = |d: &RawDoc| {
        let mut all = DocBuilder::new();
        d.iter().for_each(|e| append_collated(&mut all, e.name(), e.value(), order));
        all.finish()
    };
    match v {
        Value::String(s) => {
            let mut key = Vec::new();
            collation.sort_key(s, &mut key);
            match std::str::from_utf8(&key) {
                Ok(text) => b.str(name, text),
                Err(_) => {
                    let mut data = (key.len() as u32 + 1).to_le_bytes().to_vec();
                    data.extend_from_slice(&key);
                    data.push(0);
                    b.bson(name, &Bson::NotUtf8(ElementType::String, data))
                }
            };
        }
        Value::Document(d) => _ = b.raw_doc(name, &inner(d)),
        Value::Array(a) => _ = b.raw_array(name, &inner(a)),
        v => _ = b.value(name, v),
    }
}

impl SortMeta {
    /// Null where the row does not know it. Nobody makes random values.
    pub(crate) fn of(self, facts: Option<&Facts>) -> Value<'static> {
        let known = facts.and_then(|f| match self {
            SortMeta::TextScore => f.text_score,
            SortMeta::GeoNearDistance => f.near.as_ref().map(|n| n.distance),
            SortMeta::RandVal => None,
        });
        known.map_or(Value::Null, Value::Double)
    }
}

enum Found<'a> {
    Value(Elem<'a>),
    Missing,
    Array,
}

fn plain<'a>(doc: &'a RawDoc, path: &[Box<str>]) -> Found<'a> {
    let mut doc = doc;
    for (i, part) in path.iter().enumerate() {
        let Some(e) = doc.elem(part) else { return Found::Missing };
        match e.ty {
            ElementType::Array => return Found::Array,
            _ if i + 1 == path.len() => return Found::Value(e),
            ElementType::Document => doc = RawDoc::trusted(e.data()),
            _ => return Found::Missing,
        }
    }
    Found::Missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Document, doc};

    #[test]
    fn values_are_what_a_collation_compares_by() {
        let spec = doc! { "locale": "en", "strength": 2 }.to_raw();
        let collation = Collation::parse(&spec).unwrap();
        let pattern = Arc::new(SortPattern::parse(&doc! { "a": 1, "n": -1 }.to_raw()).unwrap());
        let mut keys = SortKeys::new(pattern, collation);
        let mut shown = |d: Document| keys.values(&d.to_raw(), None).unwrap();
        // Case does not matter, and bytes are in the order of the collation.
        assert_eq!(shown(doc! { "a": ["c", "B"], "n": 2.5 }), shown(doc! { "a": "b", "n": 2.5 }));
        let first = |d: DocBuf| d.first().unwrap().data().to_vec();
        let [a, b, e] = ["A", "b", "\u{e9}"].map(|s| first(shown(doc! { "a": s })));
        assert!(a[4..] < b[4..] && b[4..] < e[4..]);
        assert_eq!(shown(doc! { "a": 7 }), doc! { "0": 7, "1": Bson::Null }.to_raw());
        // Without one they are as they are.
        let pattern = Arc::new(SortPattern::parse(&doc! { "a": 1 }.to_raw()).unwrap());
        let mut plain = SortKeys::new(pattern, None);
        assert_eq!(
            plain.values(&doc! { "a": ["b", "A"] }.to_raw(), None).unwrap(),
            doc! { "0": "A" }.to_raw()
        );
    }

    fn order(spec: Document, docs: &[Document]) -> Vec<i64> {
        let pattern = Arc::new(SortPattern::parse(&spec.to_raw()).unwrap());
        let mut keys = SortKeys::new(pattern, None);
        let mut rows: Vec<(Vec<u8>, i64)> = docs
            .iter()
            .map(|d| {
                let id = d.get("_id").and_then(Bson::as_i64).unwrap();
                (keys.key(&d.to_raw(), None).unwrap().to_vec(), id)
            })
            .collect();
        rows.sort();
        rows.into_iter().map(|(_, id)| id).collect()
    }

    #[test]
    fn arrays_sort_by_least_up_and_greatest_down() {
        let docs = [
            doc! { "_id": 1, "a": [5, 1] },
            doc! { "_id": 2, "a": 3 },
            doc! { "_id": 3, "a": [] },
            doc! { "_id": 4 },
            doc! { "_id": 5, "a": [[1, 2], 2] },
        ];
        assert_eq!(order(doc! { "a": 1 }, &docs), [3, 4, 1, 5, 2]);
        assert_eq!(order(doc! { "a": -1 }, &docs), [5, 1, 2, 4, 3]);
    }

    #[test]
    fn compound_keys_take_one_element_for_all_parts() {
        let docs = [
            doc! { "_id": 1, "a": [{ "b": 1, "c": 9 }, { "b": 2, "c": 1 }] },
            doc! { "_id": 2, "a": [{ "b": 1, "c": 5 }] },
        ];
        assert_eq!(order(doc! { "a.b": 1, "a.c": 1 }, &docs), [2, 1]);
        let two = doc! { "_id": 3, "a": [1], "b": [2] }.to_raw();
        let pattern = Arc::new(SortPattern::parse(&doc! { "a": 1, "b": 1 }.to_raw()).unwrap());
        let e = SortKeys::new(pattern, None).key(&two, None).unwrap_err();
        assert_eq!(e.message, "cannot sort with keys that are parallel arrays");
    }
}
