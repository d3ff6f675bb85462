//! `_demoWorkflow`: the demo workflow of the primary-only services, for tests and newcomers.
//!
//! `{_demoWorkflow: "start", id, target, restMillis, held}` begins one (or finds the one that runs), `"nudge"` lets a held
//! one go on, `"show"` gives its last checkpoint, `"wait"` its result.

use super::prelude::*;
use pando_bson::Bson;
use pando_repl::services::Instance;
use pando_workflows::demo;
use std::sync::Arc;

struct Args {
    action: String,
    id: Bson,
    target: i64,
    rest_ms: i64,
    held: bool,
}

fn parse(req: &Request<'_>) -> Result<Args> {
    let Value::String(action) = req.first().value() else {
        return Err(Error::bad_value("_demoWorkflow needs an action: start, nudge, show or wait"));
    };
    let mut a = Args { action: action.to_owned(), id: Bson::Null, target: 1, rest_ms: 0, held: false };
    for arg in req.args("_demoWorkflow") {
        match arg.name() {
            "id" => a.id = Bson::from(arg.value()),
            "target" => a.target = arg.i64_at_least(1)?,
            "restMillis" => a.rest_ms = arg.i64_at_least(0)?,
            "held" => a.held = arg.bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    Ok(a)
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let a = parse(&req)?;
    server.replication.member.require_config()?;
    let Some(services) = server.replication.services() else {
        return Err(Error::internal("services have not started"));
    };
    let host = &services.host;
    let mut key = DocBuilder::new();
    key.bson("_id", &a.id);
    let key = key.finish();
    let found = async {
        let found: Option<Arc<Instance>> = host.find(demo::NAME, &key).await?;
        found.ok_or_else(|| Error::new(ErrorCode::NoSuchKey, "no such workflow runs here"))
    };
    let mut r = Reply::new();
    match a.action.as_str() {
        "start" => {
            let state = demo::begin(&a.id, a.target, a.rest_ms, a.held);
            let instance = ctx.interruptible(host.start(demo::NAME, &state)).await??;
            r.body.raw_doc("state", &instance.state());
        }
        "nudge" => ctx.interruptible(found).await??.nudge(),
        "show" => drop(r.body.raw_doc("state", &ctx.interruptible(found).await??.state())),
        "wait" => {
            let instance = ctx.interruptible(found).await??;
            r.body.raw_doc("result", &ctx.interruptible(instance.result()).await??);
        }
        other => return Err(Error::bad_value(format!("unknown action {other}"))),
    }
    Ok(r)
}
