//! What goes with every command to a shard: the client's session, concerns and time limit, and who is asked by which version.

use crate::op;
use crate::transactions::Transaction;
use pando_base::session_id::SessionId;
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc};
use pando_command::{OpCtx, Request};
use pando_metadata_cache::Target;

/// What a command is to the shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Read,
    Write,
    /// A pipeline, which may end in writing.
    Pipeline,
    /// Neither a read concern nor a write concern.
    Plain,
}

/// Fields of the client's envelope that shards see as they are.
const HANDED_ON: [&str; 5] =
    ["comment", "apiVersion", "apiStrict", "apiDeprecationErrors", "$readPreference"];
/// The rest of a command, behind its own arguments. Servers say to each other what a client leaves to defaults.
pub(crate) fn append(b: &mut DocBuilder, ctx: &OpCtx, req: &Request<'_>, kind: Kind, target: &Target) {
    target.append(b);
    for e in req.body.iter().skip(1).filter(|e| HANDED_ON.contains(&e.name())) {
        b.elem(e);
    }
    append_bypass(b, ctx);
    append_asking(b, ctx, req);
    append_session(b, ctx.lsid.as_ref());
    match op::transaction(ctx) {
        Some(transaction) => append_part(b, transaction, target),
        None => {
            if let Some(n) = ctx.txn_number.filter(|_| !ctx.in_txn()) {
                b.i64("txnNumber", n);
            }
            append_concerns(b, ctx, req, kind);
        }
    }
    if let Some(deadline) = ctx.deadline() {
        let left = deadline.saturating_sub(ctx.env().clock.mono()).as_millis();
        b.i64("maxTimeMS", i64::try_from(left).unwrap_or(i64::MAX).max(1));
    }
    b.str("$db", req.db);
}

/// A shard believes this router: whether its client may write while the writes of users are blocked is the client's matter.
fn append_bypass(b: &mut DocBuilder, ctx: &OpCtx) {
    match ctx.args.may_bypass_write_blocking {
        _ if ctx.instance().asks_for_logins() => {
            b.bool("mayBypassWriteBlocking", ctx.locks.passes_write_block());
        }
        Some(bypasses) => drop(b.bool("mayBypassWriteBlocking", bypasses)),
        None => {}
    }
}

/// What a shard or a config server does is told as its client's doing, where it is told at all: reads are not.
fn append_asking(b: &mut DocBuilder, ctx: &OpCtx, req: &Request<'_>) {
    const NEVER_TOLD: [&str; 5] = ["find", "getMore", "count", "distinct", "killCursors"];
    if ctx.instance().asks_for_logins()
        && !NEVER_TOLD.contains(&req.name)
        && let Some(whom) = ctx.client.as_asking()
    {
        whom.append_to(b);
    }
}

/// A statement of a transaction: what is its first at a shard says how that reads.
fn append_part(b: &mut DocBuilder, transaction: &Transaction, target: &Target) {
    let part = transaction.join(&target.shard);
    b.i64("txnNumber", transaction.number).bool("autocommit", false);
    if part.starts {
        b.bool("startTransaction", true);
        if let Some(reads) = &part.read_concern {
            b.raw_doc("readConcern", reads);
        }
    }
    if part.coordinates {
        b.bool("coordinator", true);
    }
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

/// The client does not want to know what comes of its writes.
pub(crate) fn is_unacknowledged(ctx: &OpCtx) -> bool {
    ctx.args.write_concern.as_ref().is_some_and(|wc| wc.is_unacknowledged())
}

fn append_concerns(b: &mut DocBuilder, ctx: &OpCtx, req: &Request<'_>, kind: Kind) {
    // An empty one says nothing.
    let is_empty = |e: &Elem<'_>| e.value().as_doc().is_some_and(RawDoc::is_empty);
    let given = |name: &str| req.body.elem(name).filter(|e| !is_empty(e));
    match (kind, given("readConcern")) {
        // An aggregation's own writes read nothing by it.
        (Kind::Write, Some(_)) if req.name == "aggregate" => {}
        (_, Some(e)) => match op::snapshot(ctx) {
            // All shards read at one time.
            Some(at) => {
                b.doc("readConcern", |d| _ = d.str("level", "snapshot").timestamp("atClusterTime", at));
            }
            None => drop(b.elem(e)),
        },
        (Kind::Read | Kind::Pipeline, None) => {
            op::concern_defaults(ctx).append_read(b);
        }
        _ => {}
    }
    match (kind, given("writeConcern")) {
        // Whether a shard has sent a write back has to be known, though the client asks for nothing.
        (Kind::Write | Kind::Pipeline, Some(e)) if is_unacknowledged(ctx) => {
            b.doc("writeConcern", |d| {
                d.i32("w", 1);
                let given = e.value().as_doc().unwrap_or(RawDoc::empty());
                given.iter().filter(|e| e.name() != "w").for_each(|e| _ = d.elem(e));
            });
        }
        (Kind::Write | Kind::Pipeline, e) => match (&ctx.write_concern, e) {
            (Some(wc), _) if !wc.w_given => op::concern_defaults(ctx).append_write_for(wc, b),
            (_, Some(e)) => drop(b.elem(e)),
            (_, None) => op::concern_defaults(ctx).append_write(b),
        },
        _ => {}
    }
}

/// What changes the cluster is of a majority.
pub(crate) fn append_majority(b: &mut DocBuilder) {
    b.doc("writeConcern", |d| {
        d.str("w", "majority").i32("wtimeout", 60_000);
    });
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

/// `{explain: {…}, verbosity, …}` for a shard; the versions are of the outer command.
pub(crate) fn explained(
    ctx: &OpCtx,
    req: &Request<'_>,
    verbosity: &str,
    target: &Target,
    inner: impl FnOnce(&mut DocBuilder),
) -> DocBuf {
    let mut b = DocBuilder::with_capacity(req.body.byte_len() + 256);
    b.doc("explain", inner);
    b.str("verbosity", verbosity);
    append(&mut b, ctx, req, Kind::Plain, target);
    b.finish()
}
