//! `replSetGetConfig`: the configuration in force.

use super::prelude::*;
use pando_repl::ReplSetConfig;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut config = ReplSetConfig::clone(&*server.replication.member.require_config()?);
    // A reader sends it back with a change, and may not say who is new.
    let with_new = super::repl_set_get_status::truth(&req, "$_internalIncludeNewlyAdded")?;
    if !with_new {
        config.members.iter_mut().for_each(|m| m.newly_added = false);
    }
    let commitment = super::repl_set_get_status::truth(&req, "commitmentStatus")?;
    let mut r = Reply::with_capacity(1024);
    r.body.doc("config", |d| config.append_to(d));
    if commitment {
        let committed = server.replication.coordinator()?.read(|core| core.is_config_committed());
        r.body.bool("commitmentStatus", committed);
    }
    Ok(r)
}
