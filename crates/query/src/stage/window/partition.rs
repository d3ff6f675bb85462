//! The documents of one partition, in order.

use crate::expr::{FieldPath, Val};
use crate::number::Number;
use crate::stage::Row;
use pando_bson::Value;

pub(super) struct Partition {
    pub(super) rows: Vec<Row>,
    sort_path: Option<FieldPath>,
    /// Documents looked at since the last yield.
    pub(super) steps: usize,
}

/// A position on the axis that the documents are sorted along.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Number(Number),
    /// Milliseconds since the Unix epoch.
    Date(i64),
}

impl Partition {
    pub(super) fn new(rows: Vec<Row>, sort_path: Option<FieldPath>) -> Partition {
        Partition { rows, sort_path, steps: 0 }
    }
    /// What document `at` is sorted by, when that is one field.
    pub(super) fn sort_value(&self, at: usize) -> Val<'_> {
        match &self.sort_path {
            Some(path) => path.of_doc(self.rows[at].doc()),
            None => Val::Missing,
        }
    }
    pub(super) fn place(&self, at: usize) -> Option<Place> {
        match self.sort_value(at).value()? {
            Value::DateTime(ms) => Some(Place::Date(ms)),
            v => Number::of(v).map(Place::Number),
        }
    }
}
