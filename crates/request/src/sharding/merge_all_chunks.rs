//! What `mergeAllChunksOnShard` asks for, at whichever node it arrives.

use pando_base::{Error, Result};
use pando_bson::RawDoc;
use pando_bson::fields::wrong_type;
use pando_command::Request;

const MAX: &str = "maxNumberOfChunksToMerge";
const NUMBERS: &[&str] = &["long", "int", "decimal", "double"];

/// How many chunks may become fewer.
///
/// # Errors
/// 14 for what is no number, 51024 for fewer than two.
pub fn max_chunks(req: &Request<'_>) -> Result<usize> {
    let Some(v) = req.body.get(MAX) else { return Ok(usize::MAX) };
    let n = v.as_i64().ok_or_else(|| wrong_type(req.name, MAX, &v, NUMBERS))?;
    match usize::try_from(n) {
        Ok(n) if n > 1 => Ok(n),
        _ => {
            let text = format!("BSON field '{}.{MAX}' value must be > 1, actual value '{n}'", req.name);
            Err(Error::location(51_024, text))
        }
    }
}

/// The field as it was sent, for whoever it is sent on to.
pub fn append(body: &RawDoc, to: &mut pando_bson::DocBuilder) {
    if let Some(e) = body.elem(MAX) {
        to.elem(e);
    }
}
