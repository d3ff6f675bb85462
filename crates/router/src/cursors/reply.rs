//! First batches: one is filled, and the cursor is parked if anything may follow.

use super::cursor::{RouterCursor, Wanted};
use crate::Router;
use pando_base::{Namespace, Result, limits};
use pando_bson::{DocBuf, DocBuilder};
use pando_command::{Flags, OpCtx, Reply, Request, secrets};
use pando_session::{CursorInfo, rights};
use std::sync::Arc;

/// What a cursor is opened with.
pub(crate) struct Open {
    pub(crate) ns: Namespace,
    pub(crate) batch_size: Option<u64>,
    pub(crate) no_timeout: bool,
    pub(crate) await_data: bool,
    pub(crate) single_batch: bool,
    /// The first batch has what is there when it opens.
    pub(crate) waits_for_nothing: bool,
    /// Shards that should have been asked were not there.
    pub(crate) partial: bool,
}

impl Open {
    pub(crate) fn new(ns: Namespace) -> Open {
        Open {
            ns,
            batch_size: None,
            no_timeout: false,
            await_data: false,
            single_batch: false,
            waits_for_nothing: false,
            partial: false,
        }
    }
}

/// `cursor: {firstBatch | nextBatch, id, ns}`
pub(crate) fn append_batch(
    b: &mut DocBuilder,
    name: &str,
    docs: &[DocBuf],
    resume: Option<&DocBuf>,
    id: i64,
    ns: &str,
    more: impl FnOnce(&mut DocBuilder),
) {
    b.doc("cursor", |c| {
        c.array(name, |a| {
            for doc in docs {
                a.raw_doc(doc);
            }
        });
        if let Some(token) = resume {
            c.raw_doc("postBatchResumeToken", token);
        }
        more(c);
        c.i64("id", id).str("ns", ns);
    });
}

/// There is nothing to read.
pub(crate) fn empty(ns: &Namespace) -> Reply {
    let mut r = Reply::new();
    append_batch(&mut r.body, "firstBatch", &[], None, 0, ns.as_str(), |_| {});
    r
}

impl Router {
    /// Fills the first batch of a cursor, and keeps it where there is more.
    pub(crate) async fn begin(
        &self,
        ctx: &OpCtx,
        req: &Request<'_>,
        open: Open,
        mut cursor: RouterCursor,
    ) -> Result<Reply> {
        let docs_max = open.batch_size.unwrap_or(limits::ROUTER_FIRST_BATCH_DOCS);
        let asks_nobody = open.await_data && open.waits_for_nothing;
        let batch_size = open.batch_size.filter(|n| *n > 0);
        let wanted = Wanted { docs_max, batch_size, wait_ms: None, asks_nobody };
        let docs = cursor.fill(self, ctx, wanted).await?;
        let keeps = !cursor.is_over() && !open.single_batch;
        let (ns, partial, n) = (open.ns.clone(), open.partial, docs.len() as u64);
        let resume = cursor.resume_token().cloned();
        let id = if keeps { self.park(ctx, req, open, cursor, n)? } else { 0 };
        if !keeps {
            self.cursors.count_unparked();
        }
        let mut r = Reply::with_capacity(docs.iter().map(|d| d.byte_len() + 16).sum());
        append_batch(&mut r.body, "firstBatch", &docs, resume.as_ref(), id, ns.as_str(), |c| {
            if partial {
                c.bool("partialResultsReturned", true);
            }
            if let Some(at) = crate::op::snapshot(ctx) {
                c.timestamp("atClusterTime", at);
            }
        });
        self.instance.metrics.documents.returned.add(n);
        ctx.debug(|d| {
            d.n_returned = Some(n);
            d.cursor_exhausted = id == 0;
            d.cursor_id = (id != 0).then_some(id);
        });
        Ok(r)
    }

    fn park(
        &self,
        ctx: &OpCtx,
        req: &Request<'_>,
        open: Open,
        cursor: RouterCursor,
        docs: u64,
    ) -> Result<i64> {
        let now = ctx.env().clock.mono();
        let command = Arc::new(secrets::shown(req.name, Flags::NONE, req.db, req.body).into_owned());
        let info = CursorInfo {
            asked: rights::asked(ctx, req, &command),
            ns: open.ns,
            lsid: ctx.lsid,
            owner: ctx.owner(),
            txn_number: ctx.txn_number.filter(|_| ctx.in_txn()),
            no_timeout: open.no_timeout,
            tailable: cursor.tailable,
            await_data: open.await_data,
            command,
            plan_summary: String::new(),
            created_ms: ctx.env().clock.wall_ms(),
            created: now,
            last_use: now,
            batches: 1,
            docs,
            time_left: ctx.deadline().map(|d| d.saturating_sub(now)),
            held_bytes: cursor.held_bytes(),
            of_member: false,
        };
        self.cursors.park(&*ctx.env().rng, info, cursor)
    }
}
