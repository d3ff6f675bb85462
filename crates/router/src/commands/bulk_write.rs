//! `bulkWrite`: operations of all kinds on several collections, carried out as the commands that shards of every release know.
//!
//! Operations of one kind that follow each other in one collection go together: inserts always, updates and deletes where only failures
//! are told one by one. Otherwise each of these is a command of its own, since each has an answer of its own.

use super::prelude::*;
use crate::cursors::{Open, Remotes, RouterCursor, Shape};
use crate::write::batch::{Outcome, error_of};
use crate::write::execute::{Writes, numbers};
use crate::write::new_id::for_insert;
use crate::write::reply::append_write_concern;
use crate::write::targeting::{Goes, of_delete, of_document, of_update};
use pando_metadata_cache::Route;

use pando_request::{BulkOp, BulkWriteArgs, WriteArgs};
use pando_routing::ShardId;
use std::borrow::Cow;
use std::collections::BTreeMap;

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
    write_concern: Vec<(ShardId, DocBuf)>,
    retried: Vec<i32>,
}

struct Run<'a> {
    router: &'a Router,
    ctx: &'a OpCtx,
    req: &'a Request<'a>,
    args: &'a BulkWriteArgs<'a>,
    numbers: Vec<i32>,
    totals: Totals,
}

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = BulkWriteArgs::parse(&req, |_| Ok(()))?;
    let numbers = numbers(req.body, args.ops.len());
    let mut run = Run { router, ctx, req: &req, args: &args, numbers, totals: Totals::default() };
    run.all().await?;
    let mut totals = run.totals;
    let ns = Namespace::unchecked("admin", "$cmd.bulkWrite");
    let open = Open { batch_size: Some(args.batch_size.unwrap_or(u64::MAX)), ..Open::new(ns) };
    let replies = std::mem::take(&mut totals.replies);
    let cursor = RouterCursor::with_documents(Remotes::none(router, ctx), replies, Shape::default())?;
    let mut r = router.begin(ctx, &req, open, cursor).await?;
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
    append_write_concern(&mut r.body, &totals.write_concern);
    if !totals.retried.is_empty() {
        totals.retried.sort_unstable();
        r.body.array("retriedStmtIds", |a| {
            totals.retried.iter().for_each(|id| _ = a.value(Value::Int32(*id)));
        });
    }
    Ok(r)
}

/// Whether one command can do both.
fn is_alike(one: &BulkOp<'_>, other: &BulkOp<'_>) -> bool {
    use BulkOp::{Delete, Insert, Update};
    matches!((one, other), (Insert(_), Insert(_)) | (Update(_), Update(_)) | (Delete(_), Delete(_)))
}

