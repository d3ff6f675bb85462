//! The keys of a document in a wildcard index: one per leaf, made of its path and its value.

use crate::key_set::KeySet;
use crate::keys::{KeyGen, expand};
use crate::spec::IndexSpec;
use crate::wildcard::{Coverage, PathFilter};
use pando_base::Result;
use pando_bson::keystring::KeyBuilder;
use pando_bson::{Elem, RawDoc, Value};

/// Which field of the key pattern is the wildcard, and what it covers.
#[derive(Debug)]
pub(crate) struct WildcardPaths {
    /// Position among the fields.
    pub(crate) at: usize,
    /// `a` of `a.$**`; empty for `$**`.
    prefix: String,
    filter: PathFilter,
}

impl WildcardPaths {
    /// Of a wildcard index.
    pub(crate) fn of(spec: &IndexSpec) -> Result<WildcardPaths> {
        let is_wild = |path: &str| path == "$**" || path.ends_with(".$**");
        let at = spec.fields.iter().position(|f| is_wild(&f.path)).unwrap_or(0);
        let prefix = spec.fields[at].path.strip_suffix(".$**").unwrap_or_default().to_owned();
        let filter = match &spec.wildcard_projection {
            Some(p) => PathFilter::parse(p)?,
            None => PathFilter::default(),
        };
        Ok(WildcardPaths { at, prefix, filter })
    }
}

impl KeyGen {
    /// One key per leaf; in a compound index, per leaf and per combination of the other fields.
    pub(crate) fn wildcard_keys(&self, doc: &RawDoc, b: &mut KeyBuilder, out: &mut KeySet) -> Result<()> {
        let Some(w) = &self.wildcard else { return Ok(()) };
        let mut leaves = Vec::new();
        let walk = LeafWalk { filter: &w.filter, prefix: &w.prefix };
        walk.document(doc, false, &mut Vec::new(), &mut leaves, &mut out.wild_paths);
        out.multikey = !out.wild_paths.is_empty();
        if self.fields.len() == 1 {
            for leaf in &leaves {
                b.restart(self.directions());
                b.append_string_bytes(&leaf.path);
                b.append_with(leaf.value, self.order());
                out.push(b);
            }
            return Ok(());
        }
        if leaves.is_empty() {
            leaves.push(Leaf { path: Vec::new(), value: Value::MinKey });
        }
        let sink = |values: &[Value<'_>], out: &mut KeySet| {
            for leaf in &leaves {
                b.restart(self.directions());
                for (i, v) in values.iter().enumerate() {
                    if i != w.at {
                        b.append_with(*v, self.order());
                        continue;
                    }
                    if leaf.path.is_empty() {
                        b.append(Value::MinKey);
                    } else {
                        b.append_string_bytes(&leaf.path);
                    }
                    b.append_with(leaf.value, self.order());
                }
                out.push(b);
            }
        };
        expand(self, doc, out, sink)
    }
}

struct Leaf<'d> {
    path: Vec<u8>,
    value: Value<'d>,
}

struct LeafWalk<'f> {
    filter: &'f PathFilter,
    /// Only paths at or below this one; empty = all.
    prefix: &'f str,
}

impl LeafWalk<'_> {
    fn coverage(&self, path: &[u8]) -> Coverage {
        if self.prefix.is_empty() {
            return self.filter.coverage(path);
        }
        let prefix = self.prefix.as_bytes();
        let below = |p: &[u8], q: &[u8]| {
            p.strip_prefix(q).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
        };
        if below(path, prefix) {
            Coverage::All
        } else if below(prefix, path) {
            Coverage::Below
        } else {
            Coverage::None
        }
    }

    fn document<'d>(
        &self,
        doc: &'d RawDoc,
        is_array: bool,
        path: &mut Vec<u8>,
        leaves: &mut Vec<Leaf<'d>>,
        arrays: &mut Vec<String>,
    ) {
        for e in doc {
            let outer = path.len();
            if !is_array {
                if !path.is_empty() {
                    path.push(b'.');
                }
                path.extend_from_slice(e.name_bytes());
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
        path: &mut Vec<u8>,
        leaves: &mut Vec<Leaf<'d>>,
        arrays: &mut Vec<String>,
    ) {
        let leaf = |value| Leaf { path: path.clone(), value };
        match e.value() {
            Value::Array(a) if !in_array => {
                // Who asks for a path asks for one that is UTF-8.
                let shown = String::from_utf8_lossy(path);
                if !arrays.iter().any(|a| *a == shown) {
                    arrays.push(shown.into_owned());
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
