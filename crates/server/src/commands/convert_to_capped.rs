//! `convertToCapped` and `cloneCollectionAsCapped`: the newest documents that fit, in a capped collection.

use super::prelude::*;
use crate::by_ctx::ByCtx;
use pando_base::limits;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let size = size_to_convert(req.body)?;
    server.before_write(ctx).await?;
    let last = server.catalog.convert_to_capped(&ns, size, &ByCtx(ctx)).await?;
    ctx.wrote(last);
    Ok(Reply::new())
}

pub(super) async fn clone(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let Value::String(name) = req.first().value() else {
        return Err(Error::type_mismatch("'cloneCollectionAsCapped' must be of type String"));
    };
    if name.is_empty() || name.contains('$') {
        let text = format!("Invalid source collection name: {name}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let from = req.ns()?;
    let to = req.body.get("toCollection").and_then(|v| v.as_str());
    let to = to.ok_or_else(|| Error::type_mismatch("'toCollection' must be of type String"))?;
    let to = Namespace::new(req.db, to)?;
    let size = size_to_clone(req.body)?;
    server.before_write(ctx).await?;
    let last = server.catalog.clone_as_capped(&from, &to, size, &ByCtx(ctx)).await?;
    ctx.wrote(last);
    Ok(Reply::new())
}

fn size_of(body: &RawDoc) -> Option<f64> {
    match body.get("size")? {
        Value::Decimal128(d) => Some(d.to_f64()),
        v => v.as_f64(),
    }
}

/// `size` as `convertToCapped` reads it: cut to whole bytes, what is out of range to the nearest bound.
fn size_to_convert(body: &RawDoc) -> Result<i64> {
    match size_of(body).map(|n| n as i64) {
        Some(n) if n != 0 => checked(n),
        _ => Err(invalid_spec()),
    }
}

/// `size` as `cloneCollectionAsCapped` reads it: numbers that no 64-bit integer holds count as the least one.
fn size_to_clone(body: &RawDoc) -> Result<i64> {
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    match size_of(body) {
        Some(n) if n.is_nan() || n >= TOO_LARGE => checked(i64::MIN),
        Some(n) if n != 0.0 => checked(n as i64),
        _ => Err(invalid_spec()),
    }
}

fn checked(size: i64) -> Result<i64> {
    match size {
        i64::MIN..0 => Err(Error::bad_value("size has to be >= 0")),
        0..=limits::CAPPED_BYTES_MAX => Ok(size),
        _ => Err(Error::bad_value("size cannot exceed 1 PB")),
    }
}

fn invalid_spec() -> Error {
    Error::uncoded("invalid command spec")
}
