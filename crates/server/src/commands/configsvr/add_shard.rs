//! `_configsvrAddShard`: a set becomes a shard (SH-SHARD-1).

use super::prelude::*;
use pando_config_server::{ConnectionString, NewShard};

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let Some(connection) = req.first().value().as_str() else {
        let text = format!("The first argument to {} must be a string", req.name);
        return Err(Error::failed_to_parse(text));
    };
    let connection = ConnectionString::parse(connection)?;
    let name = fields::optional_text(req.body, "name")?.map(str::to_owned);
    let new = NewShard { connection, name };
    // Operations that were found at the step-up, and tell all shards something, come first.
    if let Some(services) = server.replication.services() {
        ctx.interruptible(services.host.ready()).await??;
    }
    let name = call.config_server.manager.add_shard(&call.interrupt, &call.client, &new).await?;
    call.settled().await?;
    let mut r = Reply::new();
    r.body.str("shardAdded", &name);
    Ok(r)
}
