//! First batches: filling one, and parking what is left.

use super::ClientCursors;
use crate::cursors::batch::{Batch, FIRST_BATCH_DOCS};
use crate::cursors::body::CursorBody;
use crate::cursors::parked::{More, ParkedCursor};
use pando_base::{Namespace, Result};
use pando_bson::DocBuf;
use pando_command::{Flags, OpCtx, Reply, Request, secrets};
use pando_query::source::Source;
use pando_session::{CursorInfo, rights};
use std::sync::Arc;

/// What a cursor is opened with.
pub(crate) struct Open {
    pub(crate) ns: Namespace,
    /// Documents in the first batch; `None` = the default.
    pub(crate) batch_size: Option<u64>,
    pub(crate) no_timeout: bool,
    pub(crate) tailable: bool,
    pub(crate) await_data: bool,
    /// The result ends with the first batch, whatever is left.
    pub(crate) single_batch: bool,
    pub(crate) plan_summary: String,
}

impl Open {
    pub(crate) fn new(ns: Namespace) -> Open {
        Open {
            ns,
            batch_size: None,
            no_timeout: false,
            tailable: false,
            await_data: false,
            single_batch: false,
            plan_summary: String::new(),
        }
    }
}

impl ClientCursors {
    /// Fills the first batch and parks the cursor if anything may follow.
    pub(crate) async fn begin(
        &self,
        ctx: &OpCtx,
        req: &Request<'_>,
        open: Open,
        mut body: CursorBody,
        source: Option<Box<dyn Source>>,
    ) -> Result<Reply> {
        let mut r = Reply::with_capacity(4096);
        let mut batch = Batch::begin(&mut r.body, "firstBatch", open.batch_size.unwrap_or(FIRST_BATCH_DOCS));
        // An empty first batch is asked for to get the cursor alone: it opens without looking.
        let more = if open.batch_size == Some(0) && !open.single_batch {
            More::Yes
        } else {
            body.fill(&self.reads, ctx, &mut batch, source).await?
        };
        batch.tell_resume_token(body.resume_token());
        let docs = batch.len();
        let park = more == More::Yes && !open.single_batch;
        let ns = open.ns.clone();
        let (at, invalidated) = (body.at_cluster_time(), body.is_invalidated());
        let id = if park { self.park(ctx, req, open, body, docs)? } else { 0 };
        if !park {
            self.open.count_unparked();
        }
        batch.end(id, ns.as_str(), |c| {
            if let Some(at) = at {
                c.timestamp("atClusterTime", at);
            }
            if invalidated {
                c.bool("invalidated", true);
            }
        });
        self.reads.instance.metrics.documents.returned.add(docs);
        ctx.debug(|d| {
            d.n_returned = Some(docs);
            d.cursor_exhausted = id == 0;
            d.cursor_id = (id != 0).then_some(id);
        });
        Ok(r)
    }

    fn park(&self, ctx: &OpCtx, req: &Request<'_>, open: Open, body: CursorBody, docs: u64) -> Result<i64> {
        let now = ctx.env().clock.mono();
        // What each getMore tells of it; commands that open cursors carry no secrets of their own.
        let command = Arc::new(secrets::shown(req.name, Flags::NONE, req.db, req.body).into_owned());
        let info = CursorInfo {
            asked: rights::asked(ctx, req, &command),
            ns: open.ns,
            lsid: ctx.lsid,
            owner: ctx.owner(),
            txn_number: ctx.txn_number.filter(|_| ctx.in_txn()),
            no_timeout: open.no_timeout,
            tailable: open.tailable,
            await_data: open.await_data,
            command,
            plan_summary: open.plan_summary,
            created_ms: ctx.env().clock.wall_ms(),
            created: now,
            last_use: now,
            batches: 1,
            docs,
            time_left: ctx.deadline().map(|d| d.saturating_sub(now)),
            held_bytes: body.held_bytes(),
            of_member: ctx.client.is_internal(),
        };
        self.open.park(&*ctx.env().rng, info, Box::new(body))
    }

    /// A cursor over documents that are all at hand.
    pub(crate) async fn list(
        &self,
        ctx: &OpCtx,
        req: &Request<'_>,
        ns: Namespace,
        batch_size: Option<u64>,
        docs: Vec<DocBuf>,
    ) -> Result<Reply> {
        // Listings fit into one batch unless asked otherwise: shells and tools read only the first.
        let batch_size = Some(batch_size.unwrap_or(u64::MAX));
        let open = Open { batch_size, ..Open::new(ns) };
        self.begin(ctx, req, open, CursorBody::List(docs.into_iter()), None).await
    }
}
