//! Pipeline updates: stages over one document, logged as the difference when that is shorter.

use super::{LogForm, Target, UpdateOutcome, check_depth, keep_id};
use crate::ctx::QueryCtx;
use crate::stage::{Transform, parse_update_stage};
use pando_base::Result;
use pando_bson::{DocBuf, RawDoc};
use pando_oplog::diff;

pub(super) fn parse(stages: &RawDoc, ctx: &QueryCtx) -> Result<Vec<Transform>> {
    let mut out = stages.iter().map(|e| parse_update_stage(e.value(), ctx)).collect::<Result<Vec<_>>>()?;
    for (written, stage) in stages.iter().zip(&mut out) {
        // What is wrong with constants alone is only an error once a document is updated.
        if stage.optimize(ctx).is_err() {
            *stage = parse_update_stage(written.value(), ctx)?;
        }
    }
    Ok(out)
}

pub(super) fn apply(
    stages: &[Transform],
    old: &RawDoc,
    target: Target,
    ctx: &QueryCtx,
) -> Result<UpdateOutcome> {
    let mut new: Option<DocBuf> = None;
    for stage in stages {
        new = Some(stage.apply(new.as_deref().unwrap_or(old), ctx)?);
    }
    let Some(new) = new.filter(|new| new.as_bytes() != old.as_bytes()) else {
        return Ok(UpdateOutcome::unchanged());
    };
    let new = keep_id(old, &new, target)?;
    check_depth(&new)?;
    let log = diff::compute(old, &new).map_or(LogForm::Replacement, LogForm::Delta);
    Ok(UpdateOutcome { noop: false, new_doc: new, log })
}
