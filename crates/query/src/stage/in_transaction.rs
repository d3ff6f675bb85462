//! Which stages go with a transaction.

use pando_base::{Error, ErrorCode, Result};
use pando_bson::RawDoc;

/// Stages that do not go with a transaction (263), those of pipelines within stages included.
pub fn check_in_transaction(pipeline: &RawDoc) -> Result<()> {
    for stage in pipeline.iter().filter_map(|e| e.value().as_doc()?.first()) {
        let text = match stage.name() {
            name @ ("$out" | "$merge") => format!("{name} cannot be used in a transaction"),
            name @ ("$collStats" | "$indexStats" | "$unionWith") => {
                format!("Stage not supported inside of a multi-document transaction: {name}")
            }
            name @ ("$currentOp" | "$changeStream" | "$listLocalSessions" | "$listSessions"
            | "$planCacheStats") => format!(
                "Operation not permitted in transaction :: caused by :: Aggregation stage {name} cannot run within a \
                 multi-document transaction."
            ),
            "$facet" => {
                let within = stage.value().as_doc().into_iter().flat_map(RawDoc::iter);
                within.filter_map(|e| e.value().as_array()).try_for_each(check_in_transaction)?;
                continue;
            }
            "$lookup" => {
                let within = stage.value().as_doc().and_then(|d| d.get("pipeline")?.as_array());
                within.map_or(Ok(()), check_in_transaction)?;
                continue;
            }
            _ => continue,
        };
        return Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text));
    }
    Ok(())
}
