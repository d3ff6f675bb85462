//! `hello` (and `isMaster`): a router, which drivers know by `msg: "isdbgrid"`.

use super::prelude::*;
use crate::config::MAX_WIRE_VERSION;
use pando_base::limits;
use pando_bson::ObjectId;
use pando_command::Next;
use pando_command::reply::append_topology;
use pando_command::{Node, TopologyVersion};
use pando_logins::commands::append_logins;
use pando_request::HelloArgs;
use std::time::Duration;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = HelloArgs::parse(&req)?;
    let given = |name: &str| req.body.get(name);
    if given("helloOk").is_some_and(|v| v.is_truthy()) {
        ctx.client.set_hello_ok();
    }
    if given("internalClient").is_some_and(|v| v.as_doc().is_some()) {
        ctx.client.set_internal();
    }
    let first = ctx.client.take_first_hello();
    if let Some(client) = given("client").filter(|v| !matches!(v, Value::Null)) {
        if !first {
            return Err(Error::new(
                ErrorCode::ClientMetadataCannotBeMutated,
                "The client metadata document may only be sent in the first hello",
            ));
        }
        ctx.client.set_metadata(client)?;
    }
    let version = router.topology_version();
    await_change(router, ctx, &req, version).await?;
    let mut r = Reply::with_capacity(700);
    let b = &mut r.body;
    if given("helloOk").is_some() {
        b.bool("helloOk", true);
    }
    let name = if req.invoked_as == "hello" { "isWritablePrimary" } else { "ismaster" };
    b.bool(name, true).str("msg", "isdbgrid");
    if let Some(version) = version {
        append_topology(b, version);
    }
    b.i32("maxBsonObjectSize", limits::BSON_USER_BYTES_MAX as i32);
    b.i32("maxMessageSizeBytes", limits::WIRE_MESSAGE_BYTES_MAX as i32);
    b.i32("maxWriteBatchSize", limits::WRITE_BATCH_OPS_MAX as i32);
    b.date("localTime", ctx.env().clock.wall_ms());
    b.i32("logicalSessionTimeoutMinutes", limits::SESSION_TIMEOUT_MINUTES as i32);
    b.i32("connectionId", ctx.client.id as i32);
    b.i32("maxWireVersion", MAX_WIRE_VERSION).i32("minWireVersion", 0);
    if let Some(Value::Array(wanted)) =
        given("compression").filter(|v| v.as_array().is_some_and(|a| !a.is_empty()))
    {
        let agreed = ctx.client.negotiate_compression(wanted.iter().filter_map(|e| e.value().as_str()));
        if !agreed.is_empty() {
            b.array("compression", |a| {
                for c in agreed {
                    a.str(c.name());
                }
            });
        }
    }
    append_logins(router, ctx, &args, b).await?;
    if given("topologyVersion").is_some() && req.exhaust_allowed {
        r.next = Some(Next::With(with_topology(&req, version)));
    }
    Ok(r)
}

/// A router changes only when it ends: whoever knows it waits for as long as it likes.
async fn await_change(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    version: Option<TopologyVersion>,
) -> Result<()> {
    let known = req.body.get("topologyVersion").and_then(|v| v.as_doc()).and_then(|d| d.get("processId"));
    let wait = req.body.get("maxAwaitTimeMS").and_then(|v| v.as_i64());
    match (known, wait) {
        (Some(Value::ObjectId(ObjectId(id))), Some(ms)) if version.is_some_and(|v| v.process_id.0 == id) => {
            let waiting = ctx.interruptible(router.wait_shutdown_requested());
            let limit = Duration::from_millis(ms.max(0) as u64);
            ctx.env().timeout(limit, waiting).await.unwrap_or(Ok(()))
        }
        (Some(_), None) => {
            Err(Error::location(31368, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'"))
        }
        (None, Some(_)) => {
            Err(Error::location(31368, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'"))
        }
        _ => Ok(()),
    }
}

/// The same request asking for what comes after the reply just built.
fn with_topology(req: &Request<'_>, version: Option<TopologyVersion>) -> DocBuf {
    let mut b = DocBuilder::with_capacity(req.body.byte_len() + 16);
    for e in req.body {
        match version.filter(|_| e.name() == "topologyVersion") {
            Some(version) => append_topology(&mut b, version),
            None => drop(b.elem(e)),
        }
    }
    b.finish()
}
