//! `bulkWrite`: inserts, updates and deletes in several collections, in one command and one reply.
//!
//! Every operation has an answer of its own, which a cursor gives out; the counters beside it tell the sums. Inserts
//! that follow each other in one collection are done together.

use super::prelude::*;
use crate::body::CursorBody;
use crate::cursor_reply::{Open, cursor_option};
use crate::statements::{DeleteStatement, UpdateStatement};
use crate::writes::{ByCtx, Retry, check_batch_size, ends_command};
use pando_bson::Bson;
use pando_command::Args;
use pando_command::request::{missing, wrong_type};
use pando_query::plan::Hint;
use pando_session::retryable::{Done, Kind};

const OWNER: &str = "bulkWrite";

struct BulkArgs<'a> {
    ordered: bool,
    bypass_validation: bool,
    errors_only: bool,
    lets: Option<&'a RawDoc>,
    batch_size: Option<u64>,
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
    namespaces: Vec<Namespace>,
    ops: Vec<(usize, Op<'a>)>,
    retry: Retry,
    totals: Totals,
}

fn parse<'a>(req: &Request<'a>) -> Result<BulkArgs<'a>> {
    let mut a = BulkArgs {
        ordered: true,
        bypass_validation: false,
        errors_only: false,
        lets: None,
        batch_size: None,
    };
    for arg in req.args(OWNER) {
        if matches!(arg.value(), Value::Null) {
            continue;
        }
        match arg.name() {
            "ops" | "nsInfo" => {}
            "ordered" => a.ordered = arg.bool()?,
            "bypassDocumentValidation" => a.bypass_validation = arg.boolish()?,
            "errorsOnly" => a.errors_only = arg.bool()?,
            "let" => a.lets = Some(arg.doc()?),
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
            _ => return Err(arg.unknown()),
        }
    }
    req.only_sequences(OWNER, &["ops", "nsInfo"])?;
    Ok(a)
}

