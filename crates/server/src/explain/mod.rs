//! What `explain` shows: the plan of a command, and with more verbosity the counters of a run that changes
//! nothing.

pub(crate) mod pipelines;

use crate::config::{Config, GIT_VERSION, VERSION};
use crate::read::{Reads, STEPS_PER_TURN, distinct};
use pando_access::{Acquisition, Collection};
use pando_base::{Error, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::{OpCtx, Params, explained};
use pando_query::exec::{Executor, Quota, Step};
use pando_query::plan::explain::{Top, execution_stats, query_planner};
use pando_query::plan::{PlanNode, Query, QueryKind};
use pando_query::source::{
    CollectionInfo, IndexCursor, IndexScan, RecordCursor, RecordId, RecordScan, Source,
};
use pando_query::update::UpdatePlan;
use std::sync::Arc;

/// How much to tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verbosity {
    Planner,
    Stats,
    AllPlans,
}

/// What is done with the rows of a plan. A `findAndModify` gives fields of the document (none: all of them).
pub(crate) enum Work {
    Find,
    Count,
    Distinct(String),
    Update { plan: Box<UpdatePlan>, multi: bool, upsert: bool, gives: Option<DocBuf> },
    Delete { multi: bool, gives: Option<DocBuf> },
}

/// A collection that does not exist.
struct Nothing(Arc<CollectionInfo>);

impl Source for Nothing {
    fn collection(&self) -> &Arc<CollectionInfo> {
        &self.0
    }
    fn read_ts(&self) -> Timestamp {
        Timestamp::ZERO
    }
    fn record_count(&self) -> u64 {
        0
    }
    fn fetch(&mut self, _: &RecordId) -> Result<Option<bytes::Bytes>> {
        Ok(None)
    }
    fn scan_records(&mut self, _: RecordScan<'_>) -> Result<Box<dyn RecordCursor>> {
        Err(Error::internal("a scan of a collection that does not exist"))
    }
    fn scan_index(&mut self, _: IndexScan<'_>) -> Result<Box<dyn IndexCursor>> {
        Err(Error::internal("a scan of a collection that does not exist"))
    }
}

/// The plan goes from value to value of an index.
pub(crate) struct Stepped(pub(crate) bool);

/// Counters of the stage on top.
#[derive(Default)]
struct Done {
    rows: u64,
    modified: u64,
}

/// Rows that are passed over and rows after which it ends.
struct Bounds {
    skip: u64,
    most: u64,
}

impl Work {
    /// Takes out of the query what the work itself does.
    fn bounds(&self, query: &mut Query) -> Bounds {
        match self {
            Work::Count => {
                query.kind = QueryKind::Count;
                // The count itself skips and ends.
                let skip = std::mem::take(&mut query.skip);
                let limit = query.limit.take().filter(|n| *n > 0);
                Bounds { skip, most: limit.map_or(u64::MAX, |n| n.saturating_add(skip)) }
            }
            Work::Update { multi: false, .. } | Work::Delete { multi: false, .. } => {
                Bounds { skip: 0, most: 1 }
            }
            _ => Bounds { skip: 0, most: u64::MAX },
        }
    }
}

/// Adds `queryPlanner` and, unless only the plan is wanted, `executionStats`.
pub(crate) async fn query(
    reads: &Reads,
    ctx: &OpCtx,
    coll: Option<&Acquisition>,
    mut query: Query,
    work: Work,
    verbosity: Verbosity,
    b: &mut DocBuilder,
) -> Result<Stepped> {
    query.explained = true;
    let bounds = work.bounds(&mut query);
    let mut source: Box<dyn Source> = match coll {
        Some(coll) => reads.access.source(ctx, coll, reads.at(reads.point(ctx)))?,
        None => Box::new(Nothing(Arc::default())),
    };
    let mut exec = match (&work, coll) {
        (_, None) => Executor::with_plan(query, PlanNode::Eof, reads.resources(None)),
        (Work::Distinct(key), _) => distinct::plan(reads, query, key, &*source)?,
        _ => Executor::new(query, &*source, reads.resources(None))?,
    };
    while !exec.settle_plan(&mut *source, &mut Quota::new(STEPS_PER_TURN))? {
        ctx.yield_now().await?;
    }
    let started = ctx.env().clock.mono();
    let mut done = Done::default();
    let failed = match verbosity {
        Verbosity::Planner => None,
        _ => run(ctx, &mut exec, &mut *source, &work, bounds.most, &mut done).await?,
    };
    let millis = ctx.env().clock.mono().saturating_sub(started).as_millis() as i64;
    let shows_top = coll.is_some() || matches!(work, Work::Count);
    let mut top = if shows_top { top_of(&work, &done) } else { None };
    if let (Some(top), Work::Count) = (&mut top, &work) {
        let skipped = bounds.skip.min(done.rows);
        top.stats_fields = counts(&[("nCounted", done.rows - skipped), ("nSkipped", skipped)]);
    }
    let info = source.collection().clone();
    let exists = coll.is_some() || matches!(work, Work::Find | Work::Distinct(_));
    b.raw_doc("queryPlanner", &query_planner(&exec, &info, top.as_ref(), exists, failed.is_some()));
    if verbosity != Verbosity::Planner {
        let returned = top.as_ref().map_or(done.rows, |t| t.returned);
        let all = verbosity == Verbosity::AllPlans;
        let stats = execution_stats(&exec, &info, top.as_ref(), returned, millis, all, failed.as_ref());
        b.raw_doc("executionStats", &stats);
    }
    Ok(Stepped(exec.plan().is_some_and(|p| p.any(&|n| matches!(n, PlanNode::DistinctScan(_))))))
}

