//! The small `replSet...` commands of operators and of other members: each is one event for the coordinator.

use super::prelude::*;
use pando_command::Arg;
use pando_command::args::safe_i64;
use pando_command::request::{missing, wrong_type};
use pando_repl::coordinator::wire;
use pando_repl::topology::message::StepDownRequest;
use pando_repl::topology::{CommandReply, Event};
use std::sync::atomic::Ordering::Relaxed;

/// Whatever the core answers, as a reply.
async fn order(server: &Server, ctx: &OpCtx, event: impl FnOnce(u64) -> Event + Send) -> Result<Reply> {
    server.replication.member.require_config()?;
    let reply = ctx.interruptible(server.replication.coordinator()?.command(event)).await??;
    let mut r = Reply::new();
    match reply {
        CommandReply::Done => {}
        CommandReply::SyncFrom { previous, warning } => {
            if let Some(host) = previous {
                r.body.str("prevSyncTarget", &host);
            }
            if let Some(text) = warning {
                r.body.str("warning", &text);
            }
        }
        CommandReply::Freeze { info, warning } => {
            if let Some(text) = info {
                r.body.str("info", text);
            }
            if let Some(text) = warning {
                r.body.str("warning", text);
            }
        }
    }
    Ok(r)
}

pub(super) async fn freeze(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let secs = safe_i64(&req.first().value()).unwrap_or(0);
    order(server, ctx, |token| Event::Freeze { token, secs }).await
}

/// `resync`: this member's data is given up and copied anew.
pub(super) async fn resync(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.replication.member.require_config()?;
    server.replication.coordinator()?.ask_resync()?;
    Ok(Reply::new())
}

pub(super) async fn maintenance(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    server.replication.member.require_replication()?;
    let on = req.first().value().is_truthy();
    order(server, ctx, |token| Event::Maintenance { token, on }).await
}

pub(super) async fn sync_from(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    server.replication.member.require_config()?;
    // What is no text is no host.
    let host = req.first().value().as_str().unwrap_or_default().to_owned();
    super::host_and_port::check(&host)?;
    order(server, ctx, |token| Event::SyncFrom { token, host }).await
}

pub(super) async fn abort_catch_up(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    order(server, ctx, |token| Event::AbortCatchUp { token }).await
}

/// On a primary there is nothing to do.
pub(super) async fn step_up(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    server.replication.member.require_config()?;
    if server.replication.member.is_primary() {
        return Ok(Reply::new());
    }
    let skip_dry_run = req.body.get("skipDryRun").is_some_and(|v| v.is_truthy());
    order(server, ctx, |token| Event::StepUp { token, skip_dry_run }).await
}

/// `replSetStepDown: secs` (R-STEP-3); waits for a member that can take over.
pub(super) async fn step_down(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    server.replication.member.require_config()?;
    let secs = match safe_i64(&req.first().value()) {
        Some(0) | None => 60,
        Some(n) => n,
    };
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
    let request = StepDownRequest { force, catch_up_ms: millis(catch_up)?, period_ms: millis(secs)? };
    order(server, ctx, |token| Event::StepDown { token, request }).await
}

fn millis(secs: i64) -> Result<i64> {
    let text = "Overflow casting from a lower-precision duration to a higher-precision duration";
    secs.checked_mul(1000).ok_or_else(|| Error::new(ErrorCode::DurationOverflow, text))
}

pub(super) async fn get_rbid(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.replication.member.require_config()?;
    let mut r = Reply::new();
    r.body.i32("rbid", server.replication.progress.rbid());
    Ok(r)
}

/// How far members behind this one are (R-UPOS-2).
pub(super) async fn update_position(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    server.replication.member.require_config()?;
    server.replication.admit_member(ctx, "replSetUpdatePosition", None).await?;
    let update = wire::parse_update_position(req.body)?;
    let coordinator = server.replication.coordinator()?;
    let said = coordinator.ask(|token| Event::PositionsReceived { token, update });
    ctx.interruptible(said).await?.waited()?;
    Ok(Reply::new())
}

