//! Change streams: the oplog as events, for clients (SYS-073).
//!
//! ```text
//! log, up to the majority commit point ─► entry ─► events in scope ─► the client's stages ─► batch, with a token
//! ```
//! A stream shows what cannot be rolled back any more, so it stays true through every failover, and any member can go
//! on with it: a token names a place in the log, which is the same on all of them.

mod description;
mod event;
pub(crate) mod metrics;
mod pending;
mod scope;
mod split;
mod unfolding;

use crate::cursors::batch::Batch;
use crate::cursors::body::{More, Until};
use crate::cursors::pipeline::check_size;
use crate::replication::Replication;
use crate::settings::Settings;
use crate::tenants::Tenants;
use event::Maker;
use metrics::Metrics;
use pando_access::Access;
use pando_base::limits::BSON_USER_BYTES_MAX;
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp};
use pando_bson::{DocBuf, RawDoc, Value};
use pando_command::{OpCtx, ReadLevel};
use pando_env::Env;
use pando_query::change_stream::{Spec, Start, Token, check_stages};
use pando_query::stage::{Input, Pipeline, Row, RunEnv, Runner, Step};
use pando_storage::{OplogCursor, Storage};
use pending::Pending;
use scope::Scope;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use unfolding::Unfolding;

/// Entries between two looks at whether to stop.
const STEP: u32 = 1000;

/// What streams are made of.
pub(crate) struct ChangeStreams {
    pub(crate) env: Env,
    pub(crate) storage: Storage,
    pub(crate) access: Access,
    pub(crate) replication: Arc<Replication>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) tenants: Option<Arc<Tenants>>,
}

/// An open stream.
pub(crate) struct ChangeStream {
    streams: Arc<ChangeStreams>,
    spec: Spec,
    scope: Scope,
    /// Where it was opened.
    db: String,
    runner: Runner,
    tail: OplogCursor,
    /// The newest entry read; zero before the first.
    read: Timestamp,
    /// The event behind which the stream begins, until it is found.
    looking_for: Option<Token>,
    /// One of a cluster's streams: that event may be another shard's.
    one_of_many: bool,
    /// A transaction whose events are not all made yet.
    unfolding: Option<Unfolding>,
    pending: Pending,
    /// What the stages were given last.
    given: Option<Given>,
    /// Large events come in fragments.
    splits: bool,
    /// What is left of one.
    fragments: VecDeque<(Row, Given)>,
    /// The stream was opened behind so many fragments of this event.
    seen: Option<(Token, usize)>,
    /// A result that did not fit into the last batch.
    stash: Option<(Row, Given)>,
    /// Going on from here misses nothing and repeats nothing.
    position: Token,
    invalidated: bool,
}

#[derive(Clone)]
struct Given {
    token: Token,
    ends: bool,
}

/// The events of one entry as the input of stages.
struct Events<'a> {
    pending: &'a mut Pending,
    given: &'a mut Option<Given>,
}

impl Input for Events<'_> {
    fn next(&mut self) -> Result<Step> {
        let Some(e) = self.pending.pop() else { return Ok(Step::NeedYield) };
        *self.given = Some(Given { token: e.token, ends: e.ends });
        Ok(Step::Row(Row::from(e.doc)))
    }
}

pub(crate) fn history_lost() -> Error {
    Error::new(
        ErrorCode::ChangeStreamHistoryLost,
        "Resume of change stream was not possible, as the resume point may no longer be in the oplog.",
    )
    .with_label(FINAL)
}

/// Checks that need no log: where it may be opened, and with what.
pub(crate) fn check(ctx: &OpCtx, ns: &Namespace, spec: &RawDoc, pipeline: &RawDoc) -> Result<()> {
    check_stages(pipeline)?;
    Scope::of(ns, &Spec::parse(spec)?)?;
    let level = ctx.read_concern.level.filter(|_| ctx.read_concern.given);
    let Some(level) = level.filter(|l| *l != ReadLevel::Majority) else { return Ok(()) };
    let level = level.text();
    Err(Error::new(
        ErrorCode::InvalidOptions,
        format!(
            "Command aggregate does not support {{ readConcern: {{ level: \"{level}\", provenance: \"clientSupplied\" }} \
             }} :: caused by :: Aggregation stage $changeStream cannot run with a readConcern other than 'majority'. \
             Current readConcern: {level}"
        ),
    ))
}

