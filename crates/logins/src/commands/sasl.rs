//! `saslStart`, `saslContinue` and `logout`; the first message that comes with a `hello`.

use super::prelude::*;
use crate::login::First;
use pando_auth::Mechanism;
use pando_auth::certificate::{EXTERNAL, X509};
use pando_auth::login::CONVERSATION;
use pando_auth::scram::Answer;
use pando_bson::extjson::base64;
use pando_request::settings::login::{payload, skips_empty_exchange, unavailable};
use pando_request::{SaslContinueArgs, SaslStartArgs};

pub async fn start(node: &impl KeepsUsers, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let pause = node.logins().pause(&ctx.client);
    if !pause.is_zero() {
        ctx.sleep(pause).await?;
    }
    let (answer, in_text) = begin(node, ctx, &req, false).await?;
    let mut r = Reply::new();
    append(&mut r.body, &answer, in_text);
    Ok(r)
}

pub async fn go_on(node: &impl KeepsUsers, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = SaslContinueArgs::parse(&req)?;
    let (message, _) = payload(&args.payload)?;
    let (answer, in_text) =
        (node as &dyn KeepsUsers).continue_login(&ctx.client, args.conversation, &message).await?;
    let mut r = Reply::new();
    append(&mut r.body, &answer, in_text);
    Ok(r)
}

pub async fn logout<S: KeepsUsers>(_: &S, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if let Some(arg) = req.args("logout").next() {
        return Err(arg.unknown());
    }
    crate::told::log_out(&ctx.client, req.db);
    Ok(Reply::new())
}

/// `hello.speculativeAuthenticate`: the first message of the client's login, sent along. One that fails is as if it had not been sent.
pub(super) async fn speculate(node: &dyn KeepsUsers, ctx: &OpCtx, step: &RawDoc, b: &mut DocBuilder) {
    let db = step.get("db").and_then(|v| v.as_str());
    let (name, db) = match (step.first().map(|e| e.name()), db) {
        (Some("saslStart"), Some(db)) => ("saslStart", db),
        (Some("authenticate"), db) => ("authenticate", db.unwrap_or(EXTERNAL)),
        _ => return,
    };
    // It has to wait, which a `hello` does not.
    if !node.logins().pause(&ctx.client).is_zero() {
        return;
    }
    let mut body = DocBuilder::new();
    step.iter().filter(|e| e.name() != "db").for_each(|e| {
        body.elem(e);
    });
    let body = body.finish();
    let req = Request {
        name,
        invoked_as: name,
        db,
        body: &body,
        sequences: &[],
        exhaust_allowed: false,
        legacy: false,
    };
    if name == "authenticate" {
        return super::authenticate::speculate(node, ctx, &req, b).await;
    }
    if let Ok((answer, in_text)) = begin(node, ctx, &req, true).await {
        b.doc("speculativeAuthenticate", |d| append(d, &answer, in_text));
    }
}

async fn begin(
    node: &dyn KeepsUsers,
    ctx: &OpCtx,
    req: &Request<'_>,
    speculative: bool,
) -> Result<(Answer, bool)> {
    let args = SaslStartArgs::parse(req)?;
    let (message, in_text) = payload(&args.payload)?;
    let Some(mechanism) = Mechanism::of_name(args.mechanism) else {
        node.tell_unavailable(&ctx.client, req.db, args.mechanism).await;
        return Err(match args.mechanism {
            // It has no conversation.
            X509 => {
                let text = format!("Unsupported mechanism '{X509}' on authentication database '{}'", req.db);
                Error::new(ErrorCode::MechanismUnavailable, text)
            }
            other => unavailable(other),
        });
    };
    let first = First {
        db: req.db,
        mechanism,
        payload: &message,
        in_text,
        skips_empty: skips_empty_exchange(&args),
        speculative,
    };
    Ok((node.begin_login(&ctx.client, &first).await?, in_text))
}

fn append(b: &mut DocBuilder, answer: &Answer, in_text: bool) {
    b.i32("conversationId", CONVERSATION);
    b.bool("done", answer.done);
    match in_text {
        true => b.str("payload", &base64(&answer.payload)),
        false => b.value("payload", Value::Binary { subtype: 0, bytes: &answer.payload }),
    };
}
