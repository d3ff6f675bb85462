//! `bulkWrite`: operations of all kinds on several collections, carried out as the commands that shards of every release know.
//!
//! Inserts that follow each other in one collection go together. Every other operation is a command of its own, since each has
//! an answer of its own.

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

impl Run<'_> {
    async fn all(&mut self) -> Result<()> {
        let mut at = 0;
        while at < self.args.ops.len() {
            let end = self.end_of_inserts(at);
            let errors = self.totals.errors;
            match end > at {
                true => self.insert(at, end).await?,
                false => self.one(at).await?,
            }
            at = end.max(at + 1);
            if self.totals.errors > errors && (self.args.write.ordered || self.ctx.in_txn()) {
                break;
            }
        }
        Ok(())
    }
    /// Behind the inserts into one collection that begin at `at`.
    fn end_of_inserts(&self, at: usize) -> usize {
        let ns = self.args.ops[at].0;
        let same =
            self.args.ops[at..].iter().take_while(|(n, op)| *n == ns && matches!(op, BulkOp::Insert(_)));
        at + same.count()
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
            Err(e) => self.whole_failure(e)?,
        };
        let first_error = outcome.errors.iter().map(|(i, _)| *i).min();
        for i in from..to {
            match outcome.errors.iter().find(|(at, _)| from + at == i) {
                Some((_, e)) => self.failure(i, e),
                None if self.args.write.ordered && first_error.is_some_and(|f| from + f < i) => break,
                None => {
                    self.totals.inserted += 1;
                    self.reply(i, 1, |_| {});
                }
            }
        }
        self.take_rest(outcome);
        Ok(())
    }

    /// An update or a delete.
    async fn one(&mut self, i: usize) -> Result<()> {
        let args = self.args_of(i);
        let (router, ctx) = (self.router, self.ctx);
        let mut b = DocBuilder::new();
        let done = match &self.args.ops[i].1 {
            BulkOp::Update(s) => {
                s.spell(&mut b);
                let docs = vec![Cow::Owned(b.finish())];
                let writes = self.writes(("update", "updates"), (i, i + 1), &args, docs);
                writes.run(router, ctx, &self.within(i), |route, _| of_update(router, ctx, route, s)).await
            }
            BulkOp::Delete(s) => {
                s.spell(&mut b);
                let docs = vec![Cow::Owned(b.finish())];
                let writes = self.writes(("delete", "deletes"), (i, i + 1), &args, docs);
                writes.run(router, ctx, &self.within(i), |route, _| of_delete(router, ctx, route, s)).await
            }
            BulkOp::Insert(_) => return Err(Error::internal("inserts are done together")),
        };
        let outcome = match done {
            Ok(batch) => batch.outcome,
            Err(e) => self.whole_failure(e)?,
        };
        match outcome.errors.first() {
            Some((_, e)) => self.failure(i, e),
            None => self.changed(i, &outcome),
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
        match &upserted {
            Some(_) => self.totals.upserted += 1,
            None => self.totals.matched += outcome.n,
        }
        self.totals.modified += outcome.n_modified;
        let modified = outcome.n_modified;
        self.reply(i, outcome.n, |b| {
            b.i32("nModified", modified as i32);
            if let Some(id) = &upserted {
                b.doc("upserted", |d| _ = d.elems_of(id));
            }
        });
    }

    /// In a transaction, or where the client is to try again, the command fails; else the operation does.
    fn whole_failure(&self, e: Error) -> Result<Outcome> {
        if self.ctx.in_txn() || e.code.ends_command() || e.code.is(pando_base::codes::class::RETRIABLE) {
            return Err(e);
        }
        Ok(Outcome { errors: vec![(0, error_of(0, &e))], ..Outcome::default() })
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
