//! How large a document may become.

use pando_base::limits::{BSON_INTERNAL_BYTES_MAX, BSON_USER_BYTES_MAX};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::RawDoc;

/// Stages may pass on documents that are too large for a reply (10334).
pub fn check_result(doc: &RawDoc) -> Result<()> {
    let size = doc.byte_len();
    if size <= BSON_INTERNAL_BYTES_MAX {
        return Ok(());
    }
    let first = doc.first().map(|e| format!(" First element: {}", e.name())).unwrap_or_default();
    let text = format!(
        "BSONObj size: {size} (0x{size:X}) is invalid. Size must be between 0 and {BSON_INTERNAL_BYTES_MAX}(16MB){first}"
    );
    Err(Error::new(ErrorCode::BSONObjectTooLarge, text))
}

/// Documents that the server may not hand out or store: code 10334 above any document's bound, 17419 above a user's.
pub(crate) fn check_size(doc: &RawDoc) -> Result<()> {
    let size = doc.byte_len();
    if size > BSON_INTERNAL_BYTES_MAX {
        let first = doc.first().map(|e| format!("{e:#}")).unwrap_or_default();
        return Err(Error::location(
            10334,
            format!(
                "BSONObj size: {size} (0x{size:X}) is invalid. Size must be between 0 and \
                 {BSON_INTERNAL_BYTES_MAX}(16MB) First element: {first}"
            ),
        ));
    }
    if size > BSON_USER_BYTES_MAX {
        return Err(Error::location(
            17419,
            format!("Resulting document after update is larger than {BSON_USER_BYTES_MAX}"),
        ));
    }
    Ok(())
}
