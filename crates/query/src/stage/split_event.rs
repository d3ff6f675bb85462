//! `$changeStreamSplitLargeEvent`: the last stage of a change stream, which carries it out itself.

use super::sources::PipelineSource;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, Value};

pub(super) const NAME: &str = "$changeStreamSplitLargeEvent";

/// Whether `e` is that stage.
pub(super) fn parse(e: Elem<'_>, source: &PipelineSource) -> Result<bool> {
    if e.name() != NAME {
        return Ok(false);
    }
    if !matches!(e.value(), Value::Document(spec) if spec.is_empty()) {
        return Err(Error::location(7_182_800, format!("{NAME} spec should be an empty object")));
    }
    if !matches!(source, PipelineSource::ChangeStream(_)) {
        let text = format!("{NAME} can only be used in a $changeStream pipeline");
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    Ok(true)
}

/// As it is written.
pub(super) fn text() -> DocBuf {
    let mut b = DocBuilder::new();
    b.doc(NAME, |_| {});
    b.finish()
}

pub(super) fn not_last() -> Error {
    Error::location(7_182_802, format!("{NAME} must be the last stage in the pipeline"))
}
