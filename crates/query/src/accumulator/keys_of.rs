//! What `$top` and its kin sort by.

use crate::collation::Collation;
use crate::expr::FieldPath;
use crate::facts::Facts;
use crate::sort::{SortPattern, parallel_arrays};
use pando_base::Result;
use pando_bson::keystring::KeyBuilder;
use pando_bson::{ArrayBuilder, DocBuf, Elem, RawDoc, Value};
use std::sync::Arc;

/// Makes the sort keys of documents for an accumulator.
///
/// Other than `$sort`, it takes the values at the paths as expressions do: a number in a path is the name of a field and
/// never a place in an array, and an array, also one of values at the end of a path, is compared as a whole. Only an empty
/// one comes before all values, as in `$sort`.
#[derive(Clone)]
pub(crate) struct KeysOf {
    pattern: SortPattern,
    /// Of each part of the pattern that is a path.
    paths: Vec<Option<FieldPath>>,
    collation: Option<Arc<Collation>>,
    builder: KeyBuilder,
}

impl KeysOf {
    pub(crate) fn new(pattern: SortPattern, collation: Option<Arc<Collation>>) -> Result<KeysOf> {
        let path = |meta: bool, path: &str| (!meta).then(|| FieldPath::parse(path)).transpose();
        let paths = pattern.parts.iter().map(|p| path(p.meta.is_some(), &p.path)).collect::<Result<_>>()?;
        let builder = KeyBuilder::new(pattern.directions());
        Ok(KeysOf { pattern, paths, collation, builder })
    }

    /// The paths that are read.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.pattern.parts.iter().map(|p| &*p.path)
    }

    /// The state of `$top` and its kin that a MongoDB server has sent, as ours is: `[{k, v}]`. `None` when it is ours.
    pub(crate) fn state_of(&self, sent: Value<'_>) -> Option<DocBuf> {
        let list = sent.as_array()?;
        let theirs = |e: &Elem<'_>| e.value().as_doc().is_some_and(|d| d.elem("generatedSortKey").is_some());
        list.first().filter(theirs)?;
        let mut out = ArrayBuilder::new();
        let mut key = KeyBuilder::new(self.pattern.directions());
        for entry in list.iter().filter_map(|e| e.value().as_doc()) {
            key.clear();
            match entry.get("generatedSortKey") {
                // Of several parts, one after another.
                Some(Value::Array(parts)) if self.pattern.parts.len() > 1 => {
                    parts.iter().for_each(|part| _ = key.append(part.value()));
                }
                one => _ = key.append(one.unwrap_or(Value::Null)),
            }
            out.doc(|d| {
                d.binary("k", 0, key.bytes());
                entry.get("output").into_iter().for_each(|v| _ = d.value("v", v));
            });
        }
        Some(out.finish())
    }

    pub(crate) fn of(&mut self, doc: &RawDoc, facts: Option<&Facts>) -> Result<&[u8]> {
        self.builder.clear();
        let order = Collation::order(&self.collation);
        let mut has_array = false;
        for (part, path) in self.pattern.parts.iter().zip(&self.paths) {
            let Some(path) = path else {
                if let Some(meta) = part.meta {
                    self.builder.append(meta.of(facts));
                }
                continue;
            };
            let v = path.of_doc(doc);
            let v = v.value().unwrap_or(Value::Null);
            if let Value::Array(a) = v {
                if std::mem::replace(&mut has_array, true) {
                    return Err(parallel_arrays());
                }
                if a.is_empty() {
                    self.builder.append(Value::Undefined);
                    continue;
                }
            }
            self.builder.append_with(v, order);
        }
        Ok(self.builder.bytes())
    }
}
