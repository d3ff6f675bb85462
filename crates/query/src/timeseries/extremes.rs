//! The least or greatest value of each field in a bucket.
//!
//! Documents and arrays are compared member by member, so that an extreme may be a value that no measurement has.

use pando_bson::compare::cmp_values;
use pando_bson::{Bson, DocBuf, DocBuilder, Document, RawDoc, Value};
use pando_oplog::diff;
use std::cmp::Ordering;

#[derive(Clone, Debug)]
pub(super) struct Extremes {
    fields: Document,
    /// `Less` for the least values.
    wanted: Ordering,
    /// As they were stored; `None` in a new bucket.
    stored: Option<DocBuf>,
    changed: bool,
}

impl Extremes {
    pub(super) fn new(wanted: Ordering) -> Extremes {
        Extremes { fields: Document::new(), wanted, stored: None, changed: true }
    }
    pub(super) fn stored(wanted: Ordering, doc: &RawDoc) -> Extremes {
        Extremes { fields: Document::from(doc), wanted, stored: Some(doc.to_buf()), changed: false }
    }
    pub(super) fn push(&mut self, name: &str, v: Bson) {
        self.fields.push(name, v);
    }
    pub(super) fn take(&mut self, name: &[u8], v: Value<'_>) {
        self.changed |= take_field(&mut self.fields, name, v, self.wanted);
    }
    pub(super) fn append_to(&self, b: &mut DocBuilder, name: &str) {
        match &self.stored {
            Some(doc) if !self.changed => b.raw_doc(name, doc),
            _ => b.raw_doc(name, &self.fields.to_raw()),
        };
    }
    /// How the stored ones differ from these.
    pub(super) fn diff(&self) -> Option<Difference> {
        let stored = self.stored.as_ref().filter(|_| self.changed)?;
        let new = self.fields.to_raw();
        Some(match diff::compute(stored, &new) {
            Some(diff) => Difference::Parts(diff),
            None => Difference::Whole(new),
        })
    }
}

/// What a `$v: 2` difference says of them.
pub(super) enum Difference {
    Parts(DocBuf),
    Whole(DocBuf),
}

fn compare(a: Value<'_>, b: &Bson) -> Ordering {
    if let Some(b) = b.scalar() {
        return cmp_values(a, b);
    }
    let mut holder = DocBuilder::new();
    holder.bson("", b);
    holder.finish().first().map_or(Ordering::Equal, |b| cmp_values(a, b.value()))
}

/// Takes `v` into `extreme`; true when that changed it.
fn take_in(extreme: &mut Bson, v: Value<'_>, wanted: Ordering) -> bool {
    if let (Bson::Document(mine), Value::Document(theirs)) = (&mut *extreme, v) {
        let mut changed = false;
        for e in theirs {
            changed |= take_field(mine, e.name_bytes(), e.value(), wanted);
        }
        return changed;
    }
    if let (Bson::Array(mine), Value::Array(theirs)) = (&mut *extreme, v) {
        let mut changed = false;
        for (at, e) in theirs.iter().enumerate() {
            changed |= match mine.get_mut(at) {
                Some(mine) => take_in(mine, e.value(), wanted),
                None => {
                    mine.push(Bson::from(e.value()));
                    true
                }
            };
        }
        return changed;
    }
    let changes = compare(v, extreme) == wanted;
    if changes {
        *extreme = Bson::from(v);
    }
    changes
}

fn take_field(d: &mut Document, name: &[u8], v: Value<'_>, wanted: Ordering) -> bool {
    match d.get_mut(name) {
        Some(mine) => take_in(mine, v, wanted),
        None => {
            d.push(name, Bson::from(v));
            true
        }
    }
}
