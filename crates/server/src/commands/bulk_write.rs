//! `bulkWrite`: inserts, updates and deletes in several collections, in one command and one reply.
//!
//! Every operation has an answer of its own, which a cursor gives out; the counters beside it tell the sums. Inserts
//! that follow each other in one collection are done together.

use super::prelude::*;
use crate::cursors::body::CursorBody;
use crate::cursors::reply::Open;
use crate::transaction::write_failed;
use crate::write::inserting::Inserting;
use crate::write::writes::Retry;
use pando_access::Series;
use pando_access::check_writable;
use pando_bson::Bson;
use pando_request::{BulkOp, BulkWriteArgs, NsInfo};
use pando_session::retryable::{Done, Kind};

/// One collection or time series that operations are about.
struct Target {
    ns: Namespace,
    series: Option<Series>,
    /// Whether the collection is the one that the client means.
    checked: Result<()>,
}

/// What the operations came to.
#[derive(Default)]
struct Totals {
    inserted: i64,
    matched: i64,
    modified: i64,
    upserted: i64,
    deleted: i64,
    errors: i64,
    replies: Vec<DocBuf>,
}

struct Run<'a> {
    server: &'a Server,
    ctx: &'a OpCtx,
    args: BulkWriteArgs<'a>,
    targets: Vec<Target>,
    retry: Retry,
    totals: Totals,
}

fn target(server: &Server, ctx: &OpCtx, info: &NsInfo<'_>) -> Result<Target> {
    let series = server.access.series_to_change(ctx, &info.ns, info.by_buckets)?;
    let named = series.as_ref().map_or(&info.ns, |s| &s.buckets);
    let checked = info.uuid.map_or(Ok(()), |uuid| server.access.check_uuid(named, uuid));
    Ok(Target { ns: info.ns.clone(), series, checked })
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = BulkWriteArgs::parse(&req, check_writable)?;
    let batch_size = args.batch_size;
    server.upkeep.admission.before_write(ctx).await?;
    let targets = args.namespaces.iter().map(|info| target(server, ctx, info)).collect::<Result<Vec<_>>>()?;
    let retry = Retry::begin(&server.crud.writes, ctx, req.body).await?;
    let mut run = Run { server, ctx, args, targets, retry, totals: Totals::default() };
    run.all().await?;
    let Run { totals, retry, .. } = run;
    let ns = Namespace::unchecked("admin", "$cmd.bulkWrite");
    let open = Open { batch_size: Some(batch_size.unwrap_or(u64::MAX)), ..Open::new(ns) };
    let body = CursorBody::List(totals.replies.into_iter());
    let mut r = server.crud.cursors.begin(ctx, &req, open, body, None).await?;
    for (name, n) in [
        ("nErrors", totals.errors),
        ("nInserted", totals.inserted),
        ("nMatched", totals.matched),
        ("nModified", totals.modified),
        ("nUpserted", totals.upserted),
        ("nDeleted", totals.deleted),
    ] {
        r.body.i32(name, n as i32);
    }
    crate::write::writes::append_position(&server.replication, ctx.client.last_op(), &mut r.body);
    if !retry.retried.is_empty() {
        server.statistics.transactions.retried(retry.retried.len());
        r.body.array("retriedStmtIds", |a| {
            for id in &retry.retried {
                a.bson(&Bson::Int32(*id));
            }
        });
    }
    Ok(r)
}

