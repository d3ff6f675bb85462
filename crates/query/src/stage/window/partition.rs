//! The documents of one partition, in order.

use super::store::Store;
use crate::expr::{FieldPath, Val};
use crate::number::Number;
use crate::stage::Row;
use pando_base::Result;
use pando_bson::Value;

pub(super) struct Partition {
    rows: Store,
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
    pub(super) fn new(rows: Store, sort_path: Option<FieldPath>) -> Partition {
        Partition { rows, sort_path, steps: 0 }
    }
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
    pub(super) fn row(&self, at: usize) -> Result<Row> {
        self.rows.row(at)
    }
    /// What document `at` is sorted by, when that is one field.
    pub(super) fn sort_value(&self, at: usize) -> Result<Val<'static>> {
        let Some(path) = &self.sort_path else { return Ok(Val::Missing) };
        Ok(path.of_doc(self.row(at)?.doc()).into_owned())
    }
    pub(super) fn place(&self, at: usize) -> Result<Option<Place>> {
        Ok(self.sort_value(at)?.value().and_then(|v| match v {
            Value::DateTime(ms) => Some(Place::Date(ms)),
            v => Number::of(v).map(Place::Number),
        }))
    }
}