fn parse_namespace(doc: &RawDoc) -> Result<Namespace> {
    const OWNER: &str = "bulkWrite.nsInfo";
    let mut ns = None;
    for arg in Args::of_doc(OWNER, doc) {
        match arg.name() {
            "ns" => ns = Some(arg.str()?),
            "collectionUUID" | "encryptionInformation" | "isTimeseriesNamespace" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let ns = ns.ok_or_else(|| missing(OWNER, "ns"))?;
    let (db, coll) = ns.split_once('.').unwrap_or((ns, ""));
    let ns = Namespace::new(db, coll)?;
    pando_catalog::names::check_writable(&ns)?;
    Ok(ns)
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
        let v = arg.value();
        match arg.name() {
            "update" => at = arg.i64_at_least(0)?,
            "filter" => filter = Some(arg.doc()?),
            "updateMods" => match v {
                Value::Document(_) | Value::Array(_) => mods = Some(v),
                _ => {
                    return Err(Error::failed_to_parse(
                        "Update argument must be either an object or an array",
                    ));
                }
            },
            "multi" => s.multi = arg.bool()?,
            "upsert" => s.upsert = arg.bool()?,
            "upsertSupplied" => s.upsert_supplied = arg.bool()?,
            "constants" => s.constants = Some(arg.doc()?),
            "collation" => s.collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
            "arrayFilters" => s.array_filters = Some(arg.array()?),
            "hint" => s.hint = Hint::parse(v)?,
            "sampleId" => {}
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
            "collation" => s.collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
            "hint" => s.hint = Hint::parse(arg.value())?,
            "sampleId" => {}
            _ => return Err(arg.unknown()),
        }
    }
    s.filter = filter.ok_or_else(|| missing(OWNER, "filter"))?;
    Ok((at, Op::Delete(s)))
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = parse(&req)?;
    let namespaces =
        req.required_docs(OWNER, "nsInfo")?.map(parse_namespace).collect::<Result<Vec<Namespace>>>()?;
    let ops = req.required_docs(OWNER, "ops")?.map(parse_op).collect::<Result<Vec<_>>>()?;
    check_batch_size(ops.len())?;
    check_batch_size(namespaces.len())?;
    if let Some(i) = ops.iter().position(|(at, _)| *at >= namespaces.len()) {
        return Err(Error::bad_value(format!("BulkWrite ops entry {i} has an invalid nsInfo index.")));
    }
    let batch_size = args.batch_size;
    server.before_write(ctx).await?;
    let retry = Retry::begin(server, ctx, req.body).await?;
    let mut run = Run { server, ctx, args, namespaces, ops, retry, totals: Totals::default() };
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
            if failed && (self.args.ordered || self.ctx.in_txn()) {
                break;
            }
            self.ctx.yield_now().await?;
        }
        let documents = &self.server.instance.metrics.documents;
        documents.inserted.add((self.totals.inserted + self.totals.upserted) as u64);
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
        if ends_command(e) {
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
        let todo: Vec<usize> = (from..to).filter(|i| self.retry.done(*i).is_none()).collect();
        let docs: Vec<&RawDoc> = todo
            .iter()
            .filter_map(|i| match self.ops[*i].1 {
                Op::Insert(doc) => Some(doc),
                _ => None,
            })
            .collect();
        let ns = self.namespaces[self.ops[from].0].clone();
        let (mut errors, mut last) = (Vec::new(), pando_base::OpTime::NULL);
        if !docs.is_empty() {
            match self.server.lock_or_create(self.ctx, &ns).await {
                Err(e) => errors.extend((0..docs.len()).map(|i| (i, e.clone()))),
                Ok(coll) => {
                    let stmt_ids: Vec<i32> = match self.retry.is_retryable() {
                        true => todo.iter().map(|i| self.retry.stmt_id(*i)).collect(),
                        false => Vec::new(),
                    };
                    let op = self.retry.op(self.args.bypass_validation);
                    let done = match self.server.open_txn(self.ctx) {
                        Some(open) => self.server.insert_within(open, &op, &coll, &docs),
                        None => {
                            let (catalog, by) = (&self.server.catalog, ByCtx(self.ctx));
                            catalog.insert_many(&op, &coll, &docs, &stmt_ids, self.args.ordered, &by).await
                        }
                    };
                    (errors, last) = (done.errors, done.last);
                }
            }
        }
        if !last.is_null() {
            self.ctx.set_last_op(last);
        }
        let stops = self.args.ordered || self.ctx.in_txn();
        for i in from..to {
            let place = todo.iter().position(|t| *t == i);
            if let Some((_, e)) = errors.iter().find(|(at, _)| Some(*at) == place) {
                self.failure(i, e)?;
                if stops {
                    return Ok(true);
                }
                continue;
            }
            if place.is_some() && !last.is_null() {
                let done = Done { kind: Kind::Insert, inserted_id: None, image: None, op_time: last };
                self.retry.note(i, done);
            }
            self.totals.inserted += 1;
            self.reply(i, 1, |_| {});
        }
        Ok(!errors.is_empty())
    }

    /// An update or a delete; true when it failed.
    async fn one(&mut self, i: usize) -> Result<bool> {
        let (server, ctx, lets) = (self.server, self.ctx, self.args.lets);
        let ns = self.namespaces[self.ops[i].0].clone();
        let before = self.retry.done(i);
        let result = match &self.ops[i].1 {
            Op::Update(s) => {
                server.instance.metrics.op_counters.update.inc();
                let bypass_validation = self.args.bypass_validation;
                let s = UpdateStatement { lets, index: i, bypass_validation, ..(**s).clone() };
                match before {
                    Some(done) => Ok(Changed::again(done)),
                    None => server.update_statement(ctx, &ns, &s, &mut self.retry).await.map(|u| Changed {
                        matched: u.matched as i64,
                        modified: u.modified as i64,
                        upserted: u.upserted,
                    }),
                }
            }
            Op::Delete(s) => {
                server.instance.metrics.op_counters.delete.inc();
                let s = DeleteStatement { lets, index: i, ..s.clone() };
                let n = match before {
                    Some(_) => Ok(1),
                    None => server.delete_statement(ctx, &ns, &s, &mut self.retry).await,
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
    fn again(done: Done) -> Changed {
        match done.kind {
            Kind::Update => Changed { matched: 1, modified: 1, upserted: None },
            _ => Changed { matched: 0, modified: 0, upserted: done.inserted_id },
        }
    }
}
