//! `setParameter`: changes parameters at runtime and tells what they were.

use super::prelude::*;
use pando_command::log_levels;
use pando_command::params::Kind;
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
        let was = match row.kind {
            Kind::Log => log_levels::set(server.instance.env.log.sink(), row, v)?,
            _ => match server.logins.set_mode(&server.instance, row, v)? {
                Some(was) => Some(was),
                None => Some(params.set(row, v)?),
            },
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
