//! A client's cursor: parts on shards, merged, and what the shards does with the stream they make.

use super::merge::{Merge, Next, Order, Strip};
use super::post_image::with_image;
use super::remote::{Remotes, Sent};
use super::watching::Watching;
use crate::remote::Shards;
use crate::remote::envelope::append_majority;
use pando_base::{Result, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder};
use pando_command::OpCtx;
use pando_env::sync::Notify;
use pando_env::together;
use pando_query::doc_size::check_result;
use pando_query::facts::Facts;
use pando_query::stage::{Input, Row, Runner, Step};
use pando_routing::ShardId;
use pando_rpc::Retry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// How a client reads.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Wanted {
    pub(crate) docs_max: u64,
    /// Asked of shards, where the client says.
    pub(crate) batch_size: Option<u64>,
    /// How long an empty batch may be waited for.
    pub(crate) wait_ms: Option<i64>,
    /// Only what has been sent already.
    pub(crate) asks_nobody: bool,
}

pub(crate) struct RouterCursor {
    remotes: Remotes,
    merge: Merge,
    /// The merging part of a pipeline.
    stages: Option<Box<Runner>>,
    wakes: Option<Wakes>,
    skip: u64,
    /// How many may still be given.
    left: u64,
    pub(crate) tailable: bool,
    /// Of a change stream.
    watching: Option<Watching>,
    /// It did not fit into the last batch.
    held: Option<DocBuf>,
    resume: Option<DocBuf>,
    over: bool,
}

/// How stages that read something besides are woken.
#[derive(Clone, Default)]
pub(crate) struct Wakes {
    /// Moves when there is something for them.
    pub(crate) sent: Notify,
    /// One of them found nothing.
    pub(crate) waited: Arc<AtomicBool>,
}

/// What a merged stream is to be.
#[derive(Default)]
pub(crate) struct Shape {
    pub(crate) order: Option<Order>,
    /// Of what shards send beside documents.
    pub(crate) strips: Strip,
    pub(crate) stages: Option<Box<Runner>>,
    pub(crate) wakes: Option<Wakes>,
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) tailable: bool,
    pub(crate) watching: Option<Watching>,
}

/// The stream as stages pull from it.
struct Pulled<'a> {
    merge: &'a mut Merge,
    watching: Option<&'a mut Watching>,
    ask: &'a mut Vec<usize>,
}

impl Input for Pulled<'_> {
    fn next(&mut self) -> Result<Step> {
        Ok(match next_wanted(self.merge, self.watching.as_deref_mut())? {
            Next::Doc(doc) => Step::Row(with_facts(doc)),
            Next::End => Step::Eof,
            Next::Ask(who) => {
                *self.ask = who;
                Step::NeedYield
            }
        })
    }
}

/// The next document of all shards; of a change stream, behind where its reader wants to go on.
fn next_wanted(merge: &mut Merge, mut watching: Option<&mut Watching>) -> Result<Next> {
    loop {
        let next = merge.next();
        if let (Next::Doc(doc), Some(watching)) = (&next, watching.as_deref_mut())
            && !watching.wants(doc)?
        {
            continue;
        }
        return Ok(next);
    }
}

/// A row and what its shard says of it beside the document.
fn with_facts(doc: DocBuf) -> Row {
    let facts = Facts {
        text_score: doc.get("$textScore").and_then(|v| v.as_f64()),
        sort_key: doc.get("$sortKey").and_then(|v| v.as_array()).map(|key| key.to_buf()),
        ..Facts::default()
    };
    let is_known = facts.text_score.is_some() || facts.sort_key.is_some();
    Row::from(Strip::All.apply(doc)).with_facts(is_known.then(|| Box::new(facts)))
}

/// How long a change stream goes on asking for one batch.
struct Wait {
    until: Duration,
    batch_size: Option<u64>,
    /// Shards have been asked.
    begun: bool,
}

impl Wait {
    fn new(ctx: &OpCtx, wanted: Wanted) -> Wait {
        let ms = wanted.wait_ms.unwrap_or(limits::AWAIT_DATA_MS).max(0) as u64;
        let until = ctx.env().clock.mono() + Duration::from_millis(ms);
        Wait { until, batch_size: wanted.batch_size, begun: false }
    }
    /// Everybody is asked at least once.
    fn is_over(&mut self, ctx: &OpCtx) -> bool {
        std::mem::replace(&mut self.begun, true) && ctx.env().clock.mono() >= self.until
    }
    /// Milliseconds for which shards may wait for something to tell: one that has is not kept waiting by the others for long.
    fn slice(&self, ctx: &OpCtx) -> i64 {
        let left = self.until.saturating_sub(ctx.env().clock.mono()).as_millis();
        i64::try_from(left).unwrap_or(i64::MAX).clamp(1, limits::ROUTER_WATCH_SLICE_MS)
    }
}

