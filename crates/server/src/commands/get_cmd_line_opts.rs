//! `getCmdLineOpts`: how the process was started.

use super::prelude::*;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("getCmdLineOpts", &[])?;
    let mut r = Reply::with_capacity(1024);
    r.body.array("argv", |a| {
        for arg in &server.config.argv {
            a.str(arg);
        }
    });
    r.body.raw_doc("parsed", &server.config.parsed);
    Ok(r)
}
