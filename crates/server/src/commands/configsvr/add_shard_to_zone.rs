//! `_configsvrAddShardToZone`: a shard joins a zone (SH-BAL-6).

use super::prelude::*;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    let (shard, zone) = (fields::own_text_of_old(&req)?, fields::text(req.body, "zone")?);
    call.config_server.manager.add_shard_to_zone(&call.interrupt, shard, zone).await?;
    call.done().await
}
