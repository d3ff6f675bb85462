//! `replSetInitiate`: makes this node, and the others it names, a replica set (R-CONF-4).

use super::prelude::*;
use pando_command::roles::ClusterRole;
use pando_repl::ReplSetConfig;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let member = &server.replication.member;
    if !member.is_replicated() {
        return Err(Error::new(
            ErrorCode::NoReplicationEnabled,
            "This node was not started with replication enabled.",
        ));
    }
    let set_name = member.given_name();
    if member.is_initiated() {
        return Err(Error::new(ErrorCode::AlreadyInitialized, "already initialized"));
    }
    let mut r = Reply::new();
    // Anything but a non-empty document asks for the default: this node alone.
    let config = match req.first().value() {
        Value::Document(d) if !d.is_empty() => {
            let mut config = ReplSetConfig::parse(&with_version(d))?;
            config.term = 0;
            config
        }
        _ => {
            let Some(set_name) = set_name else {
                let text = "A config must be provided when started in serverless mode.";
                return Err(Error::new(ErrorCode::InvalidReplicaSetConfig, text));
            };
            let me = server.config.member_host();
            r.body.str("info2", "no configuration specified. Using a default configuration for the set");
            r.body.str("me", &me);
            ReplSetConfig::single(set_name, &me)
        }
    };
    config.validate()?;
    let own = server.replication.own_members(&config).await;
    super::repl_set_reconfig::check_one_of_them(&config, &own)?;
    let me = config.check_initiate(set_name, |host| own.iter().any(|i| config.members[*i].host == host))?;
    if config.configsvr && server.config.cluster_role != Some(ClusterRole::Config) {
        let text = "Nodes being used for config servers must be started with the --configsvr flag";
        return Err(Error::new(ErrorCode::InvalidReplicaSetConfig, text));
    }
    ctx.check_interrupt()?;
    server.replication.initiate(config, me).await?;
    Ok(r)
}

/// `version` may be left out of the first configuration.
fn with_version(d: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::with_capacity(d.byte_len() + 16);
    b.elems_of(d);
    if d.elem("version").is_none() {
        b.i32("version", 1);
    }
    b.finish()
}
