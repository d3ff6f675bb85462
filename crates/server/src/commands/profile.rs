//! `profile`: which operations of a database are written to its `system.profile`.

use super::prelude::*;
use pando_command::Param;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let Some(level) = pando_command::args::safe_i64(&req.first().value()) else {
        return Err(pando_command::request::wrong_type(
            "profile",
            "profile",
            &req.first().value(),
            &["long", "int", "decimal", "double"],
        ));
    };
    let params = &server.instance.params;
    let was = server.profiling.level(req.db);
    let (slow_ms, rate) = (params.int(Param::slowOpThresholdMs), params.double(Param::slowOpSampleRate));
    let (mut new_slow, mut new_rate) = (None, None);
    for arg in req.args("profile") {
        match arg.name() {
            "slowms" => new_slow = Some(arg.i64()?),
            "sampleRate" => new_rate = arg.value().as_f64(),
            "filter" => check_filter(&arg.value())?,
            _ => return Err(arg.unknown()),
        }
    }
    if new_rate.is_some_and(|r| !(0.0..=1.0).contains(&r)) {
        return Err(Error::bad_value("'sampleRate' must be between 0.0 and 1.0 inclusive"));
    }
    if matches!(level, 0..=2) {
        server.profiling.set_level(req.db, level as i32);
    }
    if let Some(ms) = new_slow {
        params.force_int(Param::slowOpThresholdMs, ms);
    }
    if let Some(rate) = new_rate {
        params.force_double(Param::slowOpSampleRate, rate);
    }
    let mut r = Reply::new();
    r.body.i32("was", was);
    r.body.i32("slowms", slow_ms as i32);
    r.body.f64("sampleRate", rate);
    Ok(r)
}

fn check_filter(v: &Value<'_>) -> Result<()> {
    match v {
        Value::String("unset") => Ok(()),
        Value::Document(_) => Err(Error::new(
            ErrorCode::CommandNotSupported,
            "profile filters are not supported by this server yet",
        )),
        _ => Err(Error::bad_value("Expected an object, or the string 'unset'.")),
    }
}
