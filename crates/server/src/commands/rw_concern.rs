//! `getDefaultRWConcern`, `setDefaultRWConcern` (R-DWC-1..6).

use super::prelude::*;
use crate::settings::rw_defaults::{ClusterWide, append_write_concern};
use pando_command::{Node, ReadConcern, ReadLevel, W, WriteConcern};
use pando_repl::await_replication;
use pando_request::{GetDefaultRwConcernArgs, SetDefaultRwConcernArgs};

fn on_a_set(server: &Server, command: &str) -> Result<()> {
    // What counts in a cluster is kept by its config servers (R-DWC-5).
    if server.sharding.is_some() && server.config_server.is_none() {
        return Err(Error::location(51301, format!("'{command}' is not supported on shard nodes.")));
    }
    if server.replication.member.is_replicated() {
        return Ok(());
    }
    Err(Error::location(51300, format!("'{command}' is not supported on standalone nodes.")))
}

pub(super) async fn get(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    on_a_set(server, "getDefaultRWConcern")?;
    let in_memory = GetDefaultRwConcernArgs::parse(&req)?.in_memory == Some(true);
    let mut r = Reply::new();
    append(server, &mut r.body, in_memory);
    Ok(r)
}

/// The defaults in force, with their sources; part of `serverStatus` too.
pub(super) fn append(server: &Server, b: &mut DocBuilder, in_memory: bool) {
    let set = server.settings.rw_defaults.get();
    b.doc("defaultReadConcern", |d| {
        d.str("level", set.read_level.unwrap_or("local"));
    });
    let wc = server.default_write_concern();
    // Where arbiters make "w: 1" the implicit default, MongoDB shows no write concern at all.
    if set.write.is_some() || wc.w == W::Majority {
        b.doc("defaultWriteConcern", |d| append_write_concern(d, &wc));
    }
    if let Some(ts) = set.update_op_time {
        b.timestamp("updateOpTime", ts);
        b.date("updateWallClockTime", set.update_wall_ms);
    }
    b.str("defaultWriteConcernSource", if set.write.is_some() { "global" } else { "implicit" });
    b.str("defaultReadConcernSource", if set.read_level.is_some() { "global" } else { "implicit" });
    if in_memory {
        b.bool("inMemory", true);
    }
    b.date("localUpdateWallClockTime", set.local_wall_ms.max(server.instance.started_wall_ms));
}

pub(super) async fn set(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    on_a_set(server, "setDefaultRWConcern")?;
    let args = SetDefaultRwConcernArgs::parse(&req)?;
    let read = args.read.map(|d| ReadConcern::parse(&Value::Document(d))).transpose()?;
    let write = args.write.map(|d| WriteConcern::parse(&Value::Document(d)).map(|wc| (d, wc))).transpose()?;
    if read.is_none() && write.is_none() {
        return Err(Error::bad_value(
            "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present",
        ));
    }
    let mut next = ClusterWide::clone(&server.settings.rw_defaults.get());
    if let Some(rc) = read {
        next.read_level = match rc.level {
            None => None,
            Some(level @ (ReadLevel::Local | ReadLevel::Available | ReadLevel::Majority)) => {
                Some(level.text())
            }
            Some(level) => {
                return Err(Error::bad_value(format!(
                    "level: '{}' is not suitable for the default read concern",
                    level.text()
                )));
            }
        };
    }
    if let Some((doc, wc)) = write {
        if doc.is_empty() {
            if next.write.is_some() {
                return Err(Error::new(
                    ErrorCode::IllegalOperation,
                    "The global default write concern cannot be unset once it is set.",
                ));
            }
        } else {
            check_default_write(server, &wc)?;
            next.write = Some(wc);
        }
    }
    let now = ctx.env().clock.wall_ms();
    next.update_op_time = Some(server.storage.log().clock());
    next.update_wall_ms = now;
    next.local_wall_ms = now;
    server.settings.save_rw_defaults(ctx, &next).await?;
    server.settings.rw_defaults.set(next);
    let mut r = Reply::new();
    append(server, &mut r.body, false);
    Ok(r)
}

fn check_default_write(server: &Server, wc: &WriteConcern) -> Result<()> {
    if wc.w == W::Nodes(0) {
        let text = "Unacknowledged write concern is not suitable for the default write concern";
        return Err(Error::bad_value(text));
    }
    match (&wc.w, server.replication.member.config()) {
        (W::Mode(_) | W::Tags(_), Some(config)) => match await_replication::plan(wc, &config) {
            Err(e) => Err(Error::new(e.code, e.message)),
            Ok(_) => Ok(()),
        },
        _ => Ok(()),
    }
}