/// Pulls up to `most` rows, and writes nothing of what the work would write. A mistake that documents bring to light is part
/// of what is explained.
async fn run(
    ctx: &OpCtx,
    exec: &mut Executor,
    source: &mut dyn Source,
    work: &Work,
    most: u64,
    done: &mut Done,
) -> Result<Option<Error>> {
    loop {
        let turn = match exec.next(source, &mut Quota::new(STEPS_PER_TURN)) {
            Ok(Step::Eof) => return Ok(None),
            Ok(Step::NeedYield) => {
                ctx.yield_now().await?;
                continue;
            }
            Ok(Step::Row(row)) => one_row(exec, work, RawDoc::trusted(&row.doc), done),
            Err(e) => Err(e),
        };
        match turn {
            Err(e) if e.code.ends_command() => return Err(e),
            Err(e) => return Ok(Some(e)),
            Ok(()) if done.rows >= most => return Ok(None),
            Ok(()) => {}
        }
    }
}

fn one_row(exec: &Executor, work: &Work, doc: &RawDoc, done: &mut Done) -> Result<()> {
    if let Work::Update { plan, .. } = work {
        let details = match plan.needs_position() {
            true => exec.query().matcher.matches_position(doc)?,
            false => None,
        };
        // Errors come to light; whether something changes does not count, as in MongoDB.
        plan.apply(doc, details)?;
        done.modified += 1;
    }
    done.rows += 1;
    Ok(())
}

/// A count of everything, which is answered from the collection's counter.
pub(crate) fn fast_count(
    coll: &Collection,
    limit: Option<u64>,
    skip: u64,
    verbosity: Verbosity,
    b: &mut DocBuilder,
) {
    const STAGE: &str = "RECORD_STORE_FAST_COUNT";
    b.doc("queryPlanner", |p| {
        p.str("namespace", coll.ns.as_str()).bool("indexFilterSet", false);
        for name in
            ["maxIndexedOrSolutionsReached", "maxIndexedAndSolutionsReached", "maxScansToExplodeReached"]
        {
            p.bool(name, false);
        }
        p.doc("winningPlan", |w| {
            w.str("stage", STAGE);
        });
        p.array("rejectedPlans", |_| {});
    });
    if verbosity == Verbosity::Planner {
        return;
    }
    let skipped = skip.min(coll.count());
    let left = coll.count() - skipped;
    let counted = limit.map_or(left, |l| left.min(l));
    b.doc("executionStats", |s| {
        s.bool("executionSuccess", true);
        for name in ["nReturned", "executionTimeMillis", "totalKeysExamined", "totalDocsExamined"] {
            s.i32(name, 0);
        }
        s.doc("executionStages", |x| {
            x.str("stage", STAGE).i32("nReturned", 0).i32("executionTimeMillisEstimate", 0).i32("works", 1);
            for name in ["advanced", "needTime", "needYield", "saveState", "restoreState"] {
                x.i32(name, 0);
            }
            x.i32("isEOF", 1);
            x.elems_of(&counts(&[("nCounted", counted), ("nSkipped", skipped)]));
        });
        if verbosity == Verbosity::AllPlans {
            s.array("allPlansExecution", |_| {});
        }
    });
}

/// What follows the plans in every reply.
pub(crate) fn append_tail(
    config: &Config,
    params: &Params,
    command: &RawDoc,
    db: Option<&str>,
    b: &mut DocBuilder,
) {
    b.doc("command", |d| {
        d.elems_of(command);
        if let Some(db) = db.filter(|_| command.elem("$db").is_none()) {
            d.str("$db", db);
        }
    });
    let process = explained::Process {
        host: &config.host.facts().hostname,
        port: config.port,
        version: VERSION,
        git_version: GIT_VERSION,
        params,
    };
    process.append(b);
}

fn small(n: i64) -> pando_bson::Bson {
    match i32::try_from(n) {
        Ok(n) => pando_bson::Bson::Int32(n),
        Err(_) => pando_bson::Bson::Int64(n),
    }
}

fn counts(fields: &[(&str, u64)]) -> DocBuf {
    let mut b = DocBuilder::new();
    for (name, n) in fields {
        b.bson(name, &small(*n as i64));
    }
    b.finish()
}

fn top_of(work: &Work, done: &Done) -> Option<Top> {
    let (stage, fields) = match work {
        Work::Find | Work::Distinct(_) => return None,
        Work::Count => ("COUNT", DocBuf::new()),
        Work::Update { upsert, .. } => {
            let inserts = u64::from(*upsert && done.rows == 0);
            let fields =
                [("nMatched", done.rows), ("nWouldModify", done.modified), ("nWouldUpsert", inserts)];
            ("UPDATE", counts(&fields))
        }
        Work::Delete { .. } => ("DELETE", counts(&[("nWouldDelete", done.rows)])),
    };
    let gives = match work {
        Work::Update { gives, .. } | Work::Delete { gives, .. } => gives.clone(),
        _ => None,
    };
    let returned = if gives.is_some() { done.rows } else { 0 };
    let projection = gives.filter(|p| !p.is_empty());
    Some(Top { stats_fields: fields, returned, projection, ..Top::new(stage) })
}
