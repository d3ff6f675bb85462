//! What goes with every command to a shard: the client's session, concerns and time limit, and who is asked by which version.

use crate::catalog::Target;
use pando_base::session_id::SessionId;
use pando_bson::{DocBuf, DocBuilder};
use pando_command::{OpCtx, Request};

/// What a command is to the shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Read,
    Write,
    /// Neither a read concern nor a write concern.
    Plain,
}

/// Fields of the client's envelope that shards see as they are.
const HANDED_ON: [&str; 6] = [
    "comment",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
    "$readPreference",
    "mayBypassWriteBlocking",
];
/// The same, of statements of transactions and of retryable writes.
const OF_SESSION: [&str; 3] = ["txnNumber", "autocommit", "startTransaction"];

/// The rest of a command, behind its own arguments. Servers say to each other what a client leaves to defaults.
pub(crate) fn append(b: &mut DocBuilder, ctx: &OpCtx, req: &Request<'_>, kind: Kind, target: &Target) {
    target.append(b);
    append_unversioned(b, ctx, req, kind);
}

pub(crate) fn append_unversioned(b: &mut DocBuilder, ctx: &OpCtx, req: &Request<'_>, kind: Kind) {
    for e in req.body.iter().skip(1).filter(|e| HANDED_ON.contains(&e.name())) {
        b.elem(e);
    }
    append_session(b, ctx.lsid.as_ref());
    for e in req.body.iter().skip(1).filter(|e| OF_SESSION.contains(&e.name())) {
        b.elem(e);
    }
    append_concerns(b, ctx, req, kind);
    if let Some(deadline) = ctx.deadline() {
        let left = deadline.saturating_sub(ctx.env().clock.mono()).as_millis();
        b.i64("maxTimeMS", i64::try_from(left).unwrap_or(i64::MAX).max(1));
    }
    b.str("$db", req.db);
}

pub(crate) fn append_session(b: &mut DocBuilder, lsid: Option<&SessionId>) {
    let Some(lsid) = lsid else { return };
    b.doc("lsid", |d| {
        d.uuid("id", &lsid.id).binary("uid", 0, &lsid.uid);
        if let Some(child) = &lsid.child {
            if let Some(n) = child.txn_number {
                d.i64("txnNumber", n);
            }
            d.uuid("txnUUID", &child.uuid);
        }
    });
}

fn append_concerns(b: &mut DocBuilder, ctx: &OpCtx, req: &Request<'_>, kind: Kind) {
    // Only its first statement says how a transaction reads, and only its end how it writes.
    let in_txn = ctx.in_txn();
    let given = |name: &str| req.body.elem(name);
    match (kind, given("readConcern")) {
        (_, Some(e)) if !in_txn || ctx.start_transaction => drop(b.elem(e)),
        (Kind::Read, None) if !in_txn => {
            b.doc("readConcern", |d| {
                d.str("level", "local").str("provenance", "implicitDefault");
            });
        }
        _ => {}
    }
    match (kind, given("writeConcern")) {
        (Kind::Write, Some(e)) => drop(b.elem(e)),
        (Kind::Write, None) if !in_txn => {
            b.doc("writeConcern", |d| {
                d.str("w", "majority").i32("wtimeout", 0).str("provenance", "implicitDefault");
            });
        }
        _ => {}
    }
}

/// The client's command as it came, for one shard: its own arguments unchanged, the envelope its own.
pub(crate) fn whole(ctx: &OpCtx, req: &Request<'_>, kind: Kind, target: &Target) -> DocBuf {
    let mut b = DocBuilder::with_capacity(req.body.byte_len() + 256);
    own_arguments(&mut b, req);
    append(&mut b, ctx, req, kind, target);
    b.finish()
}

/// The command's own element, and all that is none of the envelope.
pub(crate) fn own_arguments(b: &mut DocBuilder, req: &Request<'_>) {
    for (i, e) in req.body.iter().enumerate() {
        if i == 0 || !pando_command::generic_args::is_generic(e.name_bytes()) {
            b.elem(e);
        }
    }
}

/// The same under another name: `create` becomes `_shardsvrCreate…`.
pub(crate) fn renamed(b: &mut DocBuilder, req: &Request<'_>, name: &str) {
    for (i, e) in req.body.iter().enumerate() {
        if i == 0 {
            b.value(name, e.value());
        } else if !pando_command::generic_args::is_generic(e.name_bytes()) {
            b.elem(e);
        }
    }
}
