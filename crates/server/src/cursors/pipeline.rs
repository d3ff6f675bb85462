//! A running aggregation: stages that pull from a plan, or from documents that are at hand.

use crate::aggregation::for_merge::with_facts;
use crate::aggregation::foreign_collections::ForeignCollections;
use crate::cursors::batch::Batch;
use crate::cursors::body::More;
use crate::read::scan::{Scan, in_plan};
use crate::read::{Reads, STEPS_PER_TURN};
use bytes::Bytes;
use pando_access::transaction::conflicts::Undecided;
use pando_base::{Error, Result, Timestamp};
use pando_bson::{DocBuf, RawDoc};
use pando_command::OpCtx;
use pando_query::doc_size::check_result;
use pando_query::exec::{self, Each, Executor, Fed, Quota};
use pando_query::script::Scripts;
use pando_query::source::Source;
use pando_query::stage::{Input, Pipeline, RanStage, Row, RunEnv, Runner, Step};
use std::sync::Arc;
use std::time::Duration;

/// What MongoDB puts before everything that goes wrong while an aggregation runs.
pub(crate) const ERROR_CONTEXT: &str = "PlanExecutor error during aggregation";
/// The bytes of `{}`: a row of a plan that only counts.
const EMPTY_DOC: &[u8] = &[5, 0, 0, 0, 0];

/// Where the first stage pulls from.
pub(crate) enum Feed {
    Plan(Box<Scan>),
    Docs(std::vec::IntoIter<DocBuf>),
}

/// The state of an aggregation between batches.
pub(crate) struct PipelineCursor {
    runner: Runner,
    feed: Feed,
    /// The plan has given all its rows: what becomes of its collection does not matter any more.
    spent: bool,
    /// The collections that its stages read beside its own.
    others: Option<Arc<ForeignCollections>>,
    /// A row that did not fit into the last batch.
    stash: Option<Row>,
    /// Rows go out with what a router merges them by.
    for_merge: bool,
}

/// A plan as the input of stages.
struct PlanRows<'a> {
    exec: &'a mut Executor,
    source: &'a mut dyn Source,
    quota: &'a mut Quota,
    spent: &'a mut bool,
}

impl Input for PlanRows<'_> {
    fn next(&mut self) -> Result<Step> {
        let step = self.exec.next(self.source, self.quota).map_err(|e: Error| in_plan(e, ERROR_CONTEXT))?;
        Ok(match step {
            exec::Step::Row(row) if row.doc.is_empty() => Step::Row(Row::new(Bytes::from_static(EMPTY_DOC))),
            exec::Step::Row(row) => Step::Row(Row::new(row.doc).with_facts(row.facts)),
            exec::Step::NeedYield => Step::NeedYield,
            exec::Step::Eof => {
                *self.spent = true;
                Step::Eof
            }
        })
    }
    fn feed(&mut self, each: &mut Each<'_>) -> Option<Result<Fed>> {
        let mut each = |doc: &[u8]| each(if doc.is_empty() { EMPTY_DOC } else { doc });
        let fed = self.exec.feed(self.source, self.quota, &mut each);
        *self.spent |= matches!(fed, Ok(Fed::Eof));
        Some(fed.map_err(|e| in_plan(e, ERROR_CONTEXT)))
    }
}

