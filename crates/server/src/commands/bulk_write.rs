//! `bulkWrite`: inserts, updates and deletes in several collections, in one command and one reply.
//!
//! Every operation has an answer of its own, which a cursor gives out; the counters beside it tell the sums. Inserts
//! that follow each other in one collection are done together.

use super::prelude::*;
use crate::body::CursorBody;
use crate::cursor_reply::{Open, cursor_option};
use crate::inserting::Inserting;
use crate::statements::{DeleteStatement, UpdateStatement};
use crate::timeseries::Series;
use crate::writes::{Retry, WriteArgs, check_batch_size};
use pando_base::Uuid;
use pando_bson::Bson;
use pando_command::Args;
use pando_command::request::{missing, wrong_type};
use pando_session::retryable::{Done, Kind};

const OWNER: &str = "bulkWrite";

struct BulkArgs<'a> {
    write: WriteArgs<'a>,
    errors_only: bool,
    batch_size: Option<u64>,
}

/// One collection or time series that operations are about.
struct Target {
    ns: Namespace,
    series: Option<Series>,
    /// Whether the collection is the one that the client means.
    checked: Result<()>,
}

enum Op<'a> {
    Insert(&'a RawDoc),
    Update(Box<UpdateStatement<'a>>),
    Delete(DeleteStatement<'a>),
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
    args: BulkArgs<'a>,
    targets: Vec<Target>,
    ops: Vec<(usize, Op<'a>)>,
    retry: Retry,
    totals: Totals,
}

fn parse<'a>(req: &Request<'a>) -> Result<BulkArgs<'a>> {
    let mut a = BulkArgs { write: WriteArgs::default(), errors_only: false, batch_size: None };
    for arg in req.args(OWNER) {
        if matches!(arg.value(), Value::Null) {
            continue;
        }
        match arg.name() {
            "ops" | "nsInfo" => {}
            "errorsOnly" => a.errors_only = arg.bool()?,
            "cursor" => {
                a.batch_size = match arg.value() {
                    Value::Document(d) => {
                        let mut holder = DocBuilder::new();
                        holder.raw_doc("cursor", d);
                        match holder.finish().first() {
                            Some(e) => cursor_option(OWNER, e)?,
                            None => None,
                        }
                    }
                    v => return Err(wrong_type(OWNER, "cursor", &v, &["object"])),
                }
            }
            _ if a.write.take(OWNER, &arg)? => {}
            _ => return Err(arg.unknown()),
        }
    }
    req.only_sequences(OWNER, &["ops", "nsInfo"])?;
    Ok(a)
}

/// One element of `nsInfo`.
struct NsInfo {
    ns: Namespace,
    uuid: Option<Uuid>,
    by_buckets: bool,
}

fn parse_namespace(doc: &RawDoc) -> Result<NsInfo> {
    const OWNER: &str = "bulkWrite.nsInfo";
    let (mut ns, mut uuid, mut by_buckets) = (None, None, false);
    for arg in Args::of_doc(OWNER, doc) {
        match arg.name() {
            "ns" => ns = Some(arg.str()?),
            _ if matches!(arg.value(), Value::Null) => {}
            "collectionUUID" => uuid = Some(Uuid(arg.uuid()?)),
            "isTimeseriesNamespace" => by_buckets = arg.boolish()?,
            "encryptionInformation" => arg.no_encryption()?,
            _ => return Err(arg.unknown()),
        }
    }
    let ns = ns.ok_or_else(|| missing(OWNER, "ns"))?;
    let (db, coll) = ns.split_once('.').unwrap_or((ns, ""));
    let ns = Namespace::new(db, coll)?;
    pando_catalog::names::check_writable(&ns)?;
    Ok(NsInfo { ns, uuid, by_buckets })
}

fn target(server: &Server, info: NsInfo) -> Result<Target> {
    let series = server.series_to_write(&info.ns, info.by_buckets)?;
    let named = series.as_ref().map_or(&info.ns, |s| &s.buckets);
    let checked = info.uuid.map_or(Ok(()), |uuid| server.check_uuid(named, uuid));
    Ok(Target { ns: info.ns, series, checked })
}

/// The position of the operation's collection, and the operation.
fn parse_op<'a>(doc: &'a RawDoc) -> Result<(usize, Op<'a>)> {
    let kind = doc.first().map_or("", |e| e.name());
    let (at, op) = match kind {
        "insert" => parse_insert(doc)?,
        "update" => parse_update(doc)?,
        "delete" => parse_delete(doc)?,
        other => {
            return Err(Error::failed_to_parse(format!(
                "Unrecognized bulkWrite operation type: '{other}' in operation {doc}"
            )));
        }
    };
    let at =
        usize::try_from(at).map_err(|_| Error::bad_value("BulkWrite nsInfo index must not be negative"))?;
    Ok((at, op))
}

