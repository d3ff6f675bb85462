//! The `replSet...` commands that change a running set or speak between members. A set of one member answers most
//! of them as MongoDB's primary would: there is nobody to hand over to or to sync from.

use super::prelude::*;
use pando_command::Arg;
use pando_command::args::safe_i64;
use pando_repl::data::update_position;
use std::sync::atomic::Ordering::Relaxed;

fn not_secondary(text: &'static str) -> Error {
    Error::new(ErrorCode::NotSecondary, text)
}

pub(super) async fn freeze(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.repl.require_config()?;
    Err(not_secondary("Cannot freeze node when primary or running for election, state: Primary"))
}

pub(super) async fn maintenance(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.repl.require_replication()?;
    Err(not_secondary("primaries can't modify maintenance mode"))
}

pub(super) async fn sync_from(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.repl.require_config()?;
    Err(not_secondary("primaries don't sync"))
}

pub(super) async fn abort_catch_up(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.repl.require_config()?;
    Err(Error::new(ErrorCode::IllegalOperation, "The node is not in catch-up mode."))
}

/// A primary is where a step-up leads to.
pub(super) async fn step_up(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.repl.require_config()?;
    Ok(Reply::new())
}

/// With nobody to take over, a step-down cannot be waited for; MongoDB's primary of one says the same.
pub(super) async fn step_down(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    server.repl.require_config()?;
    let secs = safe_i64(&req.first().value()).unwrap_or(60);
    let force = req.body.get("force").is_some_and(|v| v.is_truthy());
    let catch_up = match req.body.get("secondaryCatchUpPeriodSecs").and_then(|v| safe_i64(&v)) {
        Some(n) => n,
        None if force => 0,
        None => 10,
    };
    if secs < 0 {
        return Err(Error::bad_value("stepdown period must be a positive integer"));
    }
    if catch_up < 0 {
        return Err(Error::bad_value("secondaryCatchUpPeriodSecs period must be a positive or absent"));
    }
    if secs < catch_up {
        return Err(Error::bad_value("stepdown period must be longer than secondaryCatchUpPeriodSecs"));
    }
    Err(Error::new(
        ErrorCode::ExceededTimeLimit,
        "No electable secondaries caught up as of the end of the catch-up period. Please use the \
         replSetStepDown command with the argument {force: true} to force node to step down. (This set has one \
         member.)",
    ))
}

pub(super) async fn get_rbid(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.repl.require_config()?;
    let mut r = Reply::new();
    r.body.i32("rbid", server.progress.rbid());
    Ok(r)
}

/// How far members behind this one are (R-UPOS-2).
pub(super) async fn update_position(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let config = server.repl.require_config()?;
    let me = server.repl.state().self_index;
    for m in update_position::parse(req.body)? {
        if !config.members.iter().any(|c| c.id == m.member_id) {
            return Err(Error::new(
                ErrorCode::NodeNotFound,
                format!("Received replSetUpdatePosition for node with memberId {}", m.member_id),
            ));
        }
        if config.members.get(me).is_none_or(|c| c.id != m.member_id) || server.repl.is_primary() {
            server.progress.saw_member(m);
        }
    }
    Ok(Reply::new())
}

