//! `setParameter`: changes parameters at runtime and tells what they were.

use super::prelude::*;
use pando_command::log_levels;
use pando_command::params::{Kind, Param, ParamRow};
use pando_env::tls::TlsMode;
use pando_request::SetParameterArgs;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let params = &server.instance.params;
    // All names are checked before anything changes.
    let mut rows = Vec::new();
    for arg in SetParameterArgs::parse(&req)?.passthrough {
        let row = params.find(arg.name()).ok_or_else(|| {
            Error::uncoded(format!(
                "attempted to set unrecognized parameter [{}], use help:true to see options ",
                arg.name()
            ))
        })?;
        if !row.when.runtime {
            return Err(Error::uncoded(format!("not allowed to change [{}] at runtime", arg.name())));
        }
        rows.push((row, arg.value()));
    }
    if rows.is_empty() {
        return Err(Error::uncoded("no option found to set, use help:true to see options "));
    }
    let mut r = Reply::new();
    for (i, (row, v)) in rows.iter().enumerate() {
        let was = match (row.kind, row.param) {
            (Kind::Log, _) => log_levels::set(server.instance.env.log.sink(), row, v)?,
            (_, Param::clusterAuthMode) => Some(set_cluster_auth_mode(server, row, v)?),
            (_, Param::tlsMode) => Some(set_tls_mode(server, row, v)?),
            _ => Some(params.set(row, v)?),
        };
        if let Some(was) = was.filter(|_| i == 0) {
            r.body.bson("was", &was);
        }
    }
    server.instance.redact_as_told();
    // The replica-set protocol keeps a copy of its own.
    if let Some(coordinator) = server.replication.coordinator.get() {
        coordinator.tell(pando_repl::topology::Event::Params(pando_repl::params::of(params)));
    }
    Ok(r)
}

/// A running server goes from `allowTLS` to `preferTLS` to `requireTLS`, one step at a time, and never back.
fn set_tls_mode(server: &Server, row: &ParamRow, v: &Value<'_>) -> Result<pando_bson::Bson> {
    let name = v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let wanted = TlsMode::from_name(&name).ok_or_else(|| {
        Error::bad_value(format!(
            "Invalid tlsMode setting '{name}', expected one of: 'disabled', 'allowTLS', 'preferTLS', or 'requireTLS'"
        ))
    })?;
    let certificates = server.config.certificates.as_ref();
    let now = certificates.map_or(TlsMode::Disabled, |c| c.mode());
    match certificates.filter(|_| now.may_become(wanted)) {
        Some(certificates) => certificates.set_mode(wanted),
        None => {
            return Err(Error::bad_value(format!(
                "Illegal state transition for tlsMode, attempt to change from {} to {name}",
                now.name()
            )));
        }
    }
    server.instance.params.set(row, v)
}

fn set_cluster_auth_mode(server: &Server, row: &ParamRow, v: &Value<'_>) -> Result<pando_bson::Bson> {
    let name = v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let certificates = server.config.certificates.as_ref();
    let dials_tls = certificates.is_some_and(|c| c.mode().dials());
    server.config.cluster_auth.set_mode(&name, dials_tls)?;
    server.instance.params.set(row, v)
}