impl Run<'_> {
    async fn all(&mut self) -> Result<()> {
        let mut at = 0;
        while at < self.args.ops.len() {
            let end = self.end_of_group(at);
            let errors = self.totals.errors;
            match &self.args.ops[at].1 {
                BulkOp::Insert(_) => self.insert(at, end).await?,
                _ => self.change(at, end).await?,
            }
            at = end;
            if self.totals.errors > errors && (self.args.write.ordered || self.ctx.in_txn()) {
                break;
            }
        }
        Ok(())
    }
    /// Behind those that go together with the one at `at`.
    fn end_of_group(&self, at: usize) -> usize {
        let (ns, first) = &self.args.ops[at];
        if !self.args.errors_only && !matches!(first, BulkOp::Insert(_)) {
            return at + 1;
        }
        let group = self.args.ops[at..].iter().take_while(|(n, op)| n == ns && is_alike(op, first));
        at + group.count()
    }
    fn writes<'w>(
        &self,
        (command, field): (&'static str, &'static str),
        (from, to): (usize, usize),
        args: &'w WriteArgs<'w>,
        docs: Vec<Cow<'w, RawDoc>>,
    ) -> Writes<'w> {
        let ns = self.args.namespaces[self.args.ops[from].0].ns.clone();
        let numbers = self.numbers.get(from..to).unwrap_or_default().to_vec();
        Writes { ns, command, field, args, docs, numbers }
    }
    /// The command as one of the database that an operation is about.
    fn within(&self, at: usize) -> Request<'_> {
        Request { db: self.args.namespaces[self.args.ops[at].0].ns.db(), ..*self.req }
    }
    /// Those of the command, for one of its operations.
    fn args_of(&self, at: usize) -> WriteArgs<'_> {
        let uuid = self.args.namespaces[self.args.ops[at].0].uuid.as_ref();
        let collection_uuid = uuid.map(|u| Value::Binary { subtype: 4, bytes: &u.0 });
        WriteArgs { collection_uuid, ..self.args.write.clone() }
    }

    async fn insert(&mut self, from: usize, to: usize) -> Result<()> {
        let docs = self.args.ops[from..to].iter().filter_map(|(_, op)| match op {
            BulkOp::Insert(doc) => Some(for_insert(self.router, self.ctx, doc)),
            _ => None,
        });
        let args = WriteArgs { let_vars: None, ..self.args_of(from) };
        let writes = self.writes(("insert", "documents"), (from, to), &args, docs.collect());
        let goes = |route: &Route, i: usize| of_document(route, &writes.docs[i]).map(Goes::To);
        let outcome = match writes.run(self.router, self.ctx, &self.within(from), goes).await {
            Ok(batch) => batch.outcome,
            Err(e) => self.whole_failure(e, to - from)?,
        };
        let errors: BTreeMap<usize, &DocBuf> = outcome.errors.iter().map(|(at, e)| (from + at, e)).collect();
        let stopped = errors.keys().next().filter(|_| self.args.write.ordered);
        for i in from..to {
            match errors.get(&i) {
                Some(e) => self.failure(i, e),
                None if stopped.is_some_and(|first| *first < i) => break,
                None => {
                    self.totals.inserted += 1;
                    self.reply(i, 1, |_| {});
                }
            }
        }
        self.take_rest(outcome);
        Ok(())
    }

    /// Updates or deletes.
    async fn change(&mut self, from: usize, to: usize) -> Result<()> {
        let (args, group) = (self.args_of(from), &self.args.ops[from..to]);
        let (router, ctx) = (self.router, self.ctx);
        let spelt = |op: &BulkOp<'_>| {
            let mut b = DocBuilder::new();
            match op {
                BulkOp::Update(s) => s.spell(&mut b),
                BulkOp::Delete(s) => s.spell(&mut b),
                BulkOp::Insert(_) => {}
            }
            Cow::Owned(b.finish())
        };
        let docs = group.iter().map(|(_, op)| spelt(op)).collect();
        let command = match group[0].1 {
            BulkOp::Update(_) => ("update", "updates"),
            _ => ("delete", "deletes"),
        };
        let writes = self.writes(command, (from, to), &args, docs);
        let goes = |route: &Route, i: usize| match &group[i].1 {
            BulkOp::Update(s) => of_update(router, ctx, route, s),
            BulkOp::Delete(s) => of_delete(router, ctx, route, s),
            BulkOp::Insert(_) => Err(Error::internal("inserts are done together")),
        };
        let outcome = match writes.run(router, ctx, &self.within(from), goes).await {
            Ok(batch) => batch.outcome,
            Err(e) => self.whole_failure(e, to - from)?,
        };
        let errors: BTreeMap<usize, &DocBuf> = outcome.errors.iter().map(|(at, e)| (from + at, e)).collect();
        errors.iter().for_each(|(i, e)| self.failure(*i, e));
        if errors.len() < to - from {
            self.changed(from, &outcome);
        }
        self.take_rest(outcome);
        Ok(())
    }
    fn changed(&mut self, i: usize, outcome: &Outcome) {
        if matches!(self.args.ops[i].1, BulkOp::Delete(_)) {
            self.totals.deleted += outcome.n;
            return self.reply(i, outcome.n, |_| {});
        }
        let upserted = outcome.upserted.first().map(|(_, id)| id.clone());
        let new = outcome.upserted.len() as i64;
        self.totals.upserted += new;
        self.totals.matched += outcome.n - new;
        self.totals.modified += outcome.n_modified;
        let modified = outcome.n_modified;
        self.reply(i, outcome.n, |b| {
            b.i32("nModified", modified as i32);
            if let Some(id) = &upserted {
                b.doc("upserted", |d| _ = d.elems_of(id));
            }
        });
    }

    /// In a transaction, or where the client is to try again, the command fails; else the operations do: the first one, where they are
    /// ordered.
    fn whole_failure(&self, e: Error, group: usize) -> Result<Outcome> {
        if self.ctx.in_txn() || e.code.ends_command() || e.code.is(pando_base::codes::class::RETRIABLE) {
            return Err(e);
        }
        let failed = if self.args.write.ordered { 1 } else { group };
        let errors = (0..failed).map(|i| (i, error_of(i, &e))).collect();
        Ok(Outcome { errors, ..Outcome::default() })
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
    fn failure(&mut self, i: usize, e: &RawDoc) {
        self.totals.errors += 1;
        let mut b = DocBuilder::new();
        b.f64("ok", 0.0).i32("idx", i as i32);
        e.iter().filter(|e| e.name() != "index").for_each(|e| _ = b.elem(e));
        b.i32("n", 0);
        if matches!(self.args.ops[i].1, BulkOp::Update(_)) {
            b.i32("nModified", 0);
        }
        self.totals.replies.push(b.finish());
    }
    fn take_rest(&mut self, outcome: Outcome) {
        self.totals.write_concern.extend(outcome.write_concern);
        self.totals.retried.extend(outcome.retried);
    }
}
