//! Values may nest deeper while they are worked on than BSON that clients read.

use pando_base::limits::BSON_DEPTH_MAX;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::RawDoc;
use pando_bson::depth::is_deeper_than;

/// 15 for a computed document that nests too deep for a reply.
pub(crate) fn check_reply_depth(doc: &RawDoc) -> Result<()> {
    if !is_deeper_than(doc, BSON_DEPTH_MAX) {
        return Ok(());
    }
    let text = format!(
        "cannot convert document to BSON because it exceeds the limit of {BSON_DEPTH_MAX} levels of nesting"
    );
    Err(Error::new(ErrorCode::Overflow, text))
}