impl Run<'_> {
    async fn all(&mut self) -> Result<()> {
        let mut at = 0;
        while at < self.args.ops.len() {
            let end = self.end_of_inserts(at);
            let failed = match end > at {
                true => self.insert(at, end).await?,
                false => self.one(at).await?,
            };
            at = end.max(at + 1);
            if failed && (self.args.write.ordered || self.ctx.in_txn()) {
                break;
            }
            self.ctx.yield_now().await?;
        }
        let documents = &self.server.instance.metrics.documents;
        documents.inserted.add(self.totals.upserted as u64);
        documents.updated.add(self.totals.modified as u64);
        documents.deleted.add(self.totals.deleted as u64);
        Ok(())
    }

    /// Behind the inserts into one collection that begin at `at`.
    fn end_of_inserts(&self, at: usize) -> usize {
        let ns = self.args.ops[at].0;
        let same =
            self.args.ops[at..].iter().take_while(|(n, op)| *n == ns && matches!(op, BulkOp::Insert(_)));
        at + same.count()
    }

    fn reply(&mut self, i: usize, n: i64, more: impl FnOnce(&mut DocBuilder)) {
        if self.args.errors_only {
            return;
        }
        let mut b = DocBuilder::new();
        b.f64("ok", 1.0).i32("idx", i as i32).i32("n", n as i32);
        more(&mut b);
        self.totals.replies.push(b.finish());
    }

    async fn failure(&mut self, i: usize, e: &Error) -> Result<()> {
        if e.code.ends_batch_of(i > 0) {
            return Err(e.clone());
        }
        let e = &self.server.settled(self.ctx, e.clone()).await?;
        write_failed(self.ctx, e)?;
        self.totals.errors += 1;
        let mut b = DocBuilder::new();
        b.f64("ok", 0.0).i32("idx", i as i32).i32("code", e.code.0).str("errmsg", &e.message);
        if !e.extra.is_empty() {
            b.elems_of(RawDoc::trusted(&e.extra));
        }
        b.i32("n", 0);
        if matches!(self.args.ops[i].1, BulkOp::Update(_)) {
            b.i32("nModified", 0);
        }
        self.totals.replies.push(b.finish());
        Ok(())
    }

    /// Inserts that stand together; true when one failed.
    async fn insert(&mut self, from: usize, to: usize) -> Result<bool> {
        self.server.instance.metrics.op_counters.insert.add((to - from) as u64);
        let docs: Vec<&RawDoc> = self.args.ops[from..to]
            .iter()
            .filter_map(|(_, op)| match op {
                BulkOp::Insert(doc) => Some(*doc),
                _ => None,
            })
            .collect();
        let target = &self.targets[self.args.ops[from].0];
        let how = Inserting {
            ordered: self.args.write.ordered,
            bypass_validation: self.args.write.bypass_validation,
            series: target.series.as_ref(),
            checked: target.checked.clone(),
        };
        let (ctx, retry) = (self.ctx, &mut self.retry);
        let done = match self.server.crud.writes.insert(ctx, &target.ns, &docs, from, &how, retry).await {
            Err(e) if from > 0 && e.code.is_of_tenant() => {
                return self.failure(from, &e).await.map(|()| true);
            }
            done => done?,
        };
        let stops = self.args.write.ordered || self.ctx.in_txn();
        for i in from..to {
            if let Some((_, e)) = done.errors.iter().find(|(at, _)| *at == i) {
                self.failure(i, e).await?;
                if stops {
                    return Ok(true);
                }
                continue;
            }
            self.totals.inserted += 1;
            self.reply(i, 1, |_| {});
        }
        Ok(!done.errors.is_empty())
    }

    /// An update or a delete; true when it failed.
    async fn one(&mut self, i: usize) -> Result<bool> {
        let (server, ctx) = (self.server, self.ctx);
        let Target { ns, series, checked } = &self.targets[self.args.ops[i].0];
        let series = series.as_ref();
        let before = self.retry.done(i)?;
        let result = match &self.args.ops[i].1 {
            BulkOp::Update(s) => {
                server.instance.metrics.op_counters.update.inc();
                match (before, checked) {
                    (Some(done), _) => Changed::again(server, &done),
                    (None, Err(e)) => Err(e.clone()),
                    (None, Ok(())) => {
                        server.crud.writes.update(ctx, ns, series, s, &mut self.retry).await.map(|u| {
                            Changed {
                                matched: u.matched as i64,
                                modified: u.modified as i64,
                                upserted: u.upserted,
                            }
                        })
                    }
                }
            }
            BulkOp::Delete(s) => {
                server.instance.metrics.op_counters.delete.inc();
                let n = match (before, checked) {
                    (Some(_), _) => Ok(1),
                    (None, Err(e)) => Err(e.clone()),
                    (None, Ok(())) => server.crud.writes.delete(ctx, ns, series, s, &mut self.retry).await,
                };
                match n {
                    Ok(n) => {
                        self.totals.deleted += n as i64;
                        self.reply(i, n as i64, |_| {});
                        return Ok(false);
                    }
                    Err(e) => Err(e),
                }
            }
            BulkOp::Insert(_) => return Err(Error::internal("an insert among other operations")),
        };
        match result {
            Ok(done) => {
                self.updated(i, done);
                Ok(false)
            }
            Err(e) => self.failure(i, &e).await.map(|()| true),
        }
    }

    fn updated(&mut self, i: usize, done: Changed) {
        let upserted = done.upserted;
        self.totals.matched += done.matched;
        self.totals.modified += done.modified;
        self.totals.upserted += i64::from(upserted.is_some());
        let n = done.matched + i64::from(upserted.is_some());
        self.reply(i, n, |b| {
            b.i32("nModified", done.modified as i32);
            if let Some(id) = &upserted {
                b.doc("upserted", |d| {
                    d.bson("_id", id);
                });
            }
        });
    }
}

/// What an update came to.
struct Changed {
    matched: i64,
    modified: i64,
    upserted: Option<Bson>,
}

impl Changed {
    /// An earlier try carried it out.
    fn again(server: &Server, done: &Done) -> Result<Changed> {
        server.sessions.check_retried_update(done)?;
        Ok(match done.kind {
            Kind::Update => Changed { matched: 1, modified: 1, upserted: None },
            _ => Changed { matched: 0, modified: 0, upserted: server.sessions.upserted_id(done)? },
        })
    }
}