/// Has a shard write an entry behind `time`, unless it has one: from then on it has sent everything up to there. One that cannot
/// does so by itself after a while: whether this one has.
async fn pass(shards: &Shards, ctx: &OpCtx, shard: &ShardId, time: Timestamp) -> bool {
    let mut b = DocBuilder::new();
    b.i32("appendOplogNote", 1).timestamp("maxClusterTime", Timestamp(time.0.saturating_add(1)));
    b.doc("data", |d| _ = d.str("msg", "a change stream waits for this shard"));
    append_majority(&mut b);
    b.str("$db", "admin");
    shards.call_primary(ctx, shard, &b.finish(), Retry::Idempotent).await.is_ok()
}

impl RouterCursor {
    pub(crate) fn new(remotes: Remotes, first: Vec<Sent>, shape: Shape) -> Result<RouterCursor> {
        // Stages are told of it.
        let strips = if shape.stages.is_none() { shape.strips } else { Strip::Nothing };
        let mut cursor = RouterCursor {
            merge: Merge::new(remotes.all.len(), shape.order, strips),
            remotes,
            stages: shape.stages,
            wakes: shape.wakes,
            skip: shape.skip,
            left: shape.limit.unwrap_or(u64::MAX),
            tailable: shape.tailable,
            watching: shape.watching,
            held: None,
            resume: None,
            over: false,
        };
        for (at, sent) in first.into_iter().enumerate() {
            cursor.take(at, sent)?;
        }
        Ok(cursor)
    }
    /// Over documents that are at hand, of no shard.
    pub(crate) fn with_documents(remotes: Remotes, docs: Vec<DocBuf>, shape: Shape) -> Result<RouterCursor> {
        let mut cursor = RouterCursor::new(remotes, Vec::new(), shape)?;
        cursor.merge = Merge::new(1, None, Strip::Nothing);
        cursor.merge.push(0, docs)?;
        cursor.merge.end(0);
        Ok(cursor)
    }
    fn take(&mut self, at: usize, sent: Sent) -> Result<()> {
        self.merge.push(at, sent.docs)?;
        if let Some(token) = sent.resume {
            match &mut self.watching {
                Some(watching) => self.merge.promise(at, &watching.sent_up_to(at, token))?,
                None => self.resume = Some(token),
            }
        }
        if self.remotes.all[at].id == 0 {
            self.merge.end(at);
        }
        Ok(())
    }
    pub(crate) fn held_bytes(&self) -> u64 {
        self.merge.held_bytes() as u64 + self.stages.as_ref().map_or(0, |s| s.held_bytes())
    }
    /// Where a change stream can go on.
    pub(crate) fn resume_token(&self) -> Option<&DocBuf> {
        match &self.watching {
            Some(watching) => watching.resume_token(self.held.is_some() || self.merge.has_documents()),
            None => self.resume.as_ref().filter(|_| self.remotes.all.len() == 1),
        }
    }
    /// The collection that is watched is gone.
    pub(crate) fn is_invalidated(&self) -> bool {
        self.watching.as_ref().is_some_and(|w| w.invalidated)
    }
    pub(crate) fn is_change_stream(&self) -> bool {
        self.watching.is_some()
    }
    /// Nothing more will come.
    pub(crate) fn is_over(&self) -> bool {
        self.over && self.held.is_none()
    }

    /// The next document, or whom to ask first.
    async fn step(&mut self, ctx: &OpCtx) -> Result<Next> {
        let Some(stages) = &mut self.stages else {
            return next_wanted(&mut self.merge, self.watching.as_mut());
        };
        loop {
            let mut ask = Vec::new();
            let seen = self.wakes.as_ref().map_or(0, |w| w.sent.version());
            let (merge, watching) = (&mut self.merge, self.watching.as_mut());
            match stages.next(&mut Pulled { merge, watching, ask: &mut ask })? {
                Step::Row(row) => {
                    check_result(row.doc())
                        .map_err(|e| e.context("PlanExecutor error during aggregation"))?;
                    return Ok(Next::Doc(DocBuf::from_trusted(row.into_bytes().to_vec())));
                }
                Step::Eof => return Ok(Next::End),
                Step::NeedYield if !ask.is_empty() => return Ok(Next::Ask(ask)),
                // Either a rest, or what is read besides has not come yet.
                Step::NeedYield => match self.wakes.as_ref().filter(|w| w.waited.swap(false, SeqCst)) {
                    Some(wakes) => ctx.interruptible(wakes.sent.changed(seen)).await?,
                    None => ctx.yield_now().await?,
                },
            }
        }
    }

