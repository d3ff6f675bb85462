//! `logRotate`: begins a new log file.

use super::prelude::*;

pub(super) async fn run(_: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("logRotate", &[])?;
    match req.first().value() {
        Value::String("server")
        | Value::Int32(_)
        | Value::Int64(_)
        | Value::Double(_)
        | Value::Decimal128(_)
        | Value::Boolean(_) => {}
        Value::String(other) => {
            return Err(Error::new(ErrorCode::NoSuchKey, format!("Unknown log type '{other}' for rotation")));
        }
        _ => return Err(Error::type_mismatch("logRotate must be a string or a number")),
    }
    ctx.env().log.sink().rotate().map_err(|e| {
        Error::new(ErrorCode::OperationFailed, format!("Log rotation failed due to exception: {e}"))
    })?;
    Ok(Reply::new())
}
