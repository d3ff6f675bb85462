//! `insert`: documents into one collection, which comes into being if it must.

use super::prelude::*;
use crate::top;
use crate::writes::{ByCtx, Outcome, Retry, check_batch_size, ends_command};
use pando_base::limits;
use pando_session::retryable::{Done, Kind};

struct Args {
    ordered: bool,
    bypass_validation: bool,
    by_uuid: bool,
}

fn parse(req: &Request<'_>) -> Result<Args> {
    let mut a = Args { ordered: true, bypass_validation: false, by_uuid: false };
    for arg in req.args("insert") {
        if matches!(arg.value(), Value::Null) {
            continue;
        }
        match arg.name() {
            "documents" => {}
            "ordered" => a.ordered = arg.bool()?,
            "bypassDocumentValidation" => a.bypass_validation = arg.boolish()?,
            "collectionUUID" => a.by_uuid = true,
            "isTimeseriesNamespace" | "encryptionInformation" => {}
            _ => return Err(arg.unknown()),
        }
    }
    req.only_sequences("insert", &["documents"])?;
    Ok(a)
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    // tour: insert 3/9
    let args = parse(&req)?;
    let ns = req.ns()?;
    pando_catalog::names::check_writable(&ns)?;
    let docs: Vec<&RawDoc> = req.required_docs("insert", "documents")?.collect();
    check_batch_size(docs.len())?;
    server.before_write(ctx).await?;
    server.instance.metrics.op_counters.insert.add(docs.len() as u64);
    if let Some(series) = server.time_series(&ns) {
        let mut retry = Retry::begin(server, ctx, req.body).await?;
        let done = server.insert_measurements(ctx, &series, &docs, args.ordered, &mut retry).await?;
        if !done.last.is_null() {
            ctx.set_last_op(done.last);
        }
        let out = Outcome { n: done.n as i64, errors: done.errors, ..Outcome::default() };
        return Ok(out.reply(server, ctx, &retry.retried));
    }
    let mut retry = Retry::begin(server, ctx, req.body).await?;
    let mut out = Outcome::default();

    // Statements that an earlier try carried out are counted, not run.
    let todo: Vec<usize> =
        if retry.is_retryable() { not_done(&mut retry, docs.len(), &mut out) } else { Vec::new() };
    let (pending, stmt_ids): (Vec<&RawDoc>, Vec<i32>) = if retry.is_retryable() {
        todo.iter().map(|i| (docs[*i], retry.stmt_id(*i))).unzip()
    } else {
        (docs, Vec::new())
    };
    let index_of = |i: usize| todo.get(i).copied().unwrap_or(i);

    if !pending.is_empty() {
        let checked = if args.by_uuid { server.check_collection_uuid("insert", &req, &ns) } else { Ok(()) };
        let locked = match checked {
            Ok(()) => server.lock_or_create(ctx, &ns).await,
            Err(e) => Err(e),
        };
        match locked {
            Ok(coll) => {
                let op = retry.op(args.bypass_validation);
                let (fit, refused) = before_commits(ctx, op.session.is_some(), &pending);
                let stmt_ids = &stmt_ids[..fit.min(stmt_ids.len())];
                let done = match server.open_txn(ctx) {
                    Some(open) => server.insert_within(open, &op, &coll, &pending[..fit]),
                    None => {
                        server
                            .catalog
                            .insert_many(&op, &coll, &pending[..fit], stmt_ids, args.ordered, &ByCtx(ctx))
                            .await
                    }
                };
                drop(coll);
                out.n += done.n as i64;
                if !done.last.is_null() {
                    ctx.set_last_op(done.last);
                }
                let failed: Vec<usize> = done.errors.iter().map(|(i, _)| *i).collect();
                note_inserted(&mut retry, &pending[..fit], &failed, args.ordered, done.last, &index_of);
                out.errors.extend(done.errors.into_iter().map(|(i, e)| (index_of(i), e)));
                if let Some(e) = refused {
                    return Err(e);
                }
            }
            Err(e) if ends_command(&e) => return Err(e),
            Err(e) => {
                let last = if args.ordered || ctx.in_txn() { 1 } else { pending.len() };
                out.errors.extend((0..last).map(|i| (index_of(i), e.clone())));
            }
        }
    }
    if let Some((_, e)) = out.errors.iter().find(|(_, e)| ends_command(e)) {
        return Err(e.clone());
    }
    if let Some((_, e)) = out.errors.first() {
        server.write_failed(ctx, e)?;
    }
    server.instance.metrics.documents.inserted.add(out.n as u64);
    server.top.add(ns.as_str(), top::Kind::Insert, true, ctx.elapsed());
    ctx.debug(|d| {
        d.op = "insert";
        d.ns = ns.to_string();
        d.n_inserted = Some(out.n as u64);
    });
    Ok(out.reply(server, ctx, &retry.retried))
}

/// Asks `onPrimaryTransactionalWrite` about each group of documents that MongoDB commits together: how many documents
/// are before the group it refuses.
fn before_commits(ctx: &OpCtx, in_session: bool, docs: &[&RawDoc]) -> (usize, Option<Error>) {
    let mut at = 0;
    while in_session && at < docs.len() && ctx.instance().fail_points.on_transactional_write.is_active() {
        if let Err(e) = ctx.before_commit(in_session) {
            return (at, Some(e));
        }
        let (begin, mut bytes) = (at, 0);
        while at < docs.len()
            && at - begin < limits::INSERT_GROUP_DOCS_MAX
            && bytes < limits::INSERT_GROUP_BYTES_MAX
        {
            bytes += docs[at].byte_len();
            at += 1;
        }
    }
    (docs.len(), None)
}

fn not_done(retry: &mut Retry, n: usize, out: &mut Outcome) -> Vec<usize> {
    let mut todo = Vec::with_capacity(n);
    for i in 0..n {
        match retry.done(i) {
            Some(_) => out.n += 1,
            None => todo.push(i),
        }
    }
    todo
}

fn note_inserted(
    retry: &mut Retry,
    pending: &[&RawDoc],
    failed: &[usize],
    ordered: bool,
    last: pando_base::OpTime,
    index_of: &dyn Fn(usize) -> usize,
) {
    if !retry.is_retryable() || last.is_null() {
        return;
    }
    let end = if ordered { failed.first().copied().unwrap_or(pending.len()) } else { pending.len() };
    for i in (0..end).filter(|i| !failed.contains(i)) {
        retry.note(index_of(i), Done { kind: Kind::Insert, inserted_id: None, image: None, op_time: last });
    }
}
