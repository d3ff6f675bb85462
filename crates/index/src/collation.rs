//! The stored form of a collation: every field present, so that a later change of defaults changes nothing.

use pando_base::Result;
use pando_bson::{DocBuf, RawDoc};
use pando_query::collation::Collation;

/// Checks a collation document and fills in what it leaves out; `None` is the simple collation.
pub fn full_form(spec: &RawDoc) -> Result<Option<DocBuf>> {
    Ok(Collation::parse(&Collation::written_out(spec)?)?.map(|c| c.spec().to_buf()))
}
