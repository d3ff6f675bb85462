//! `_configsvrConfigureCollectionBalancing`: how the balancer is to treat a collection (SH-SPLIT-5).

use super::prelude::*;
use pando_bson::fields::{safe_i64, unknown, wrong_type};
use pando_command::generic_args::is_generic;
use pando_config_server::Balancing;

const NUMBERS: &[&str] = &["long", "int", "decimal", "double"];

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    let mut wanted = Balancing::default();
    for e in req.body.iter().skip(1).filter(|e| !is_generic(e.name_bytes())) {
        let v = e.value();
        let flag = || v.as_bool().ok_or_else(|| wrong_type(req.name, e.name(), &v, &["bool"]));
        match e.name() {
            "chunkSize" => {
                let mb = safe_i64(&v).ok_or_else(|| wrong_type(req.name, "chunkSize", &v, NUMBERS))?;
                wanted.chunk_mb = Some(mb);
            }
            "defragmentCollection" => wanted.defragment = Some(flag()?),
            "enableAutoSplitter" => wanted.auto_splitter = Some(flag()?),
            "enableAutoMerger" => wanted.auto_merger = Some(flag()?),
            name => return Err(unknown(req.name, name)),
        }
    }
    let of = fields::namespace(&req)?;
    call.config_server.manager.configure_balancing(&call.interrupt, &of, wanted).await?;
    call.done().await
}
