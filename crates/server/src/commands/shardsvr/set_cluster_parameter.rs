//! `_shardsvrSetClusterParameter {{<parameter>: value}, clusterParameterTime, timestamp}`: this shard's part when the config servers set a parameter in the
//! whole cluster, and what a set that becomes a shard takes over. `null`: as it is where nobody has set it.

use crate::commands::configsvr::call::check_majority;
use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;
use crate::settings::cluster_parameters::cluster_parameters_ns;
use pando_bson::fields::{missing, wrong_type};
use pando_request::settings::cluster_parameters::parameter_to_set;

/// # Errors
/// 225 when a newer one has been here.
pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const TIME: &str = "clusterParameterTime";
    let (name, value) = parameter_to_set(&req)?;
    let time = match req.body.get(TIME) {
        None => return Err(missing(req.name, TIME)),
        Some(Value::Timestamp(time)) => time,
        Some(v) => return Err(wrong_type(req.name, TIME, &v, &["timestamp"])),
    };
    check_majority(ctx)?;
    server.upkeep.admission.before_write(ctx).await?;
    let number = match req.body.get("timestamp") {
        Some(Value::Timestamp(number)) => Some(number),
        // Config servers of 6.0.5 send none.
        _ => None,
    };
    let ddl = Ddl::new(server, ctx)?;
    {
        let _part = ddl.take_part(&cluster_parameters_ns(), number, true).await?;
        server.settings.keep_cluster_parameter(name, value, time).await?;
    }
    // Also where it was so: what has been written before is to be on a majority.
    ctx.wrote(server.replication.last_applied());
    Ok(Reply::new())
}