impl PipelineCursor {
    pub(crate) fn new(runner: Runner, feed: Feed, others: Arc<ForeignCollections>) -> PipelineCursor {
        PipelineCursor { runner, feed, spent: false, others: Some(others), stash: None, for_merge: false }
    }
    /// Whether rows go out with what a router merges them by.
    pub(crate) fn for_merge(self, for_merge: bool) -> PipelineCursor {
        PipelineCursor { for_merge, ..self }
    }
    /// A plan whose rows are the results.
    pub(crate) fn passing_on(scan: Scan) -> Result<PipelineCursor> {
        let runner = Pipeline::parse(RawDoc::empty(), &Default::default())?.start(&RunEnv::default())?;
        Ok(PipelineCursor {
            runner,
            feed: Feed::Plan(Box::new(scan)),
            spent: false,
            others: None,
            stash: None,
            for_merge: false,
        })
    }
    /// Rows that each stage gave so far.
    pub(crate) fn scripts(&self) -> Option<&Arc<dyn Scripts>> {
        self.runner.ctx().scripts.as_ref()
    }
    /// What was done so far, stage by stage.
    pub(crate) fn ran(&self) -> Vec<RanStage> {
        self.runner.ran()
    }
    /// What its plan, its stages and what waits hold in memory.
    pub(crate) fn held_bytes(&self, listed: impl Fn(&std::vec::IntoIter<DocBuf>) -> u64) -> u64 {
        let input = match &self.feed {
            Feed::Plan(scan) => scan.exec.stats().total_held_bytes(),
            Feed::Docs(docs) => listed(docs),
        };
        input + self.runner.held_bytes() + self.stash.as_ref().map_or(0, |row| row.bytes().len() as u64)
    }
    /// Documents that wait and come from no plan.
    pub(crate) fn at_hand(&self) -> u64 {
        match &self.feed {
            Feed::Plan(_) => 0,
            Feed::Docs(docs) => docs.len() as u64,
        }
    }
    pub(crate) fn at_cluster_time(&self) -> Option<Timestamp> {
        match &self.feed {
            Feed::Plan(scan) => scan.at_cluster_time(),
            Feed::Docs(_) => None,
        }
    }
    /// Appends results until the batch is full. `source` is given when the plan was just opened on it.
    pub(crate) async fn fill(
        &mut self,
        reads: &Reads,
        ctx: &OpCtx,
        batch: &mut Batch<'_>,
        source: Option<Box<dyn Source>>,
    ) -> Result<More> {
        if source.is_none() {
            let wait = self.must_be_decided(reads, ctx)?;
            reads.access.past_prepared(ctx, wait).await?;
        }
        let mut turn = self.begin(reads, ctx, source)?;
        while !batch.is_full() {
            let row = match self.stash.take() {
                Some(row) => row,
                None => match self.next(reads, ctx, &mut turn).await? {
                    Some(row) => row,
                    None => {
                        self.end(reads, ctx, false);
                        return Ok(More::No);
                    }
                },
            };
            let row = if self.for_merge { Row::new(with_facts(&row)) } else { row };
            check_size(&row)?;
            if !batch.has_room(row.bytes().len()) {
                self.stash = Some(row);
                break;
            }
            batch.push(row.bytes());
        }
        self.end(reads, ctx, true);
        Ok(More::Yes)
    }
    /// What is waited for before a batch that goes on.
    fn must_be_decided(&self, reads: &Reads, ctx: &OpCtx) -> Result<Option<Undecided>> {
        match &self.feed {
            Feed::Plan(scan) if !self.spent => scan.must_be_decided(reads, ctx),
            Feed::Docs(_) | Feed::Plan(_) => Ok(None),
        }
    }
    /// What its stages read beside its own collection is that of now.
    fn renew(&self, reads: &Reads) {
        if let Some(others) = &self.others {
            others.renew(reads);
        }
    }
    /// What pulling needs until [`PipelineCursor::end`].
    pub(crate) fn begin(&self, reads: &Reads, ctx: &OpCtx, source: Option<Box<dyn Source>>) -> Result<Turn> {
        self.renew(reads);
        let source = match (&self.feed, source) {
            (Feed::Plan(_), Some(source)) => Some(source),
            (Feed::Plan(scan), None) if !self.spent => Some(scan.reopen(reads, ctx)?),
            (Feed::Docs(_) | Feed::Plan(_), _) => None,
        };
        let quota = Quota::new(STEPS_PER_TURN);
        Ok(Turn { source, quota, opened: ctx.env().clock.mono(), rows: 0 })
    }
    /// The next result; `None` at the end.
    pub(crate) async fn next(&mut self, reads: &Reads, ctx: &OpCtx, turn: &mut Turn) -> Result<Option<Row>> {
        loop {
            turn.rows += 1;
            // Stages may make many rows of one: those count as well.
            let step =
                if turn.rows.is_multiple_of(STEPS_PER_TURN) { Step::NeedYield } else { self.step(turn)? };
            match step {
                Step::Row(row) => return Ok(Some(row)),
                Step::Eof => return Ok(None),
                Step::NeedYield => match (&mut self.feed, &mut turn.source) {
                    (Feed::Plan(scan), Some(source)) => {
                        turn.quota = Quota::new(STEPS_PER_TURN);
                        let opened = turn.opened;
                        scan.pause(reads, ctx, source, &mut turn.opened).await?;
                        if turn.opened != opened {
                            self.renew(reads);
                            self.runner.save();
                        }
                    }
                    _ => self.pause_others(reads, ctx, turn).await?,
                },
            }
        }
    }
    /// As [`Scan::pause`], when there is no scan.
    async fn pause_others(&mut self, reads: &Reads, ctx: &OpCtx, turn: &mut Turn) -> Result<()> {
        ctx.yield_now().await?;
        let now = ctx.env().clock.mono();
        if now.saturating_sub(turn.opened) > Duration::from_secs(pando_base::limits::SNAPSHOT_AGE_SECS_MAX) {
            self.renew(reads);
            self.runner.save();
            turn.opened = now;
        }
        Ok(())
    }
    fn step(&mut self, turn: &mut Turn) -> Result<Step> {
        match (&mut self.feed, &mut turn.source) {
            (Feed::Plan(scan), Some(source)) => {
                let (exec, source, quota) = (&mut scan.exec, &mut **source, &mut turn.quota);
                let rows = &mut PlanRows { exec, source, quota, spent: &mut self.spent };
                let step = self.runner.next(rows);
                if self.spent {
                    turn.source = None;
                }
                step
            }
            (Feed::Docs(docs), _) => self.runner.next(&mut docs.map(Row::from)),
            (Feed::Plan(_), None) => self.runner.next(&mut std::iter::empty()),
        }
    }
    /// After a batch.
    pub(crate) fn end(&mut self, reads: &Reads, ctx: &OpCtx, goes_on: bool) {
        if let Feed::Plan(scan) = &mut self.feed {
            scan.end_batch(reads, ctx, goes_on);
        }
        self.runner.save();
        if let Some(others) = &self.others {
            others.count(reads, ctx);
        }
    }
}

pub(crate) fn check_size(row: &Row) -> Result<()> {
    check_result(row.doc()).map_err(|e| e.context(ERROR_CONTEXT))
}

/// One uninterrupted stretch of pulling.
pub(crate) struct Turn {
    source: Option<Box<dyn Source>>,
    quota: Quota,
    opened: Duration,
    rows: u32,
}
