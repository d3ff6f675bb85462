//! `replSetInitiate`: makes this node a replica set. So far of one member.

use super::prelude::*;
use pando_repl::ReplSetConfig;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let Some(set_name) = server.repl.set_name() else {
        return Err(Error::new(
            ErrorCode::NoReplicationEnabled,
            "This node was not started with replication enabled.",
        ));
    };
    if server.repl.is_initiated() {
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
            let me = server.config.member_host();
            r.body.str("info2", "no configuration specified. Using a default configuration for the set");
            r.body.str("me", &me);
            ReplSetConfig::single(set_name, &me)
        }
    };
    config.validate()?;
    let mut own = Vec::new();
    for m in &config.members {
        if server.is_self(ctx, &m.host).await {
            own.push(m.host.clone());
        }
    }
    let me = config.check_initiate(set_name, |host| own.iter().any(|h| h == host))?;
    if let Some(other) = config.members.iter().find(|m| !own.contains(&m.host)) {
        return Err(Error::new(
            ErrorCode::NodeNotFound,
            format!(
                "replSetInitiate quorum check failed because not all proposed set members responded \
                 affirmatively: {} failed with sets of more than one member are not supported by this server yet",
                other.host
            ),
        ));
    }
    server.initiate(ctx, config, me).await?;
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
