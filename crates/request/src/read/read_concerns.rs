//! Which read concerns stages go with. That is told of stages at any depth, before any of them is parsed.

use pando_base::{Error, ErrorCode, Result};
use pando_bson::RawDoc;
use pando_command::{OpCtx, ReadLevel};

/// 72 when a stage does not go with the read concern that was given.
pub fn check(ctx: &OpCtx, pipeline: &RawDoc) -> Result<()> {
    // What does not go with a transaction has an error of its own.
    if !ctx.read_concern.given || ctx.in_txn() {
        return Ok(());
    }
    for stage in pipeline.iter().filter_map(|e| e.value().as_doc()?.first()) {
        let spec = stage.value().as_doc().into_iter().flat_map(RawDoc::iter);
        match stage.name() {
            "$facet" => spec.filter_map(|e| e.value().as_array()).try_for_each(|inner| check(ctx, inner))?,
            "$lookup" | "$unionWith" => spec
                .filter(|e| e.name() == "pipeline")
                .filter_map(|e| e.value().as_array())
                .try_for_each(|inner| check(ctx, inner))?,
            name => check_stage(ctx, name)?,
        }
    }
    Ok(())
}

fn check_stage(ctx: &OpCtx, name: &str) -> Result<()> {
    let level = ctx.read_concern.level();
    let why = match name {
        // What shows this process's own doings is nothing that others could have agreed on.
        "$currentOp" | "$listLocalSessions" | "$planCacheStats" if level != ReadLevel::Local => {
            only(name, "local", level)
        }
        "$changeStream" if level != ReadLevel::Majority => only(name, "majority", level),
        "$out" | "$merge" if level == ReadLevel::Linearizable => {
            format!("{name} cannot be used with a 'linearizable' read concern level")
        }
        _ => return Ok(()),
    };
    let given = ctx.read_concern.shell_text();
    let text = format!("Command aggregate does not support {given} :: caused by :: {why}");
    Err(Error::new(ErrorCode::InvalidOptions, text))
}

fn only(name: &str, wanted: &str, level: ReadLevel) -> String {
    format!(
        "Aggregation stage {name} cannot run with a readConcern other than '{wanted}'. Current readConcern: {}",
        level.text()
    )
}
