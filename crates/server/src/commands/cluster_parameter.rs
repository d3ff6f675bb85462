//! `getClusterParameter` and `setClusterParameter`: parameters of the whole set.

use super::prelude::*;
use crate::settings::cluster_parameters::CHANGE_STREAM_OPTIONS;
use pando_audit::Event;
use pando_request::settings::cluster_parameters::{ClusterParameterNames, parameter_to_set};
use pando_request::{GetClusterParameterArgs, SetClusterParameterArgs};

pub(super) async fn get(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    GetClusterParameterArgs::parse(&req)?;
    let names = ClusterParameterNames::parse(&req)?;
    ctx.arguments_read()?;
    ctx.client.audit(|| Event::get_cluster_parameter(req.first().value()));
    let times = match names {
        ClusterParameterNames::All => 1,
        ClusterParameterNames::Named(names) => {
            if names.is_empty() {
                return Err(Error::bad_value(
                    "Must supply at least one cluster server parameter name to getClusterParameter",
                ));
            }
            if let Some(name) = names.iter().find(|name| **name != CHANGE_STREAM_OPTIONS) {
                return Err(Error::new(ErrorCode::NoSuchKey, format!("Unknown server parameter: {name}")));
            }
            names.len()
        }
    };
    let options = server.settings.cluster_parameters.change_streams();
    let mut r = Reply::new();
    r.body.array("clusterParameters", |a| {
        for _ in 0..times {
            a.doc(|d| options.append_to(d));
        }
    });
    Ok(r)
}

pub(super) async fn set(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    SetClusterParameterArgs::parse(&req)?;
    let (name, value) = parameter_to_set(&req)?;
    ctx.arguments_read()?;
    if server.config.cluster_role.is_some() {
        let text = "setClusterParameter can only run on mongos in sharded clusters";
        return Err(Error::new(ErrorCode::NotImplemented, text));
    }
    if !server.replication.member.is_replicated() {
        let text = "setClusterParameter cannot be run on standalones";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    server.settings.set_cluster_parameter(ctx, name, value).await?;
    Ok(Reply::new())
}
