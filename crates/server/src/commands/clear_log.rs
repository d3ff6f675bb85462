//! `clearLog` (test command): empties what `getLog` shows.

use super::prelude::*;

pub(super) async fn run(_: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("clearLog", &[])?;
    match req.first_str("clearLog")? {
        "global" => ctx.env().log.sink().clear(),
        _ => return Err(Error::new(ErrorCode::InvalidOptions, "Only the 'global' log can be cleared")),
    }
    Ok(Reply::new())
}
