//! MongoDB collations on ICU4X.

use pando_base::Result;
use pando_bson::{RawDoc, StringOrder};
use std::cmp::Ordering;
use std::sync::Arc;

/// A non-simple collation: how strings compare and which bytes stand for them in index keys.
#[derive(Debug)]
pub struct Collation {
    _private: (),
}

impl Collation {
    /// Parses a `collation` document; `{locale: "simple"}` gives `None`.
    pub fn parse(_spec: &RawDoc) -> Result<Option<Arc<Collation>>> {
        Err(pando_base::Error::bad_value("collation is not built in yet"))
    }
    /// A collation (or none) as the order that value comparison takes.
    pub fn order(collation: &Option<Arc<Collation>>) -> Option<&dyn StringOrder> {
        collation.as_deref().map(|c| c as &dyn StringOrder)
    }
}

impl StringOrder for Collation {
    fn cmp(&self, a: &str, b: &str) -> Ordering {
        a.cmp(b)
    }
    fn sort_key(&self, s: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(s.as_bytes());
    }
}
