//! The different values of a field, as `distinct` tells them.

use crate::QueryCtx;
use crate::collation::Collation;
use pando_base::{Error, Result, limits, patience};
use pando_bson::compare::cmp_elems;
use pando_bson::keystring::{Directions, KeyBuilder};
use pando_bson::{Bson, DocBuf, DocBuilder, Elem, ElementType, RawDoc, Value};
use std::collections::BTreeMap;

/// What looking up one value takes.
const DISTINCT_STEPS: usize = 4;
/// Type, name and terminator of an array's element.
const ELEMENT_FRAME: usize = 8;

/// Values met so far by their key bytes, which order them.
pub struct DistinctValues<'k> {
    key: &'k str,
    pub ctx: QueryCtx,
    /// Of strings that are equal the first that is met stands for all, also within a document: stages have no order of their own.
    as_met: bool,
    seen: BTreeMap<Box<[u8]>, Bson>,
    pub bytes: usize,
    scratch: KeyBuilder,
}

impl<'k> DistinctValues<'k> {
    pub fn new(key: &'k str) -> DistinctValues<'k> {
        DistinctValues {
            key,
            ctx: QueryCtx::default(),
            as_met: false,
            seen: BTreeMap::new(),
            bytes: 0,
            scratch: KeyBuilder::new(Directions(0)),
        }
    }
    /// Values from stages; a view of measurements has the collation of who asks.
    pub fn on_view(&mut self, ctx: QueryCtx, collation: Option<&RawDoc>) -> Result<()> {
        self.ctx = match collation {
            Some(spec) => ctx.with_collation(Collation::parse(spec)?),
            None => ctx,
        };
        self.as_met = true;
        Ok(())
    }
    pub fn add(&mut self, doc: &RawDoc) -> Result<()> {
        if self.as_met || self.ctx.collation.is_none() {
            return each_at(doc, self.key, &mut |e| self.see(e));
        }
        // Of strings that are equal in one document, the first of the simple order stands for all.
        let mut all = Vec::new();
        each_at(doc, self.key, &mut |e| {
            all.push(e);
            Ok(())
        })?;
        all.sort_by(|a, b| cmp_elems(a, b, None));
        all.into_iter().try_for_each(|e| self.see(e))
    }

    /// All of them in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Bson> {
        self.seen.values()
    }

    fn see(&mut self, e: Elem<'_>) -> Result<()> {
        patience::spend(DISTINCT_STEPS)?;
        let v = e.value();
        self.scratch.clear();
        // Unlike in an index, a symbol is equal to the string under any collation.
        let v_key = if let Value::Symbol(s) = v { Value::String(s) } else { v };
        self.scratch.append_with(v_key, Collation::order(&self.ctx.collation));
        if self.seen.contains_key(self.scratch.bytes()) {
            return Ok(());
        }
        self.seen.insert(self.scratch.bytes().into(), Bson::from(v));
        self.bytes += e.data().len() + ELEMENT_FRAME;
        if self.bytes > limits::BSON_USER_BYTES_MAX {
            return Err(Error::location(17217, "distinct too big, 16mb cap"));
        }
        Ok(())
    }
}

/// Calls `each` with every value at `path`; arrays count as their elements. A component that is a number picks an
/// element of an array.
fn each_at<'d>(doc: &'d RawDoc, path: &str, each: &mut dyn FnMut(Elem<'d>) -> Result<()>) -> Result<()> {
    if let Some(e) = doc.elem(path) {
        return match e.value() {
            Value::Array(items) => items.iter().try_for_each(each),
            _ => each(e),
        };
    }
    let Some((head, rest)) = path.split_once('.') else { return Ok(()) };
    let Some(e) = doc.elem(head) else { return Ok(()) };
    match e.ty {
        ElementType::Document => each_at(RawDoc::trusted(e.data()), rest, each),
        ElementType::Array => {
            let items = RawDoc::trusted(e.data());
            let next = rest.split('.').next().unwrap_or("");
            if !next.is_empty() && next.bytes().all(|b| b.is_ascii_digit()) {
                return each_at(items, rest, each);
            }
            for item in items.iter().filter(|i| i.ty == ElementType::Document) {
                each_at(RawDoc::trusted(item.data()), rest, each)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What of a document is needed to find the values of a field: the projection on the first name of its path.
pub fn projection_on_root(key: &str) -> DocBuf {
    let root = key.split('.').next().unwrap_or_default();
    let mut only = DocBuilder::new();
    only.i32(root, 1);
    if root != "_id" {
        only.i32("_id", 0);
    }
    only.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn values(d: pando_bson::Document, path: &str) -> Vec<Bson> {
        let d = d.to_raw();
        let mut out = Vec::new();
        each_at(&d, path, &mut |e| {
            out.push(Bson::from(e.value()));
            Ok(())
        })
        .unwrap();
        out
    }

    #[test]
    fn arrays_count_as_their_elements_at_every_level() {
        let d = || doc! { "b": { "c": [1, { "d": 2 }, { "d": [3, 4] }] }, "x": 5 };
        assert_eq!(values(d(), "b.c.d"), vec![Bson::from(2), Bson::from(3), Bson::from(4)]);
        assert_eq!(values(d(), "b.c.0"), vec![Bson::from(1)]);
        assert_eq!(values(d(), "b.c").len(), 3);
        assert_eq!(values(d(), "x"), vec![Bson::from(5)]);
        assert_eq!(values(d(), "x.y"), vec![]);
    }
}