pub(super) async fn resize_oplog(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if !server.replication.member.is_replicated() {
        return Err(Error::new(ErrorCode::NamespaceNotFound, "oplog does not exist"));
    }
    match req.first().value() {
        v if v.is_number() => {}
        Value::Null | Value::Undefined => return Err(missing("replSetResizeOplog", "replSetResizeOplog")),
        v => {
            let expected = ["long", "int", "decimal", "double"];
            return Err(wrong_type("replSetResizeOplog", "replSetResizeOplog", &v, &expected));
        }
    }
    let (mut size, mut hours) = (None, None);
    for arg in req.given_args("replSetResizeOplog", &["size", "minRetentionHours"]) {
        match arg.name() {
            "size" => {
                let v = arg.value();
                let mb = match v.as_f64() {
                    Some(mb) if mb.is_nan() => 0.0,
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
                        format!(
                            "BSON field 'size' value must be <= 1.07374e+09, actual value '{}'",
                            short(mb)
                        ),
                    ));
                }
                size = Some(mb);
            }
            "minRetentionHours" => hours = Some(min_retention_hours(&arg)?),
            // A real server ignores what it does not know here.
            _ => {}
        }
    }
    if let Some(hours) = hours {
        server.settings.oplog_retention_ms.store((hours * 3_600_000.0) as u64, Relaxed);
    }
    if let Some(mb) = size {
        server.upkeep.maintenance.resize_oplog((mb * 1024.0 * 1024.0) as u64)?;
        ctx.env().log.info(pando_env::Component::Repl, 20497, "replSetResizeOplog success", |a| {
            a.f64("size", mb);
        });
    }
    Ok(Reply::new())
}

/// A number in six digits, as C++ streams write it.
fn short(n: f64) -> String {
    let exponent = n.abs().log10().floor();
    if n == 0.0 || exponent < 6.0 {
        return n.to_string();
    }
    let digits = format!("{:.5}", n / 10f64.powf(exponent));
    format!("{}e+{exponent:02}", digits.trim_end_matches('0').trim_end_matches('.'))
}

fn min_retention_hours(arg: &Arg<'_>) -> Result<f64> {
    let hours = match arg.value() {
        Value::Decimal128(d) => Some(d.to_f64()),
        v => v.as_f64(),
    };
    match hours {
        Some(hours) if hours.is_nan() => Ok(0.0),
        Some(hours) if hours >= 0.0 => Ok(hours),
        Some(hours) => Err(Error::location(
            51024,
            format!("BSON field 'minRetentionHours' value must be >= 0, actual value '{hours}'"),
        )),
        None => Err(arg.wrong_type(&["long", "int", "decimal", "double"])),
    }
}

/// Asked by another node that wants to know whether an address leads here.
pub(super) async fn is_self(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.object_id("id", server.replication.member.process_id());
    Ok(r)
}

/// `appendOplogNote`: an entry that changes nothing.
pub(super) async fn append_note(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if !server.replication.member.is_replicated() {
        return Err(Error::new(
            ErrorCode::NoReplicationEnabled,
            "Must have replication set up to run \"appendOplogNote\"",
        ));
    }
    let data = match req.body.get("data") {
        Some(Value::Document(d)) => d,
        Some(v) => {
            return Err(pando_command::concern::had_wrong_type("data", "object", &v));
        }
        None => return Err(Error::new(ErrorCode::NoSuchKey, "Missing expected field \"data\"")),
    };
    check_max_cluster_time(server, &req)?;
    let at = server.replication.write_noop_doc(data)?;
    ctx.set_last_op(at);
    Ok(Reply::new())
}

/// A note that is wanted only if nothing as new has been written.
fn check_max_cluster_time(server: &Server, req: &Request<'_>) -> Result<()> {
    const NAME: &str = "maxClusterTime";
    match req.body.get(NAME) {
        None => Ok(()),
        Some(Value::Timestamp(max)) if max > server.replication.last_applied().ts => Ok(()),
        Some(Value::Timestamp(max)) => Err(Error::new(
            ErrorCode::StaleClusterTime,
            format!(
                "Requested maxClusterTime {{ ts: {max} }} is less or equal to the last primary OpTime: {{ ts: {} }}",
                server.replication.last_applied().ts
            ),
        )),
        Some(v) => Err(pando_command::concern::had_wrong_type(NAME, "timestamp", &v)),
    }
}
