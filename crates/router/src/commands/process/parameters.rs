//! `getParameter` and `setParameter`: of this process.

use super::super::prelude::*;
use pando_command::log_levels;
use pando_command::params::{Kind as Type, ParamRow};
use pando_request::settings::parameters::GetParameterOptions;
use pando_request::{GetParameterArgs, SetParameterArgs};

pub(in crate::commands) async fn get(router: &Router, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let GetParameterOptions { details, all, set_at } = GetParameterOptions::parse(&req)?;
    let named = GetParameterArgs::parse(&req)?;
    let mut r = Reply::new();
    let mut any = false;
    for row in router.instance.params.rows() {
        let settable = match set_at {
            Some("startup") => row.when.startup,
            Some("runtime") => row.when.runtime,
            _ => true,
        };
        if (all && settable) || named.passthrough.iter().any(|e| e.name() == row.name) {
            any = true;
            append(router, &mut r.body, &row, details);
        }
    }
    match any {
        true => Ok(r),
        false => Err(Error::uncoded("no option found to get")),
    }
}

fn append(router: &Router, b: &mut DocBuilder, row: &ParamRow, details: bool) {
    if !details {
        return append_value(router, b, row.name, row);
    }
    b.doc(row.name, |d| {
        append_value(router, d, "value", row);
        d.bool("settableAtRuntime", row.when.runtime).bool("settableAtStartup", row.when.startup);
    });
}

fn append_value(router: &Router, b: &mut DocBuilder, name: &str, row: &ParamRow) {
    match (row.kind, row.name) {
        (Type::Log, _) => log_levels::append(router.instance.env.log.sink(), b, name, row),
        (_, "featureCompatibilityVersion") => drop(b.doc(name, |d| _ = d.str("version", "7.0"))),
        _ => drop(b.bson(name, &router.instance.params.get(row))),
    }
}

pub(in crate::commands) async fn set(router: &Router, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let params = &router.instance.params;
    let mut rows = Vec::new();
    // All names are checked before anything changes.
    for arg in SetParameterArgs::parse(&req)?.passthrough {
        let name = arg.name();
        let unknown =
            format!("attempted to set unrecognized parameter [{name}], use help:true to see options ");
        let row = params.find(name).ok_or_else(|| Error::uncoded(unknown))?;
        if !row.when.runtime {
            return Err(Error::uncoded(format!("not allowed to change [{name}] at runtime")));
        }
        rows.push((row, arg.value()));
    }
    if rows.is_empty() {
        return Err(Error::uncoded("no option found to set, use help:true to see options "));
    }
    let mut r = Reply::new();
    for (i, (row, v)) in rows.iter().enumerate() {
        let was = match row.kind {
            Type::Log => log_levels::set(router.instance.env.log.sink(), row, v)?,
            _ => match router.logins.set_mode(&router.instance, row, v)? {
                Some(was) => Some(was),
                None => Some(params.set(row, v)?),
            },
        };
        if let Some(was) = was.filter(|_| i == 0) {
            r.body.bson("was", &was);
        }
    }
    router.instance.redact_as_told();
    Ok(r)
}
