//! Whether a client may run the command that it sent: the one check of it, made by the pipeline before the handler.
//!
//! ```text
//!   nobody has to log in here, or the server asks itself ─► may
//!   open ─► may                                no login ─► 13 "requires authentication"
//!   the row's actions on its resource, or what the command says of its arguments ─► may, or 13 "not authorized"
//! ```
//! What a statement needs beside (a collection that a stage reads, another's cursor) is part of what the command says.

use crate::audit;
use crate::privilege::{Privileges, Resource};
use crate::spec::{Command, Flags, Registry};
use crate::{Node, OpCtx, Request};
use pando_auth::{Action, Authority, Target};
use pando_base::limits::UNAUTHORIZED_SHOWN_BYTES_MAX;
use pando_base::{Error, ErrorCode, Result, Uuid};
use pando_bson::fields::doubled;
use pando_bson::{DocBuilder, RawDoc, Value};

/// 13 where the client may not run this command.
pub(crate) fn check<S: Node>(spec: &Command<S>, node: &S, ctx: &OpCtx, req: &Request<'_>) -> Result<()> {
    let done = decide(spec, node, ctx, req);
    if done.is_ok() && spec.privileges != Privileges::Open {
        audit::allowed(&ctx.client, spec.flags, req);
    }
    done
}

fn decide<S: Node>(spec: &Command<S>, node: &S, ctx: &OpCtx, req: &Request<'_>) -> Result<()> {
    let client = &ctx.client;
    if !client.instance.asks_for_logins() || !client.is_connection() || spec.privileges == Privileges::Open {
        return Ok(());
    }
    let who = node.authority(client)?;
    if !who.is_logged_in() {
        let text = format!("command {} requires authentication", spec.name);
        return Err(Error::new(ErrorCode::Unauthorized, text));
    }
    // Who speaks for somebody who may not says so.
    if who.bypasses_write_blocking() && ctx.args.may_bypass_write_blocking != Some(false) {
        ctx.locks.pass_write_block();
    }
    if Registry::may_run(spec, node, ctx, req, &who)? { Ok(()) } else { Err(refused(spec.flags, req)) }
}

impl<S: Node> Registry<S> {
    /// Whether somebody who has logged in may run a command, in the request itself or within another one.
    pub fn may_run(
        command: &Command<S>,
        node: &S,
        ctx: &OpCtx,
        req: &Request<'_>,
        who: &Authority,
    ) -> Result<bool> {
        Ok(match command.privileges {
            Privileges::Open | Privileges::Login => true,
            Privileges::Needs(on, actions) => match (on, uuid_of(req)) {
                (Resource::Collection, Some(uuid)) => may_by_uuid(node, req.db, uuid, actions, who),
                _ => who.may(target(on, req), actions),
            },
            Privileges::Internal => who.may_on_cluster(Action::Internal),
            // Of two fields of one name the check might see another than the command.
            Privileges::ByArguments if !has_unique_names(req.body) => who.may_everything(),
            Privileges::ByArguments => match command.check {
                Some(check) => check(node, ctx, req, who)?,
                None => who.may_on_cluster(Action::Internal),
            },
        })
    }
}

fn target<'a>(on: Resource, req: &Request<'a>) -> Target<'a> {
    match (on, req.first().value()) {
        (Resource::Cluster, _) => Target::Cluster,
        (Resource::Collection, Value::String(name)) => Target::Collection(req.db, name),
        (Resource::Database | Resource::Collection, _) => Target::Database(req.db),
    }
}

/// A collection that is named by its UUID.
fn uuid_of(req: &Request<'_>) -> Option<Uuid> {
    match req.first().value() {
        Value::Binary { subtype: 4, bytes } => bytes.try_into().ok().map(Uuid),
        _ => None,
    }
}

/// To name a collection so is an action of its own, and it has to be a collection on which the others are allowed. Whether there is
/// one is nobody's to learn who may not ask.
fn may_by_uuid<S: Node>(node: &S, db: &str, uuid: Uuid, actions: &[Action], who: &Authority) -> bool {
    who.may_on_cluster(Action::UseUUID)
        && match node.collection_of(db, uuid) {
            Some(ns) => who.may(Target::Collection(ns.db(), ns.coll()), actions),
            None => true,
        }
}

/// Whether no two fields of a document have the same name.
pub fn has_unique_names(doc: &RawDoc) -> bool {
    doubled(doc).is_none()
}

fn refused(flags: Flags, req: &Request<'_>) -> Error {
    let (mut shown, mut room) = (DocBuilder::new(), UNAUTHORIZED_SHOWN_BYTES_MAX);
    for e in &*crate::secrets::shown(req.name, flags, req.db, req.body) {
        // Whoever may not do it does not make the server spell megabytes.
        let Some(left) = room.checked_sub(e.name_bytes().len() + e.data().len()) else { break };
        room = left;
        shown.elem(e);
    }
    let mut shown = shown.finish().to_string();
    if shown.len() > UNAUTHORIZED_SHOWN_BYTES_MAX {
        let end = (0..=UNAUTHORIZED_SHOWN_BYTES_MAX).rev().find(|at| shown.is_char_boundary(*at));
        shown.truncate(end.unwrap_or(0));
        shown.push_str("...");
    }
    Error::new(ErrorCode::Unauthorized, format!("not authorized on {} to execute command {shown}", req.db))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_there_twice_is_seen_among_few_and_many() {
        for n in [0, 1, 2, 15, 16, 17, 18, 40] {
            for again in [None, Some(0), Some(n / 2), Some(n)] {
                let mut b = DocBuilder::new();
                for i in 0..n {
                    b.i32(&format!("f{i}"), 1);
                }
                if let Some(i) = again {
                    b.i32(&format!("f{i}"), 2);
                }
                let is_twice = again.is_some_and(|i| i < n);
                assert_eq!(has_unique_names(&b.finish()), !is_twice, "{n} {again:?}");
            }
        }
    }
}
