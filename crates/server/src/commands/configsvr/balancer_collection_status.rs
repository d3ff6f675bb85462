//! `_configsvrBalancerCollectionStatus`: whether a collection's chunks lie where they should (SH-BAL-2).

use super::prelude::*;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    let status = call.config_server.manager.compliance(&fields::namespace(&req)?)?;
    let mut r = Reply::new();
    r.body.f64("chunkSize", status.chunk_mb).bool("balancerCompliant", status.violation.is_none());
    if let Some(what) = status.violation {
        r.body.str("firstComplianceViolation", what);
    }
    if let Some((uuid, phase)) = status.defragmentation {
        let left = i64::try_from(call.config_server.defragmenter.left_of(uuid)).unwrap_or(i64::MAX);
        r.body.doc("details", |d| {
            d.str("currentPhase", phase.text());
            d.doc("progress", |d| _ = d.i64("remainingChunksToProcess", left));
        });
    }
    Ok(r)
}
