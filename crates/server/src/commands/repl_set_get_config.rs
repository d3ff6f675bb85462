//! `replSetGetConfig`: the configuration in force.

use super::prelude::*;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let config = server.repl.require_config()?;
    let commitment = req.body.get("commitmentStatus").is_some_and(|v| v.is_truthy());
    let mut r = Reply::with_capacity(1024);
    r.body.doc("config", |d| config.append_to(d));
    if commitment {
        let committed = server.coordinator()?.read(|core| core.is_config_committed());
        r.body.bool("commitmentStatus", committed);
    }
    Ok(r)
}
