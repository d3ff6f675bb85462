//! Collections that the merging part of a pipeline reads beside what is merged: aggregations of their own, each in a task that
//! sends its rows.
//!
//! ```text
//!   merging stage ─ run ─► task: aggregate on the other collection ─► rows (bounded) ─► merging stage
//! ```

use super::run::{Asked, open};
use super::wire;
use crate::Router;
use crate::cursors::{Wakes, Wanted};
use crate::lock;
use pando_base::{Error, Namespace, Result, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::{OpCtx, Request};
use pando_env::sync::Notify;
use pando_query::QueryCtx;
use pando_query::stage::{Collections, Elsewhere, Input, Opened, Row, Step, Target};
use pando_request::AggregateArgs;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// All that an aggregation reads besides.
pub(crate) struct Foreign {
    router: Arc<Router>,
    /// The client's, for whoever reads on its behalf.
    read_concern: Option<DocBuf>,
    wakes: Wakes,
}

impl Foreign {
    pub(crate) fn new(router: Arc<Router>, req: &Request<'_>) -> Arc<Foreign> {
        let read_concern = req.body.get("readConcern").and_then(|v| v.as_doc()).map(RawDoc::to_buf);
        Arc::new(Foreign { router, read_concern, wakes: Wakes::default() })
    }
    pub(crate) fn wakes(&self) -> Wakes {
        self.wakes.clone()
    }
}

/// What aggregations of other collections are opened with, which only the whole of them knows.
pub(crate) struct OtherCollections(pub(crate) Arc<Foreign>);

impl Collections for OtherCollections {
    /// A view stays one: whoever runs the aggregation finds out.
    fn resolve(&self, ns: &str) -> Result<Target> {
        Ok(Target { ns: ns.to_owned(), view: None, collation: None })
    }
    fn open(&self, ns: &str) -> Result<Opened> {
        Ok(Opened::Elsewhere(Box::new(Other { foreign: self.0.clone(), ns: Namespace::parse(ns)? })))
    }
}

struct Other {
    foreign: Arc<Foreign>,
    ns: Namespace,
}

impl Elsewhere for Other {
    fn run(&mut self, stages: &RawDoc, q: &QueryCtx) -> Result<Box<dyn Input + Send>> {
        let rows = Arc::new(Rows { wakes: self.foreign.wakes.clone(), ..Rows::default() });
        let command = self.command(&wire::stages(stages), q);
        let (foreign, ns, to) = (self.foreign.clone(), self.ns.clone(), rows.clone());
        let env = foreign.router.instance.env.clone();
        env.spawn("reads another collection", async move {
            let done = read(&foreign.router, &ns, &command, &to).await;
            to.end(done.err());
        });
        Ok(Box::new(Stream(rows)))
    }
}

impl Other {
    fn command(&self, stages: &RawDoc, q: &QueryCtx) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("aggregate", self.ns.coll()).raw_array("pipeline", stages);
        b.doc("cursor", |_| {});
        b.doc("let", |d| {
            for (name, value) in q.vars.let_vars.iter() {
                match value {
                    Some(value) => drop(d.doc(name, |d| _ = d.bson("$literal", value))),
                    None => drop(d.str(name, "$$REMOVE")),
                }
            }
        });
        // Also where it is the simple one: a view with another one cannot be read so.
        match &q.collation {
            Some(collation) => b.raw_doc("collation", collation.spec()),
            None => b.doc("collation", |d| _ = d.str("locale", "simple")),
        };
        if let Some(reads) = &self.foreign.read_concern {
            b.raw_doc("readConcern", reads);
        }
        b.str("$db", self.ns.db());
        b.finish()
    }
}

/// Rows on their way.
#[derive(Default)]
struct Rows {
    ready: Mutex<VecDeque<DocBuf>>,
    bytes: std::sync::atomic::AtomicUsize,
    ended: Mutex<Option<Result<()>>>,
    /// Nobody takes them any more.
    dropped: AtomicBool,
    taken: Notify,
    wakes: Wakes,
}

impl Rows {
    fn end(&self, failed: Option<Error>) {
        *lock(&self.ended) = Some(failed.map_or(Ok(()), |e| Err(told_once(e))));
        self.wakes.sent.bump();
    }
    fn push(&self, docs: Vec<DocBuf>) {
        self.bytes.fetch_add(docs.iter().map(|d| d.byte_len()).sum(), SeqCst);
        lock(&self.ready).extend(docs);
        self.wakes.sent.bump();
    }
    /// Until there is room, or nobody wants more.
    async fn room(&self) -> bool {
        loop {
            let seen = self.taken.version();
            if self.dropped.load(SeqCst) {
                return false;
            }
            if self.bytes.load(SeqCst) < limits::ROUTER_READ_AHEAD_BYTES {
                return true;
            }
            self.taken.changed(seen).await;
        }
    }
}

/// Whoever takes the rows says that it is an aggregation that has failed.
fn told_once(mut e: Error) -> Error {
    if let Some(rest) = e.message.strip_prefix("PlanExecutor error during aggregation :: caused by :: ") {
        e.message = rest.to_owned().into();
    }
    e
}

/// The rows as a stage takes them.
struct Stream(Arc<Rows>);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.dropped.store(true, SeqCst);
        self.0.taken.bump();
    }
}

impl Input for Stream {
    fn next(&mut self) -> Result<Step> {
        // Whether it has ended is looked at first: what came before the end is there by then.
        let ended = lock(&self.0.ended).clone();
        if let Some(doc) = lock(&self.0.ready).pop_front() {
            self.0.bytes.fetch_sub(doc.byte_len(), SeqCst);
            self.0.taken.bump();
            return Ok(Step::Row(Row::from(doc)));
        }
        match ended {
            None => {
                self.0.wakes.waited.store(true, SeqCst);
                Ok(Step::NeedYield)
            }
            Some(Ok(())) => Ok(Step::Eof),
            Some(Err(e)) => Err(e),
        }
    }
}

async fn read(router: &Arc<Router>, ns: &Namespace, command: &RawDoc, to: &Rows) -> Result<()> {
    let client = router.instance.internal_client("reads another collection");
    let ctx = OpCtx::internal(client.clone(), "aggregate", ns.db());
    let done = read_as(router, &ctx, ns, command, to).await;
    drop(ctx);
    router.instance.clients.remove(client.id);
    done
}

async fn read_as(
    router: &Arc<Router>,
    ctx: &OpCtx,
    ns: &Namespace,
    command: &RawDoc,
    to: &Rows,
) -> Result<()> {
    let req = Request {
        name: "aggregate",
        invoked_as: "aggregate",
        db: ns.db(),
        body: command,
        sequences: &[],
        exhaust_allowed: false,
        legacy: false,
    };
    let args = AggregateArgs::parse(&req)?;
    let asked = Asked { named: ns.clone(), ns: ns.clone(), args, explains: None };
    // What a view is made of may lead here again.
    let opening: pando_env::BoxFuture<'_, _> = Box::pin(open(router, ctx, &req, &asked));
    let Some(mut cursor) = opening.await? else { return Ok(()) };
    let wanted = Wanted { docs_max: limits::ROUTER_FIRST_BATCH_DOCS, ..Wanted::default() };
    loop {
        let docs = cursor.fill(router, ctx, wanted).await?;
        let over = cursor.is_over();
        if !docs.is_empty() {
            to.push(docs);
        }
        if over || !to.room().await {
            return Ok(());
        }
    }
}