impl ChangeStreams {
    pub(crate) fn open(
        self: &Arc<Self>,
        ctx: &OpCtx,
        ns: &Namespace,
        spec: &RawDoc,
        pipeline: Pipeline,
        env: &RunEnv,
    ) -> Result<ChangeStream> {
        ctx.set_change_stream();
        if !self.replication.member.is_replicated() {
            return Err(Error::location(40573, "The $changeStream stage is only supported on replica sets"));
        }
        let spec = Spec::parse(spec)?;
        let scope = Scope::of(ns, &spec)?;
        let (from, looking_for) = match &spec.start {
            Start::Now => (Timestamp(self.replication.last_applied().ts.0 + 1), None),
            Start::At(ts) => (*ts, None),
            Start::After(token) => (token.time, Some(token.clone())),
        };
        if !matches!(spec.start, Start::Now) {
            self.check_history(from)?;
        }
        if spec.expanded {
            self.metrics.expanded.inc();
        }
        Ok(ChangeStream {
            streams: self.clone(),
            splits: pipeline.splits_events(),
            fragments: VecDeque::new(),
            seen: None,
            runner: pipeline.start(env)?,
            tail: self.storage.log().read(Bound::Included(from), false),
            read: Timestamp::ZERO,
            position: looking_for.clone().unwrap_or_else(|| Token::high_water(from)),
            looking_for,
            one_of_many: false,
            unfolding: None,
            pending: Pending::new(&self.metrics),
            given: None,
            stash: None,
            invalidated: false,
            spec,
            scope,
            db: ns.db().to_owned(),
        })
    }

    /// How far a reader of `read` knows what there is of a database. Nothing of a tenant that is blocked, or elsewhere, is in this log behind
    /// that, and its new owner's clock may be behind this one's.
    fn known_upto(&self, db: &str, read: Timestamp) -> Timestamp {
        let end = self.tenants.as_ref().and_then(|tenants| tenants.blockers.stream_end(db));
        end.map_or(read, |end| read.min(end))
    }
    /// The log must reach back to where a stream begins.
    fn check_history(&self, from: Timestamp) -> Result<()> {
        let log = self.storage.log();
        if log.first() <= from {
            return Ok(());
        }
        let first = log.read(Bound::Unbounded, false).next()?;
        // Nothing came before this one.
        let initiating = first.is_some_and(|(_, entry)| {
            RawDoc::trusted(&entry).get_path("o.msg").and_then(|v| v.as_str()) == Some("initiating set")
        });
        if initiating { Ok(()) } else { Err(history_lost()) }
    }

    /// The commit point passes `seen`, or something else has changed.
    async fn wait_committed(&self, seen: Timestamp, progress: u64) {
        let log = self.storage.log();
        // Somebody waits: entries are made durable, and members report them, at once.
        if self.replication.member.is_alone() {
            log.wait_visible(seen).await;
            // A log that cannot be synced ends the process.
            let _ = log.wait_durable(log.visible()).await;
            return;
        }
        self.replication.progress.await_positions(self.env.clock.mono());
        self.replication.progress.changed().changed(progress).await;
    }
}

impl ChangeStream {
    pub(crate) fn resume_token(&self) -> DocBuf {
        self.position.doc().clone()
    }
    pub(crate) fn is_invalidated(&self) -> bool {
        self.invalidated
    }

    /// Whether a router merges it with those of other shards.
    pub(crate) fn one_of_many(self, one_of_many: bool) -> ChangeStream {
        ChangeStream { one_of_many, ..self }
    }

