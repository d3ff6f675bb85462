//! `getParameter`: server parameters by name, or all with `'*'`.

use super::prelude::*;
use pando_command::log_levels;
use pando_command::params::{Kind, ParamRow};
use pando_request::GetParameterArgs;
use pando_request::settings::parameters::GetParameterOptions;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let GetParameterOptions { details, all, set_at: wanted } = GetParameterOptions::parse(&req)?;
    let named = GetParameterArgs::parse(&req)?;
    let mut r = Reply::with_capacity(if all { 16 << 10 } else { 256 });
    let mut any = false;
    for row in server.instance.params.rows() {
        let matches_set_at = match wanted {
            Some("startup") => row.when.startup,
            Some("runtime") => row.when.runtime,
            _ => true,
        };
        if (all && matches_set_at) || named.passthrough.iter().any(|e| e.name() == row.name) {
            any = true;
            append(server, &mut r.body, &row, details);
        }
    }
    if !any {
        return Err(Error::uncoded("no option found to get"));
    }
    Ok(r)
}

fn append(server: &Server, b: &mut DocBuilder, row: &ParamRow, details: bool) {
    if !details {
        return append_value(server, b, row.name, row);
    }
    b.doc(row.name, |d| {
        append_value(server, d, "value", row);
        d.bool("settableAtRuntime", row.when.runtime);
        d.bool("settableAtStartup", row.when.startup);
    });
}

fn append_value(server: &Server, b: &mut DocBuilder, name: &str, row: &ParamRow) {
    match (row.kind, row.name) {
        (Kind::Log, _) => log_levels::append(server.instance.env.log.sink(), b, name, row),
        (_, "featureCompatibilityVersion") => {
            b.doc(name, |d| {
                server.settings.feature_version().append_to(d);
            });
        }
        _ => drop(b.bson(name, &server.instance.params.get(row))),
    }
}
