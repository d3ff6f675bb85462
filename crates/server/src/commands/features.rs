//! `features`: a relic that some shells still ask for.

use super::prelude::*;
use pando_bson::shape::{Field, Shape};

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("features", &[Field::optional("oidReset", Shape::SafeBool)])?;
    let mut r = Reply::new();
    r.body.doc("js", |d| {
        d.bool("utf8", true);
    });
    let id = server.replication.member.process_id().0;
    let machine = u32::from_be_bytes([id[4], id[5], id[6], id[7]]) >> 1;
    if req.body.get("oidReset").is_some_and(|v| v.is_truthy()) {
        // The number stays: it is the process's own.
        r.body.i64("oidMachineOld", i64::from(machine));
    }
    r.body.i64("oidMachine", i64::from(machine));
    Ok(r)
}