    /// Appends events until the batch is full or the commit point is reached.
    pub(crate) async fn fill(&mut self, ctx: &OpCtx, batch: &mut Batch<'_>) -> Result<More> {
        ctx.set_change_stream();
        if !self.read.is_zero() && self.streams.storage.log().first() > self.read {
            return Err(history_lost());
        }
        ctx.note_stream(self.position.time, false);
        self.tail.refresh_to(self.streams.replication.committed());
        while !batch.is_full() && !self.invalidated {
            let next = match self.stash.take() {
                Some(next) => Some(next),
                None => self.next(ctx).await?,
            };
            let Some((row, given)) = next else { break };
            if !batch.has_room(row.bytes().len()) {
                self.stash = Some((row, given));
                break;
            }
            batch.push(row.bytes());
            ctx.note_stream(self.position.time, true);
            self.position = given.token;
            self.invalidated = given.ends;
        }
        Ok(if self.invalidated { More::No } else { More::Yes })
    }

    /// The next event that the stages let through; `None` at the commit point.
    async fn next(&mut self, ctx: &OpCtx) -> Result<Option<(Row, Given)>> {
        let mut step = 0;
        loop {
            if let Some(fragment) = self.fragments.pop_front() {
                return Ok(Some(fragment));
            }
            let mut events = Events { pending: &mut self.pending, given: &mut self.given };
            match self.runner.next(&mut events)? {
                Step::Row(row) => {
                    let Some(given) = self.given.clone() else {
                        return Err(Error::internal("a change stream's stages made an event of nothing"));
                    };
                    check_token(&row, &given.token).map_err(|e| e.context(when(ctx)))?;
                    let seen = self.seen.take().filter(|(event, _)| event.is_same(&given.token));
                    // With images an event may be larger than any document.
                    if self.splits && row.bytes().len() > BSON_USER_BYTES_MAX {
                        let seen = seen.map_or(0, |(_, n)| n);
                        self.fragments = fragments(&row, &given, seen).map_err(|e| e.context(when(ctx)))?;
                        self.streams.metrics.large_split.inc();
                        continue;
                    }
                    check_size(&row).inspect_err(|_| {
                        self.streams.metrics.large_failed.inc();
                    })?;
                    if seen.is_some() {
                        return Err(not_split().context(when(ctx)));
                    }
                    return Ok(Some((row, given)));
                }
                // The stages want a pause: the events at hand come first, then the log goes on.
                Step::NeedYield if !self.pending.is_empty() => {
                    ctx.yield_now().await?;
                    continue;
                }
                Step::NeedYield | Step::Eof => {}
            }
            // The last event was not for this client; what it says of the stream counts all the same.
            if let Some(given) = self.given.take().filter(|g| g.ends) {
                self.position = given.token;
                self.invalidated = true;
                return Ok(None);
            }
            step += 1;
            if step == STEP || self.unfolding.is_some() {
                step = 0;
                ctx.yield_now().await?;
            }
            let more = self.make_events().map_err(|e| e.context(when(ctx)))?;
            if !more {
                return Ok(None);
            }
        }
    }

    /// Goes on with the transaction at hand, or with the next entry; `false` at the commit point.
    fn make_events(&mut self) -> Result<bool> {
        let (streams, spec, scope) = (&*self.streams, &self.spec, &self.scope);
        let mut maker = Maker { streams, spec, scope, out: &mut self.pending };
        if let Some(transaction) = &mut self.unfolding {
            if !maker.operations(transaction)? {
                self.unfolding = None;
            }
        } else {
            let upto = streams.known_upto(&self.db, self.read);
            if self.position.time < upto && self.looking_for.is_none() {
                self.position = Token::high_water(upto);
            }
            let Some((ts, entry)) = self.tail.next()? else { return Ok(false) };
            self.read = ts;
            self.unfolding = maker.entry(entry)?;
        }
        self.skip_to_start()?;
        Ok(true)
    }

