//! `commitTransaction` and `abortTransaction`: the end of a transaction, on all shards that take part.

use super::prelude::*;
use crate::op;
use crate::remote::envelope::append_session;
use crate::transactions::{Commit, Phase, gone, unknown};
use pando_command::transaction_rules::check_is_within;
use pando_env::together;
use pando_request::{AbortTransactionArgs, CommitTransactionArgs};
use pando_routing::ShardId;
use pando_rpc::{CallResult, Retry};

/// A command about the session's transaction, for one shard.
fn body(ctx: &OpCtx, req: &Request<'_>, command: impl FnOnce(&mut DocBuilder)) -> DocBuf {
    let mut b = DocBuilder::new();
    command(&mut b);
    append_session(&mut b, ctx.lsid.as_ref());
    b.i64("txnNumber", ctx.txn_number.unwrap_or(0)).bool("autocommit", false);
    match req.body.elem("writeConcern") {
        Some(e) => drop(b.elem(e)),
        None => drop(b.doc("writeConcern", |d| _ = d.str("w", "majority").i32("wtimeout", 0))),
    }
    b.str("$db", "admin");
    b.finish()
}

async fn tell(
    router: &Router,
    ctx: &OpCtx,
    shard: &ShardId,
    body: &RawDoc,
) -> CallResult<pando_fleet::Answer> {
    router.call_primary(ctx, shard, body, Retry::Idempotent).await
}

pub(super) async fn commit(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    CommitTransactionArgs::parse(&req)?;
    ctx.arguments_read()?;
    check_is_within("commitTransaction", &ctx.args)?;
    let Some(transaction) = op::transaction(ctx) else { return recover(router, ctx, &req).await };
    match transaction.commit()? {
        Commit::Nobody => Ok(Reply::new()),
        Commit::Each(shards) => {
            let mut reply = Reply::new();
            let body = body(ctx, &req, |b| _ = b.i32("commitTransaction", 1));
            for shard in &shards {
                reply = handed_on(&tell(router, ctx, shard, &body).await?.reply);
            }
            Ok(reply)
        }
        Commit::Together { coordinator, all } => {
            let body = coordinate(ctx, &req, &all);
            let told = tell(router, ctx, &coordinator, &body).await.map_err(Error::from);
            if let (Err(e), Some(lsid)) = (&told, ctx.lsid)
                && e.code == ErrorCode::CommandNotSupported
            {
                // It will not be committed, and nobody is to wait for its locks.
                router.abort_in_background(lsid, transaction.number, transaction.abort());
            }
            Ok(handed_on(&told?.reply))
        }
    }
}

fn coordinate(ctx: &OpCtx, req: &Request<'_>, all: &[ShardId]) -> DocBuf {
    body(ctx, req, |b| {
        b.i32("coordinateCommitTransaction", 1);
        b.array("participants", |a| {
            for shard in all {
                a.doc(|d| _ = d.str("shardId", shard.as_str()));
            }
        });
    })
}

/// Another router began it: a shard that took part knows what became of it.
async fn recover(router: &Router, ctx: &OpCtx, req: &Request<'_>) -> Result<Reply> {
    let Some(token) = req.body.get("recoveryToken").and_then(|v| v.as_doc()) else {
        return Err(Error::location(50940, "cannot commit with no participants"));
    };
    let Some(shard) = token.get("recoveryShardId").and_then(|v| v.as_str().map(ShardId::new)) else {
        let text =
            "Recovery token is empty, meaning the transaction only performed reads and can be safely retried";
        return Err(Error::new(ErrorCode::NoSuchTransaction, text));
    };
    let body = coordinate(ctx, req, &[]);
    Ok(handed_on(&tell(router, ctx, &shard, &body).await?.reply))
}

pub(super) async fn abort(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    AbortTransactionArgs::parse(&req)?;
    ctx.arguments_read()?;
    check_is_within("abortTransaction", &ctx.args)?;
    let number = ctx.txn_number.unwrap_or(0);
    let transaction = op::transaction(ctx).ok_or_else(|| unknown(number))?;
    if transaction.phase() == Phase::Aborted {
        return Err(gone(number));
    }
    let shards = transaction.abort();
    let body = body(ctx, &req, |b| _ = b.i32("abortTransaction", 1));
    let told = together(shards.iter().map(|shard| tell(router, ctx, shard, &body)).collect()).await;
    let last = told.into_iter().next_back();
    match last {
        None => Ok(Reply::new()),
        Some(done) => Ok(handed_on(&done?.reply)),
    }
}
