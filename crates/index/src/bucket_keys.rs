//! Indexes on the least and greatest values of a time series' buckets.
//!
//! Where arrays may hide between the two, the index counts as one over arrays: a query then does not conclude from a
//! key that no measurement of the bucket meets its condition.

use crate::key_set::KeySet;
use crate::keys::{FieldPath, KeyGen};
use pando_base::{Error, ErrorCode};
use pando_bson::RawDoc;
use pando_query::timeseries::hides_values;

/// What is behind `control.min` or `control.max`.
fn measured(f: &FieldPath) -> Option<&[Box<str>]> {
    match &f.parts[..] {
        [control, end, path @ ..] if &**control == "control" && matches!(&**end, "min" | "max") => {
            (!path.is_empty()).then_some(path)
        }
        _ => None,
    }
}

impl KeyGen {
    /// What is wrong with an array at both ends, as users of a time series know it.
    #[cold]
    pub(crate) fn of_buckets(&self, e: Error) -> Error {
        match e.code == ErrorCode::CannotIndexParallelArrays
            && self.fields.iter().any(|f| measured(f).is_some())
        {
            true => Error::location(5_930_501, "Indexed measurement field contains an array value"),
            false => e,
        }
    }

    #[inline]
    pub(crate) fn mark_hidden_values(&self, doc: &RawDoc, out: &mut KeySet) {
        for (i, f) in self.fields.iter().enumerate() {
            if let Some(path) = measured(f)
                && hides_values(doc, path)
            {
                out.mark(self.fields.len(), i, f.parts.len() - 1);
            }
        }
    }
}
