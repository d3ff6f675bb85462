//! `convertToCapped` and `cloneCollectionAsCapped`: the newest documents that fit, in a capped collection.

use super::prelude::*;
use crate::writes::ByCtx;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let size = size_of(req.body)?;
    server.before_write(ctx).await?;
    let last = server.catalog.convert_to_capped(&ns, size, &ByCtx(ctx)).await?;
    server.wrote(ctx, last);
    Ok(Reply::new())
}

pub(super) async fn clone(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let from = req.ns()?;
    let to = req.body.get("toCollection").and_then(|v| v.as_str());
    let to = to.ok_or_else(|| Error::type_mismatch("'toCollection' must be of type String"))?;
    let to = Namespace::new(req.db, to)?;
    let size = size_of(req.body)?;
    server.before_write(ctx).await?;
    let last = server.catalog.clone_as_capped(&from, &to, size, &ByCtx(ctx)).await?;
    server.wrote(ctx, last);
    Ok(Reply::new())
}

fn size_of(body: &RawDoc) -> Result<i64> {
    match body.get("size").and_then(|v| v.as_f64()).map(|n| n as i64) {
        Some(n) if n < 0 => Err(Error::bad_value("size has to be >= 0")),
        Some(n) if n > 0 => Ok(n),
        _ => Err(Error::new(ErrorCode::InvalidOptions, "invalid command spec")),
    }
}
