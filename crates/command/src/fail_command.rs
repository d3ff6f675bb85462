//! The `failCommand` fail point: what it matches and what it does, in every field drivers' tests use.

use crate::OpCtx;
use crate::Request;
use crate::reply::labels_of_late;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, RawDoc, Value};
use std::time::Duration;

/// What the pipeline does after the fail point has had its say.
pub(crate) enum Verdict {
    Proceed,
    Close,
}

/// A `writeConcernError` to attach to an otherwise successful reply.
pub(crate) struct LateFailure {
    pub(crate) error: DocBuf,
    pub(crate) labels: Vec<String>,
}

/// Label that marks "the fail point has chosen the labels": the rest of the list is the whole truth.
const OVERRIDE: &str = "\0labels";

fn matches<'n, I: Iterator<Item = &'n str>>(
    data: &RawDoc,
    ctx: &OpCtx,
    req: &Request<'_>,
    mut names: impl FnMut() -> I,
) -> bool {
    let text = |field| data.get(field).and_then(|v| v.as_str());
    let on = |field| data.get(field).is_some_and(|v| v.is_truthy());
    // Members talk to each other all the time: a test counts what it sends itself.
    if ctx.client.is_internal() && !on("failInternalCommands") {
        return false;
    }
    if text("appName").is_some_and(|want| app_name(ctx, req) != Some(want)) {
        return false;
    }
    if text("threadName").is_some_and(|want| ctx.client.desc != want) {
        return false;
    }
    if let Some(want) = text("namespace") {
        let coll = match req.first().value() {
            Value::String(s) => s,
            _ => "",
        };
        if want.strip_prefix(req.db).and_then(|r| r.strip_prefix('.')) != Some(coll) {
            return false;
        }
    }
    if on("failAllCommands") {
        return true;
    }
    let Some(list) = data.get("failCommands").and_then(|v| v.as_array()) else { return false };
    list.iter().any(|e| e.value().as_str().is_some_and(|want| names().any(|name| name == want)))
}

/// The first hello introduces the client, and may itself be what should fail.
fn app_name<'a>(ctx: &'a OpCtx, req: &Request<'a>) -> Option<&'a str> {
    ctx.client.app_name().or_else(|| match req.name {
        "hello" | "isMaster" => req.body.get_path("client.application.name")?.as_str(),
        _ => None,
    })
}

fn has_early_action(data: &RawDoc) -> bool {
    ["errorCode", "closeConnection", "blockConnection"].iter().any(|f| data.get(f).is_some())
        || data.get("writeConcernError").is_none()
}

/// Before the command: block, then close or fail.
pub(crate) async fn before<'n, I: Iterator<Item = &'n str>>(
    ctx: &OpCtx,
    req: &Request<'_>,
    names: impl FnMut() -> I,
) -> Result<Verdict> {
    let fp = &ctx.client.instance.fail_points.fail_command;
    let wanted = |data: &RawDoc| has_early_action(data) && matches(data, ctx, req, names);
    let Some(data) = fp.check(&*ctx.env().rng, wanted) else { return Ok(Verdict::Proceed) };
    if data.get("blockConnection").is_some_and(|v| v.is_truthy()) {
        let ms = data.get("blockTimeMS").and_then(|v| v.as_i64()).unwrap_or(0);
        ctx.sleep(Duration::from_millis(ms.max(0) as u64)).await?;
    }
    if data.get("closeConnection").is_some_and(|v| v.is_truthy()) {
        return Ok(Verdict::Close);
    }
    let Some(code) = data.get("errorCode").and_then(|v| v.as_i64()) else { return Ok(Verdict::Proceed) };
    let mut error = Error::new(ErrorCode(code as i32), "Failing command via 'failCommand' failpoint");
    if let Some(extra) = data.get("errorExtraInfo").and_then(|v| v.as_doc()) {
        error = error.with_extra(extra.as_bytes().to_vec());
    }
    if let Some(labels) = data.get("errorLabels").and_then(|v| v.as_array()) {
        error = error.with_label(OVERRIDE);
        for label in labels.iter().filter_map(|e| e.value().as_str()) {
            error = error.with_label(label);
        }
    }
    Err(error)
}

/// The labels chosen by the fail point, if it chose any (an empty list counts).
pub(crate) fn label_override(e: &Error) -> Option<Vec<String>> {
    (e.labels.first().map(String::as_str) == Some(OVERRIDE)).then(|| e.labels[1..].to_vec())
}

/// For commands with a write concern: the `writeConcernError` to attach after the command has run.
pub(crate) fn write_concern_error<'n, I: Iterator<Item = &'n str>>(
    ctx: &OpCtx,
    req: &Request<'_>,
    names: impl FnMut() -> I,
) -> Option<LateFailure> {
    let fp = &ctx.client.instance.fail_points.fail_command;
    let wanted = |data: &RawDoc| data.get("writeConcernError").is_some() && matches(data, ctx, req, names);
    let data = fp.check(&*ctx.env().rng, wanted)?;
    let error = data.get("writeConcernError")?.as_doc()?.to_buf();
    let labels = match data.get("errorLabels").and_then(|v| v.as_array()) {
        Some(list) => list.iter().filter_map(|e| e.value().as_str()).map(str::to_owned).collect(),
        None => {
            let code = error.get("code").and_then(|v| v.as_i64()).unwrap_or(0);
            labels_of_late(ErrorCode(code as i32), ctx.command, &ctx.args)
        }
    };
    Some(LateFailure { error, labels })
}
