//! `killOp`: asks a running operation to stop at its next check.

use super::prelude::*;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let Some(e) = req.body.elem("op") else {
        return Err(Error::new(ErrorCode::NoSuchKey, "Missing expected field \"op\""));
    };
    let number = match e.value() {
        Value::Double(d) => Some(d.fract() == 0.0 && d.abs() < 9e18),
        Value::Decimal128(d) => Some(d.to_f64().fract() == 0.0 && d.to_f64().abs() < 9e18),
        _ => None,
    };
    if number == Some(false) {
        return Err(Error::bad_value(format!(
            "Expected field \"op\" to have a value exactly representable as a 64-bit integer, but found {e:#}"
        )));
    }
    let Some(id) = pando_command::args::safe_i64(&e.value()) else {
        return Err(Error::type_mismatch(format!(
            "Expected field \"op\" to have numeric type, but found {}",
            e.value().type_name()
        )));
    };
    if !(i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&id) {
        return Err(Error::location(
            26823,
            format!("invalid op : {id}. Op ID cannot be represented with 32 bits"),
        ));
    }
    // Also when there is no such operation: it may have ended a moment ago.
    server.instance.clients.kill_op(id as u32);
    let mut r = Reply::new();
    r.body.str("info", "attempting to kill op");
    Ok(r)
}
