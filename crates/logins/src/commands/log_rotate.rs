//! `logRotate`: begins a new log file, a new file of the audit log, or both.

use super::prelude::*;

pub async fn run(node: &impl KeepsUsers, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("logRotate", &[])?;
    let (of_server, of_audit) = match req.first().value() {
        Value::String("server") => (true, false),
        Value::String("audit") => (false, true),
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_) | Value::Boolean(_) => {
            (true, true)
        }
        Value::String(other) => {
            return Err(Error::new(ErrorCode::NoSuchKey, format!("Unknown log type '{other}' for rotation")));
        }
        _ => return Err(Error::type_mismatch("logRotate must be a string or a number")),
    };
    if of_audit && !of_server && ctx.instance().audit().is_none() {
        let text = "Unknown log type 'audit' for rotation: the server was started without --auditDestination";
        return Err(Error::new(ErrorCode::NoSuchKey, text));
    }
    if of_audit {
        crate::audit::rotate(ctx.instance(), node.host())?;
    }
    if of_server {
        ctx.env().log.sink().rotate().map_err(|e| {
            Error::new(ErrorCode::OperationFailed, format!("Log rotation failed due to exception: {e}"))
        })?;
    }
    Ok(Reply::new())
}