pub(super) async fn resize_oplog(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if !server.repl.is_replicated() {
        return Err(Error::new(ErrorCode::NamespaceNotFound, "oplog does not exist"));
    }
    let (mut size, mut hours) = (None, None);
    for arg in req.args("replSetResizeOplog") {
        match arg.name() {
            "size" => {
                let v = arg.value();
                let mb = match v.as_f64() {
                    Some(mb) => mb,
                    None => arg.i64()? as f64,
                };
                if mb < pando_base::limits::OPLOG_MB_MIN {
                    return Err(Error::location(
                        51024,
                        format!("BSON field 'size' value must be >= 990, actual value '{mb}'"),
                    ));
                }
                if mb > pando_base::limits::OPLOG_MB_MAX {
                    return Err(Error::location(
                        51024,
                        format!("BSON field 'size' value must be <= 1073741824, actual value '{mb}'"),
                    ));
                }
                size = Some(mb);
            }
            "minRetentionHours" => hours = Some(min_retention_hours(&arg)?),
            _ => return Err(arg.unknown()),
        }
    }
    if let Some(hours) = hours {
        server.oplog_retention_ms.store((hours * 3_600_000.0) as u64, Relaxed);
    }
    if let Some(mb) = size {
        server.set_oplog_size((mb * 1024.0 * 1024.0) as u64);
        ctx.env().log.info(pando_env::Component::Repl, 20497, "replSetResizeOplog success", |a| {
            a.f64("size", mb);
        });
    }
    Ok(Reply::new())
}

fn min_retention_hours(arg: &Arg<'_>) -> Result<f64> {
    match arg.value().as_f64() {
        Some(hours) if hours >= 0.0 => Ok(hours),
        Some(hours) => Err(Error::location(
            51024,
            format!("BSON field 'minRetentionHours' value must be >= 0, actual value '{hours}'"),
        )),
        None => Err(arg.wrong_type(&["decimal", "int", "double", "long"])),
    }
}

/// Changing a set of one member: only what keeps it a set of one member.
pub(super) async fn reconfig(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let current = server.repl.require_config()?;
    let Value::Document(d) = req.first().value() else {
        return Err(Error::bad_value("no configuration specified"));
    };
    let mut next = pando_repl::ReplSetConfig::parse(d)?;
    next.validate()?;
    let incompatible =
        |text: String| Err(Error::new(ErrorCode::NewReplicaSetConfigurationIncompatible, text));
    if next.name != current.name {
        return Err(Error::new(
            ErrorCode::InvalidReplicaSetConfig,
            format!(
                "New and old configurations differ in replica set name; old was {}, and new is {}",
                current.name, next.name
            ),
        ));
    }
    if next.version <= current.version && !req.body.get("force").is_some_and(|v| v.is_truthy()) {
        return incompatible(format!(
            "New replica set configuration version must be greater than old, but {} is not greater than {} for \
             replica set {}",
            next.version, current.version, next.name
        ));
    }
    let mut own = Vec::new();
    for (i, m) in next.members.iter().enumerate() {
        if server.is_self(ctx, &m.host).await {
            own.push(i);
        }
    }
    let [me] = own[..] else {
        return Err(Error::new(
            ErrorCode::NodeNotFound,
            format!(
                "No host described in new configuration with {{version: {}, term: {}}} for replica set {} maps to \
                 this node",
                next.version, current.term, next.name
            ),
        ));
    };
    if next.members.len() > 1 {
        return Err(Error::new(
            ErrorCode::NodeNotFound,
            "replica sets of more than one member are not supported by this server yet",
        ));
    }
    next.settings.replica_set_id = current.settings.replica_set_id;
    server.reconfigure(ctx, next, me).await?;
    Ok(Reply::new())
}

/// Asked by another node that wants to know whether an address leads here.
pub(super) async fn is_self(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.object_id("id", server.repl.process_id());
    Ok(r)
}

/// `appendOplogNote`: an entry that changes nothing.
pub(super) async fn append_note(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if !server.repl.is_replicated() {
        return Err(Error::new(
            ErrorCode::NoReplicationEnabled,
            "Must have replication set up to run \"appendOplogNote\"",
        ));
    }
    let data = match req.body.get("data") {
        Some(Value::Document(d)) => d,
        Some(v) => {
            return Err(pando_command::request::wrong_type("appendOplogNote", "data", &v, &["object"]));
        }
        None => return Err(pando_command::request::missing("appendOplogNote", "data")),
    };
    let at = server.write_noop_doc(data)?;
    ctx.set_last_op(at);
    Ok(Reply::new())
}
