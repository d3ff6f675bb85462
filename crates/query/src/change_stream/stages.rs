//! What may stand behind a `$changeStream`.

use pando_base::{Error, ErrorCode, Result};
use pando_bson::RawDoc;

/// Stages that may follow: those that look at one event at a time.
const STAGES: &[&str] = &[
    "$addFields",
    "$changeStreamSplitLargeEvent",
    "$match",
    "$project",
    "$redact",
    "$replaceRoot",
    "$replaceWith",
    "$set",
    "$unset",
];

/// 20 where another stage follows the `$changeStream` that leads a pipeline.
pub fn check_stages(pipeline: &RawDoc) -> Result<()> {
    let stages = pipeline.iter().skip(1).filter_map(|e| e.value().as_doc()?.first());
    if let Some(name) = stages.map(|e| e.name()).find(|name| !STAGES.contains(name)) {
        return Err(Error::new(
            ErrorCode::IllegalOperation,
            format!("{name} is not permitted in a $changeStream pipeline"),
        ));
    }
    Ok(())
}
