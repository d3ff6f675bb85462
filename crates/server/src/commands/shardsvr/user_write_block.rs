//! `_shardsvrSetUserWriteBlockMode {1, global, phase, timestamp}`: this shard's part when the config servers block the writes of users in the whole
//! cluster, or let them in again (SYS-265).

use crate::commands::configsvr::call::check_majority;
use crate::commands::prelude::*;
use crate::commands::shardsvr::create_collection::number_of;
use crate::commands::shardsvr::ddl::Ddl;
use crate::settings::user_writes::Phase;
use pando_bson::fields::{missing, wrong_type};

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let block = match req.body.get("global") {
        None => return Err(missing(req.name, "global")),
        Some(Value::Boolean(block)) => block,
        Some(v) => return Err(wrong_type(req.name, "global", &v, &["bool"])),
    };
    let phase = match req.body.get("phase") {
        None => return Err(missing(req.name, "phase")),
        Some(Value::String(phase)) => Phase::parse(phase).ok_or_else(|| unknown(req.name, phase))?,
        Some(v) => return Err(wrong_type(req.name, "phase", &v, &["string"])),
    };
    check_majority(ctx)?;
    server.upkeep.admission.before_write(ctx).await?;
    Ddl::new(server, ctx)?.block_user_writes(block, phase, number_of(&req)?).await?;
    Ok(Reply::new())
}

fn unknown(command: &str, phase: &str) -> Error {
    Error::bad_value(format!("Enumeration value '{phase}' for field '{command}.phase' is not a valid value."))
}
