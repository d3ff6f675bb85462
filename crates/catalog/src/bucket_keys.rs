//! Indexes on the least and greatest values of a time series' buckets.
//!
//! Where arrays may hide between the two, the index counts as one over arrays: a query then does not conclude from a
//! key that no measurement of the bucket meets its condition.

use crate::keys::{FieldPath, KeyGen, KeySet};
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