    /// Drops what lies before the token that the stream was opened with, and that event itself. One of many gives it: whoever merges
    /// them has to see that somebody has it.
    fn skip_to_start(&mut self) -> Result<()> {
        let Some(wanted) = &self.looking_for else { return Ok(()) };
        while let Some(e) = self.pending.pop() {
            if e.token.is_same(wanted) {
                self.looking_for = None;
                // What ended the stream is behind whoever starts after it.
                if self.one_of_many && !e.ends {
                    self.pending.put_back(e);
                }
                return Ok(());
            }
            if let Some(n) = wanted.fragment_of(&e.token) {
                if !self.splits {
                    return Err(must_split());
                }
                self.seen = Some((e.token.clone(), n + 1));
                self.pending.put_back(e);
                self.looking_for = None;
                return Ok(());
            }
            if e.token.is_after(wanted) && self.one_of_many {
                self.pending.put_back(e);
                self.looking_for = None;
                return Ok(());
            }
            if e.token.is_after(wanted) {
                return Err(not_found(&e.token));
            }
        }
        if self.read > wanted.time && self.one_of_many {
            self.looking_for = None;
        } else if self.read > wanted.time {
            return Err(not_found(wanted));
        }
        Ok(())
    }

    /// Waits for events, then fills the batch.
    pub(crate) async fn await_data(
        &mut self,
        ctx: &OpCtx,
        batch: &mut Batch<'_>,
        until: Until,
    ) -> Result<More> {
        let from = ctx.env().clock.mono();
        loop {
            let progress = self.streams.replication.progress.changed().version();
            let seen = self.streams.replication.committed();
            let more = self.fill(ctx, batch).await?;
            let left = until.deadline.saturating_sub(ctx.env().clock.mono());
            if batch.len() > 0 || more == More::No || left.is_zero() {
                ctx.debug(|d| d.awaited = ctx.env().clock.mono().saturating_sub(from));
                return Ok(more);
            }
            let wait = ctx.env().timeout(left, self.streams.wait_committed(seen, progress));
            ctx.interruptible(wait).await?;
        }
    }
}

fn not_found(seen: &Token) -> Error {
    Error::new(
        ErrorCode::ChangeStreamFatalError,
        format!("cannot resume stream; the resume token was not found. {}", seen.doc()),
    )
    .with_label(FINAL)
}
fn must_split() -> Error {
    Error::new(
        ErrorCode::ChangeStreamFatalError,
        "To resume from a split event, the $changeStream pipeline must include a $changeStreamSplitLargeEvent stage",
    )
    .with_label(FINAL)
}
fn not_split() -> Error {
    Error::new(
        ErrorCode::ChangeStreamFatalError,
        "Attempted to resume from a split event fragment, but the event in the resumed stream was not split",
    )
    .with_label(FINAL)
}

/// Those of a large event that come behind the first `seen`.
fn fragments(row: &Row, given: &Given, seen: usize) -> Result<VecDeque<(Row, Given)>> {
    let all = split::split(RawDoc::trusted(row.bytes()), &given.token, BSON_USER_BYTES_MAX)?;
    let last = all.len();
    let rest = all.into_iter().enumerate().skip(seen);
    Ok(rest
        .map(|(n, (token, doc))| (Row::from(doc), Given { token, ends: given.ends && n + 1 == last }))
        .collect())
}
const FINAL: &str = "NonResumableChangeStreamError";

fn when(ctx: &OpCtx) -> &'static str {
    match ctx.command {
        "getMore" => "Executor error during getMore",
        _ => crate::cursors::pipeline::ERROR_CONTEXT,
    }
}

/// The event's `_id` is what a client comes back with.
fn check_token(row: &Row, token: &Token) -> Result<()> {
    let doc = RawDoc::trusted(row.bytes());
    if let Some(Value::Document(id)) = doc.get("_id")
        && id.as_bytes() == token.doc().as_bytes()
    {
        return Ok(());
    }
    let found = doc.elem("_id").map_or_else(|| "{}".to_owned(), |e| format!("{{ {e} }}"));
    Err(Error::new(
        ErrorCode::ChangeStreamFatalError,
        format!(
            "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. \
             Modifying the _id field of an event makes it impossible to resume the stream from that point. Only \
             transformations that retain the unmodified _id field are allowed. Expected: {{ _id: {} }} but found: {found}",
            token.doc()
        ),
    )
    .with_label(FINAL))
}