fn parse_insert<'a>(doc: &'a RawDoc) -> Result<(i64, Op<'a>)> {
    const OWNER: &str = "bulkWrite.insert";
    let (mut at, mut document) = (0, None);
    for arg in Args::of_doc(OWNER, doc) {
        match arg.name() {
            "insert" => at = arg.i64_at_least(0)?,
            "document" => document = Some(arg.doc()?),
            _ => return Err(arg.unknown()),
        }
    }
    Ok((at, Op::Insert(document.ok_or_else(|| missing(OWNER, "document"))?)))
}

fn parse_update<'a>(doc: &'a RawDoc) -> Result<(i64, Op<'a>)> {
    const OWNER: &str = "bulkWrite.update";
    let (mut at, mut filter, mut mods) = (0, None, None);
    let mut s = UpdateStatement::default();
    for arg in Args::of_doc(OWNER, doc) {
        if matches!(arg.value(), Value::Null) && arg.name() != "updateMods" {
            continue;
        }
        match arg.name() {
            "update" => at = arg.i64_at_least(0)?,
            "filter" => filter = Some(arg.doc()?),
            "updateMods" => mods = Some(UpdateStatement::change(&arg)?),
            "constants" => s.constants = Some(arg.doc()?),
            _ if s.take(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
    }
    s.filter = filter.ok_or_else(|| missing(OWNER, "filter"))?;
    s.update = mods.ok_or_else(|| missing(OWNER, "updateMods"))?;
    Ok((at, Op::Update(Box::new(s))))
}

fn parse_delete<'a>(doc: &'a RawDoc) -> Result<(i64, Op<'a>)> {
    const OWNER: &str = "bulkWrite.delete";
    let (mut at, mut filter) = (0, None);
    let mut s = DeleteStatement::default();
    for arg in Args::of_doc(OWNER, doc) {
        match arg.name() {
            "delete" => at = arg.i64_at_least(0)?,
            "filter" => filter = Some(arg.doc()?),
            "multi" => s.multi = arg.bool()?,
            _ if s.take(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
    }
    s.filter = filter.ok_or_else(|| missing(OWNER, "filter"))?;
    Ok((at, Op::Delete(s)))
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = parse(&req)?;
    let infos = req.required_docs(OWNER, "nsInfo")?.map(parse_namespace).collect::<Result<Vec<_>>>()?;
    let ops = req.required_docs(OWNER, "ops")?.map(parse_op).collect::<Result<Vec<_>>>()?;
    check_batch_size(ops.len())?;
    check_batch_size(infos.len())?;
    if let Some(i) = ops.iter().position(|(at, _)| *at >= infos.len()) {
        return Err(Error::bad_value(format!("BulkWrite ops entry {i} has an invalid nsInfo index.")));
    }
    let batch_size = args.batch_size;
    server.before_write(ctx).await?;
    let targets = infos.into_iter().map(|info| target(server, info)).collect::<Result<Vec<_>>>()?;
    let retry = Retry::begin(server, ctx, req.body).await?;
    let mut run = Run { server, ctx, args, targets, ops, retry, totals: Totals::default() };
    run.all().await?;
    let Run { totals, retry, .. } = run;
    let ns = Namespace::unchecked("admin", "$cmd.bulkWrite");
    let open = Open { batch_size: Some(batch_size.unwrap_or(u64::MAX)), ..Open::new(ns) };
    let body = CursorBody::List(totals.replies.into_iter());
    let mut r = server.open_cursor(ctx, &req, open, body, None).await?;
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
    crate::writes::append_position(server, ctx.client.last_op(), &mut r.body);
    if !retry.retried.is_empty() {
        server.txn_metrics.retried(retry.retried.len());
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
        while at < self.ops.len() {
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
        let ns = self.ops[at].0;
        let same = self.ops[at..].iter().take_while(|(n, op)| *n == ns && matches!(op, Op::Insert(_)));
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

    fn failure(&mut self, i: usize, e: &Error) -> Result<()> {
        if e.code.ends_command() {
            return Err(e.clone());
        }
        self.server.write_failed(self.ctx, e)?;
        self.totals.errors += 1;
        let mut b = DocBuilder::new();
        b.f64("ok", 0.0).i32("idx", i as i32).i32("code", e.code.0).str("errmsg", &e.message);
        if !e.extra.is_empty() {
            b.elems_of(RawDoc::trusted(&e.extra));
        }
        b.i32("n", 0);
        if matches!(self.ops[i].1, Op::Update(_)) {
            b.i32("nModified", 0);
        }
        self.totals.replies.push(b.finish());
        Ok(())
    }

    /// Inserts that stand together; true when one failed.
    async fn insert(&mut self, from: usize, to: usize) -> Result<bool> {
        self.server.instance.metrics.op_counters.insert.add((to - from) as u64);
        let docs: Vec<&RawDoc> = self.ops[from..to]
            .iter()
            .filter_map(|(_, op)| match op {
                Op::Insert(doc) => Some(*doc),
                _ => None,
            })
            .collect();
        let target = &self.targets[self.ops[from].0];
        let how = Inserting {
            ordered: self.args.write.ordered,
            bypass_validation: self.args.write.bypass_validation,
            series: target.series.as_ref(),
            checked: target.checked.clone(),
        };
        let (ctx, retry) = (self.ctx, &mut self.retry);
        let done = self.server.insert_documents(ctx, &target.ns, &docs, from, &how, retry).await?;
        let stops = self.args.write.ordered || self.ctx.in_txn();
        for i in from..to {
            if let Some((_, e)) = done.errors.iter().find(|(at, _)| *at == i) {
                self.failure(i, e)?;
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
        let (server, ctx, lets) = (self.server, self.ctx, self.args.write.lets);
        let Target { ns, series, checked } = &self.targets[self.ops[i].0];
        let series = series.as_ref();
        let before = self.retry.done(i)?;
        let result = match &self.ops[i].1 {
            Op::Update(s) => {
                server.instance.metrics.op_counters.update.inc();
                let bypass_validation = self.args.write.bypass_validation;
                let s = UpdateStatement { lets, index: i, bypass_validation, ..(**s).clone() };
                match (before, checked) {
                    (Some(done), _) => Changed::again(server, &done),
                    (None, Err(e)) => Err(e.clone()),
                    (None, Ok(())) => {
                        server.update_in(ctx, ns, series, &s, &mut self.retry).await.map(|u| Changed {
                            matched: u.matched as i64,
                            modified: u.modified as i64,
                            upserted: u.upserted,
                        })
                    }
                }
            }
            Op::Delete(s) => {
                server.instance.metrics.op_counters.delete.inc();
                let s = DeleteStatement { lets, index: i, ..s.clone() };
                let n = match (before, checked) {
                    (Some(_), _) => Ok(1),
                    (None, Err(e)) => Err(e.clone()),
                    (None, Ok(())) => server.delete_in(ctx, ns, series, &s, &mut self.retry).await,
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
            Op::Insert(_) => return Err(Error::internal("an insert among other operations")),
        };
        match result {
            Ok(done) => {
                self.updated(i, done);
                Ok(false)
            }
            Err(e) => self.failure(i, &e).map(|()| true),
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
        Ok(match done.kind {
            Kind::Update => Changed { matched: 1, modified: 1, upserted: None },
            _ => Changed { matched: 0, modified: 0, upserted: server.upserted_id(done)? },
        })
    }
}
