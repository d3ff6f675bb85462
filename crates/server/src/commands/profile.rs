//! `profile`: which operations of a database are written to its `system.profile`.

use super::prelude::*;
use pando_command::{Param, slow};
use pando_query::matcher::{Matcher, Place};
use pando_query::projection::check_path;
use pando_request::ProfileArgs;

/// What a reply says where a filter is set.
const NOTE: &str = "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines.";

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = ProfileArgs::parse(&req)?;
    let level = ProfileArgs::level(&req)?;
    let new_rate = args.rate()?;
    let new_filter =
        args.new_filter().map(|f| f.map(|f| parse_filter(server, ctx, f)).transpose()).transpose()?;
    let params = &server.instance.params;
    let was = server.settings.profiling.level(req.db);
    let (slow_ms, rate) = (params.int(Param::slowOpThresholdMs), params.double(Param::slowOpSampleRate));
    let had = server.settings.profiling.filter(req.db);
    if matches!(level, 0..=2) {
        server.settings.profiling.set_level(req.db, level as i32);
    }
    let noted = had.is_some() || matches!(new_filter, Some(Some(_)));
    if let Some(filter) = new_filter {
        server.settings.profiling.set_filter(req.db, filter)?;
    }
    if let Some(ms) = args.slow_ms {
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

/// A filter reads only what is written of an operation.
fn parse_filter(server: &Server, ctx: &OpCtx, filter: &RawDoc) -> Result<Matcher> {
    let matcher =
        Matcher::parse_in(Place::Document, filter, &server.crud.reads.query_ctx(ctx, None, None, None)?)?;
    check_paths(filter)?;
    let read = matcher.fields_read();
    // The empty name is the whole record's, and matches nothing.
    match read.iter().find(|f| !f.is_empty() && !slow::PROFILED.contains(&f.as_str())) {
        None => Ok(matcher),
        Some(name) => Err(Error::location(
            4_910_200,
            format!("No such field (or fields) available for profile filter: {name}"),
        )),
    }
}

/// Names have to be paths, but for the empty one.
fn check_paths(filter: &RawDoc) -> Result<()> {
    for e in filter {
        match (e.name(), e.value()) {
            (name, Value::Array(list)) if name.starts_with('$') => {
                list.iter().filter_map(|e| e.value().as_doc()).try_for_each(check_paths)?;
            }
            (name, _) if name.is_empty() || name.starts_with('$') => {}
            (name, _) => check_path(name)?,
        }
    }
    Ok(())
}

/// `setProfilingFilterGlobally`: filters are set by database here.
pub(super) async fn globally(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let text = "setProfilingFilterGlobally command requires query knob to be enabled";
    Err(Error::location(7_283_301, text))
}