    /// Documents for one batch.
    pub(crate) async fn fill(&mut self, shards: &Shards, ctx: &OpCtx, wanted: Wanted) -> Result<Vec<DocBuf>> {
        let (mut out, mut bytes) = (Vec::new(), 0);
        let mut asked = false;
        let mut wait = Wait::new(ctx, wanted);
        while (out.len() as u64) < wanted.docs_max {
            if self.left == 0 {
                self.over = true;
                break;
            }
            let next = match self.held.take() {
                Some(doc) => Next::Doc(doc),
                None => self.step(ctx).await?,
            };
            match next {
                Next::Doc(_) if self.skip > 0 => self.skip -= 1,
                Next::Doc(doc) => {
                    if !out.is_empty() && bytes + doc.byte_len() + 16 > limits::BSON_USER_BYTES_MAX {
                        self.held = Some(doc);
                        break;
                    }
                    bytes += doc.byte_len() + 16;
                    self.left -= 1;
                    let ends = self.watching.as_mut().is_some_and(|w| w.give(&doc));
                    out.push(doc);
                    if ends {
                        self.over = true;
                        break;
                    }
                }
                Next::End => {
                    self.over = true;
                    break;
                }
                Next::Ask(_) if wanted.asks_nobody => break,
                Next::Ask(who) if self.watching.is_some() => {
                    if !out.is_empty() || wait.is_over(ctx) {
                        break;
                    }
                    self.watch(shards, ctx, &who, &mut wait).await?;
                }
                // What tails a collection waits once, and not while it has something.
                Next::Ask(_) if self.tailable && (asked || !out.is_empty()) => break,
                Next::Ask(who) => {
                    asked = true;
                    self.ask(shards, ctx, &who, wanted).await?;
                }
            }
        }
        // What was found may be newer than a shard that was added meanwhile: nothing of it is given before that is known.
        if let Some(watching) = self.watching.as_ref().filter(|_| !wanted.asks_nobody) {
            let known = ctx.interruptible(shards.catalog.refresh_shards()).await??;
            watching.check_all(known.iter().map(|shard| shard.entry.id.clone()))?;
        }
        // A client that has everything need not ask once more.
        if self.held.is_none() && self.stages.is_none() && (self.left == 0 || self.merge.is_over()) {
            self.over = true;
        }
        Ok(out)
    }

    /// Asks the shards of a change stream once more. Events that wait for what others may have sent before are not kept waiting by
    /// those that have nothing to send: they are made to say so. All that are behind the last event are asked together, also those
    /// that have something to give: asked one after the other, as each runs dry, a thousand shards would take a thousand turns.
    async fn watch(&mut self, shards: &Shards, ctx: &OpCtx, who: &[usize], wait: &mut Wait) -> Result<()> {
        let held = self.merge.last().and_then(|event| Watching::time_of(event));
        let (who, told) = match (held, &mut self.watching) {
            (Some(time), Some(watching)) => {
                let who = self.merge.behind(limits::ROUTER_WATCH_AHEAD_BYTES);
                let late = watching.not_told_to_pass(time, &who);
                let notes = late.iter().map(|at| pass(shards, ctx, &self.remotes.all[*at].shard, time));
                let passed = together(notes.collect()).await;
                late.iter()
                    .zip(&passed)
                    .filter(|(_, passed)| **passed)
                    .for_each(|(at, _)| watching.told(*at, time));
                // Where nobody could, what they have to say by themselves is waited for as long as ever.
                (who, passed.contains(&true))
            }
            _ => (who.to_vec(), false),
        };
        let wait_ms = if told { 1 } else { wait.slice(ctx) };
        let wanted = Wanted { wait_ms: Some(wait_ms), batch_size: wait.batch_size, ..Wanted::default() };
        self.ask(shards, ctx, &who, wanted).await
    }

    async fn ask(&mut self, shards: &Shards, ctx: &OpCtx, who: &[usize], wanted: Wanted) -> Result<()> {
        let calls = who.iter().map(|at| {
            let body = self.remotes.get_more(*at, wanted.batch_size, wanted.wait_ms);
            let host = self.remotes.all[*at].host.clone();
            async move { shards.call_host(ctx, &host, &body).await }
        });
        let replies = together(calls.collect()).await;
        for (at, reply) in who.iter().zip(replies) {
            let reply = reply.inspect_err(|f| {
                if f.code() == pando_base::ErrorCode::CursorNotFound {
                    self.remotes.ended(*at);
                }
            })?;
            let mut sent = self.remotes.heard(*at, &reply.reply)?;
            if self.watching.as_ref().is_some_and(|w| w.looks_up) {
                let mut events = Vec::with_capacity(sent.docs.len());
                for event in sent.docs {
                    events.push(with_image(shards, ctx, event).await?);
                }
                sent.docs = events;
            }
            self.take(*at, sent)?;
        }
        Ok(())
    }
}
