//! `hello` (and `isMaster`): who this node is, and a way to wait until that changes.
//!
//! With `topologyVersion` and `maxAwaitTimeMS` the reply waits for a newer topology version; with the exhaust
//! flag the replies keep coming, each continuing from the version before (R-HELLO-3, R-HELLO-4).

use super::prelude::*;
use crate::config::MAX_WIRE_VERSION;
use pando_base::limits;
use pando_bson::ObjectId;
use pando_command::Next;
use pando_logins::commands::append_logins;
use pando_request::HelloArgs;
use std::time::Duration;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = HelloArgs::parse(&req)?;
    if args.hello_ok {
        ctx.client.set_hello_ok();
    }
    if args.internal {
        ctx.client.set_internal();
    }
    let first = ctx.client.take_first_hello();
    if let Some(client) = args.client {
        if !first {
            return Err(Error::new(
                ErrorCode::ClientMetadataCannotBeMutated,
                "The client metadata document may only be sent in the first hello",
            ));
        }
        ctx.client.set_metadata(client)?;
    }
    if let (Some((process, counter)), Some(ms)) = (args.topology, args.max_await_ms) {
        await_change(server, ctx, process, counter, ms as u64).await?;
    }
    server.replication.check_quiesce()?;

    let legacy = req.invoked_as != "hello";
    let mut r = Reply::with_capacity(900);
    let b = &mut r.body;
    if args.names_hello_ok {
        b.bool("helloOk", true);
    }
    server.replication.member.append_hello(b, legacy, server.replication.positions());
    // Whoever adds a shard asks for it (R-DWC-5).
    if server.sharding.is_some()
        && server.config_server.is_none()
        && let Some(config) = server.replication.member.config()
    {
        b.bool("isImplicitDefaultMajorityWC", config.implicit_write_concern_is_majority());
    }
    if server.config_server.is_some() {
        b.i32("configsvr", 2);
    }
    b.i32("maxBsonObjectSize", limits::BSON_USER_BYTES_MAX as i32);
    b.i32("maxMessageSizeBytes", limits::WIRE_MESSAGE_BYTES_MAX as i32);
    b.i32("maxWriteBatchSize", limits::WRITE_BATCH_OPS_MAX as i32);
    b.date("localTime", ctx.env().clock.wall_ms());
    b.i32("logicalSessionTimeoutMinutes", limits::SESSION_TIMEOUT_MINUTES as i32);
    b.i32("connectionId", ctx.client.id as i32);
    b.i32("minWireVersion", 0);
    b.i32("maxWireVersion", MAX_WIRE_VERSION);
    b.bool("readOnly", server.upkeep.maintenance.gate().is_read_only());
    if let Some(wanted) = args.compression.filter(|list| !list.is_empty()) {
        let agreed = ctx.client.negotiate_compression(wanted.iter().filter_map(|e| e.value().as_str()));
        if !agreed.is_empty() {
            b.array("compression", |a| {
                for c in agreed {
                    a.str(c.name());
                }
            });
        }
    }
    append_logins(server, ctx, &args, b).await?;
    if args.topology.is_some() && req.exhaust_allowed {
        r.next = Some(Next::With(with_topology(&req, server)));
    }
    Ok(r)
}

/// Returns when the topology is not the one the client knows, at the latest after `ms`.
async fn await_change(server: &Server, ctx: &OpCtx, process: ObjectId, counter: i64, ms: u64) -> Result<()> {
    let awaiting = &server.instance.metrics.connections.awaiting_topology_changes;
    let wait = async {
        loop {
            let seen = server.replication.member.changed().version();
            let now = server.replication.member.topology_version();
            if now.process_id != process || now.counter > counter {
                return Ok(());
            }
            if counter > now.counter {
                return Err(Error::location(
                    31372,
                    format!(
                        "Received a topology version with counter: {counter} which is greater than the server \
                         topology version counter: {}",
                        now.counter
                    ),
                ));
            }
            server.replication.member.changed().changed(seen).await;
        }
    };
    awaiting.add(1);
    let limited = ctx.env().timeout(Duration::from_millis(ms), ctx.interruptible(wait)).await;
    awaiting.add(-1);
    match limited {
        Some(result) => result?,
        None => Ok(()),
    }
}

/// The same request asking for what comes after the reply just built.
fn with_topology(req: &Request<'_>, server: &Server) -> DocBuf {
    let tv = server.replication.member.topology_version();
    let mut b = DocBuilder::with_capacity(req.body.byte_len() + 16);
    for e in req.body {
        if e.name() == "topologyVersion" {
            pando_command::reply::append_topology(&mut b, tv);
        } else {
            b.elem(e);
        }
    }
    b.finish()
}
