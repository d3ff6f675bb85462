//! `_configsvrMoveRange {<ns>, [min], [max], toShard}`: a range moves to another shard, if it is not there already (SH-MIG-1).

use super::prelude::*;
use crate::config_server::shard_calls::RangeMove;
use pando_routing::ForceJumbo;

/// Returns when the range has moved. What the donor was asked for is told by who owns the range afterwards, since its answer may be lost.
pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    let body = req.body;
    let ns = fields::own_text(&req)?;
    let to = ShardId::new(fields::text(body, "toShard")?);
    let bound = |name: &str| body.get(name).map(|_| fields::object(body, name)).transpose();
    let (min, max) = (bound("min")?, bound("max")?);
    let force = ForceJumbo::parse(req.name, body)?;
    let config_server = call.config_server;
    let range = config_server.manager.range_to_move(ns, min, max, &to)?;
    if range.owner != to {
        let (min, max) = (range.min.as_deref(), range.max.as_deref());
        let (from, max_bytes) = (&range.owner, range.max_bytes);
        let asked = RangeMove { ns, from, to: &to, min, max, epoch: range.epoch, max_bytes, force };
        let how = |b: &mut DocBuilder| {
            for name in ["waitForDelete", "secondaryThrottle"] {
                body.elem(name).iter().for_each(|e| _ = b.elem(*e));
            }
        };
        let metadata = config_server.manager.metadata();
        let asking = config_server.shards.move_range(&metadata, &asked, how);
        if let Err(e) = ctx.interruptible(asking).await? {
            let now = config_server.manager.range_to_move(ns, min, max, &to);
            if !now.is_ok_and(|now| now.owner == to) {
                return Err(e);
            }
        }
    }
    call.done().await
}
