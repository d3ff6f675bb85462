//! `profile`: which operations of a database are written to its `system.profile`.

use super::prelude::*;
use pando_bson::shape::Shape;
use pando_command::{Param, slow};
use pando_query::matcher::Matcher;

/// What a reply says where a filter is set.
const NOTE: &str = "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines.";

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let Some(level) = pando_command::args::safe_i64(&req.first().value()) else {
        if matches!(req.first().value(), Value::Null | Value::Undefined) {
            return Err(pando_command::request::missing("profile", "profile"));
        }
        return Err(pando_command::request::wrong_type(
            "profile",
            "profile",
            &req.first().value(),
            &["long", "int", "decimal", "double"],
        ));
    };
    let params = &server.instance.params;
    let was = server.settings.profiling.level(req.db);
    let (slow_ms, rate) = (params.int(Param::slowOpThresholdMs), params.double(Param::slowOpSampleRate));
    let had = server.settings.profiling.filter(req.db);
    let (mut new_slow, mut new_rate, mut new_filter) = (None, None, None);
    for arg in req.args("profile") {
        match arg.name() {
            "filter" => new_filter = Some(parse_filter(server, ctx, &arg.value())?),
            "slowms" | "sampleRate" if arg.is_absent() => {}
            "slowms" => new_slow = Some(arg.i64()?),
            "sampleRate" => {
                arg.check(&Shape::Number)?;
                new_rate = match arg.value() {
                    Value::Decimal128(d) => Some(d.to_f64()),
                    v => v.as_f64(),
                };
            }
            // MongoDB passes over what it does not know here.
            _ => {}
        }
    }
    if new_rate.is_some_and(|r| !r.is_nan() && !(0.0..=1.0).contains(&r)) {
        return Err(Error::bad_value("'sampleRate' must be between 0.0 and 1.0 inclusive"));
    }
    let new_rate = new_rate.map(|r| if r.is_nan() { 0.0 } else { r });
    if matches!(level, 0..=2) {
        server.settings.profiling.set_level(req.db, level as i32);
    }
    let noted = had.is_some() || matches!(new_filter, Some(Some(_)));
    if let Some(filter) = new_filter {
        server.settings.profiling.set_filter(req.db, filter)?;
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
    if let Some(filter) = had {
        r.body.raw_doc("filter", &filter.root().to_doc());
    }
    if noted {
        r.body.str("note", NOTE);
    }
    Ok(r)
}

/// The filter, or `None` where "unset" takes it away.
fn parse_filter(server: &Server, ctx: &OpCtx, v: &Value<'_>) -> Result<Option<Matcher>> {
    match v {
        Value::String("unset") => Ok(None),
        Value::Document(filter) => {
            let matcher = Matcher::parse_restricted(filter, &server.query_ctx(ctx, None, None, None)?)?;
            match matcher.fields_read().iter().find(|f| !slow::PROFILED.contains(&f.as_str())) {
                None => Ok(Some(matcher)),
                Some(name) => Err(Error::location(
                    4_910_200,
                    format!("No such field (or fields) available for profile filter: {name}"),
                )),
            }
        }
        _ => Err(Error::bad_value("Expected an object, or the string 'unset'.")),
    }
}

/// `setProfilingFilterGlobally`: filters are set by database here.
pub(super) async fn globally(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let text = "setProfilingFilterGlobally command requires query knob to be enabled";
    Err(Error::location(7_283_301, text))
}
