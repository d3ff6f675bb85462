//! `validate`: are a collection and its indexes what they claim to be?

use super::prelude::*;
use crate::writes::ByCtx;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = match req.first().value() {
        Value::Binary { .. } => server.ns_or_uuid(&req)?,
        _ => req.ns_of_ddl()?,
    };
    let flag = |name: &str| req.body.get(name).is_some_and(|v| v.is_truthy());
    let refuse = |text: &'static str| Err(Error::new(ErrorCode::InvalidOptions, text));
    let (full, background, repair) = (flag("full"), flag("background"), flag("repair"));
    if full && background {
        return refuse(
            "Running the validate command with both { background: true } and { full: true } is not supported.",
        );
    }
    if repair && server.repl.is_replicated() {
        return refuse(
            "Running the validate command with { repair: true } can only be performed in standalone mode.",
        );
    }
    if repair {
        return Err(Error::new(ErrorCode::CommandNotSupported, "this server does not repair collections"));
    }
    let report = server.catalog.validate(&ns, &ByCtx(ctx)).await?;
    let mut r = Reply::with_capacity(1024);
    report.append_to(&mut r.body, &ns);
    Ok(r)
}
