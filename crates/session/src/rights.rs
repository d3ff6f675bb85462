//! Whose cursors are: what one user reads is not handed to another, and nobody reads on what it may not read any more.

use crate::cursors::{Asked, Cursors};
use pando_auth::{Action, Authority, Target};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::DocBuf;
use pando_command::{Node, OpCtx, Registry, Request};
use std::sync::Arc;

/// What a cursor that is opened now goes on by. `shown` is the command as logs have it.
pub fn asked(ctx: &OpCtx, req: &Request<'_>, shown: &Arc<DocBuf>) -> Option<Asked> {
    let allowed = ctx.client.login().last_authority()?.clone();
    if ctx.client.is_internal() || !ctx.client.instance.asks_for_logins() {
        return None;
    }
    let is_whole = shown.as_bytes() == req.body.as_bytes();
    let body = if is_whole { shown.clone() } else { Arc::new(req.body.to_buf()) };
    Some(Asked { command: req.name, db: req.db.to_owned(), body, allowed })
}

/// 13 for a cursor of somebody else.
pub fn check_reader<C: Send>(cursors: &Cursors<C>, ctx: &OpCtx, id: i64) -> Result<()> {
    let owner = ctx.owner();
    match cursors.whose(id).filter(|_| owner.is_some()) {
        Some((_, whose)) if whose != owner => {
            let text = format!("cursor id {id} was not created by the authenticated user");
            Err(Error::new(ErrorCode::Unauthorized, text))
        }
        _ => Ok(()),
    }
}

/// Others' cursors are killed by an action of its own, on what they read.
pub fn check_killer<C: Send, S: Node>(cursors: &Cursors<C>, node: &S, ctx: &OpCtx, id: i64) -> Result<()> {
    let owner = ctx.owner();
    let Some((ns, whose)) = cursors.whose(id).filter(|_| owner.is_some()) else { return Ok(()) };
    let target = Target::Collection(ns.db(), ns.coll());
    if whose == owner || node.authority(&ctx.client)?.may(target, &[Action::KillAnyCursor]) {
        return Ok(());
    }
    Err(Error::new(ErrorCode::Unauthorized, format!("not authorized to kill cursor {id} on {ns}")))
}

/// 13 where the opening command would not be allowed now: users or roles have changed since.
pub fn check_still_allowed<S: Node>(
    registry: &Registry<S>,
    node: &S,
    ctx: &OpCtx,
    (id, asked): (i64, Option<&Asked>),
) -> Result<()> {
    let Some(asked) = asked else { return Ok(()) };
    let who: Arc<Authority> = node.authority(&ctx.client)?;
    if Arc::ptr_eq(&who, &asked.allowed) {
        return Ok(());
    }
    let may = match registry.find(asked.command) {
        None => false,
        Some(command) => {
            let req = Request {
                name: command.name,
                invoked_as: command.name,
                db: &asked.db,
                body: &asked.body,
                sequences: &[],
                exhaust_allowed: false,
                legacy: false,
            };
            Registry::may_run(command, node, ctx, &req, &who)?
        }
    };
    match may {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::Unauthorized,
            format!("not authorized for getMore with cursor id {id}"),
        )),
    }
}
