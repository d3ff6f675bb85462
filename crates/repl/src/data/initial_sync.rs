//! From nothing to a member: the first copy of a set's data (R-IS-1..4, R-IS-7).
//!
//! ```text
//!   source:   ──begin───────── writes and definitions go on ──────────stop──►
//!   here:       │ sessions; entries from the commit point ──► our log    │
//!               │ clone collections, as of begin                        │
//!               └───────────────────────────────── apply begin..stop ───┴─ checkpoint ─► SECONDARY
//! ```
//!
//! The log is the buffer: what is fetched while collections are copied lies where it will stay. Copies are taken at
//! any time between begin and stop; applying every entry in between, in order and tolerantly, brings them to one
//! point. Nobody reads here before that. A marker makes a crash on the way end in an empty node.

use crate::data::background_sync::{Probe, end_of_oplog, probe};
use crate::data::cloner::Cloner;
use crate::data::fetcher::{End, Fetcher};
use crate::data::file_copy::{self, FileCopy};
use crate::data::metadata::{Metadata, op_time_of};
use crate::data::patience::Patience;
use crate::data::progress::Position;
use crate::data::queue::{Chunk, Queue};
use crate::data::sync_status::SyncStatus;
use crate::data::{Deps, Stop, applier, writer};
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value, doc};
use pando_catalog::{Applying, Catalog};
use pando_command::Param;
use pando_env::Component;
use pando_oplog::{EntryView, Meta};
use pando_rpc::Retry;
use pando_storage::Bytes;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(limits::SYNC_SOURCE_CALL_SECS_MAX);

/// A running or finished initial sync.
#[derive(Clone, Default)]
pub struct InitialSync {
    stop: Stop,
    pub status: SyncStatus,
}

/// How an initial sync ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// This node is at one point of the set's history.
    Copied,
    /// Another member's files lie ready; the next start takes them over.
    CopiedFiles,
    /// It was told to stop.
    Stopped,
}

impl InitialSync {
    /// Copies the set's data, as `initialSyncMethod` says. After too many failed attempts there is an error.
    pub async fn run(&self, deps: &Deps) -> Result<Ended> {
        let mut by_files = file_copy::is_wanted(deps)?;
        on_disk(deps, |catalog| catalog.mark_copy(true)).await?;
        let attempts = deps.instance.params.int(Param::numInitialSyncAttempts).max(1) as u32;
        self.status.begin(file_copy::method(by_files), attempts, deps.env.clock.wall_ms());
        let mut attempt = 0;
        while attempt < attempts {
            let Some(source) = self.find_source(deps, attempt + 1).await else { return Ok(Ended::Stopped) };
            let done = self.attempt(deps, &source, by_files).await;
            deps.progress.set_source(None);
            match done {
                Ok(ended) => return Ok(ended),
                Err(_) if self.stop.is_asked() => return Ok(Ended::Stopped),
                Err(e) if by_files && e.code == ErrorCode::InvalidSyncSource => {
                    let text = "Falling back to logical initial sync";
                    deps.env.log.warn(Component::InitSync, 5780600, text, |a| {
                        a.data("error", &e);
                    });
                    by_files = false;
                    self.status.set_method(file_copy::method(false));
                }
                Err(e) => {
                    attempt += 1;
                    self.failed(deps, &source, attempts - attempt, &e);
                    on_disk(deps, Catalog::discard_copy).await?;
                    deps.progress.reset(Position::NULL);
                    self.pause(deps).await;
                }
            }
        }
        Err(Error::new(
            ErrorCode::InitialSyncFailure,
            "The maximum number of retries have been exhausted for initial sync",
        ))
    }
    async fn find_source(&self, deps: &Deps, attempt: u32) -> Option<String> {
        let source = loop {
            if self.stop.is_asked() {
                return None;
            }
            let news = deps.upper.news();
            let seen = news.version();
            if let Some(source) = deps.upper.choose_source(OpTime::NULL) {
                break source;
            }
            let least = deps.env.clock.sleep(Duration::from_millis(limits::SYNC_SOURCE_RETRY_MS_MIN));
            self.stop.unless_asked(least).await;
            let most = Duration::from_millis(limits::INITIAL_SYNC_PAUSE_MS);
            self.stop.unless_asked(deps.env.timeout(most, news.changed(seen))).await;
        };
        deps.env.log.info(Component::InitSync, 21164, "Starting initial sync attempt", |a| {
            a.u64("initialSyncAttempt", u64::from(attempt)).str("syncSource", &source);
        });
        deps.progress.set_source(Some(source.clone()));
        self.status.attempt(&source, deps.env.clock.wall_ms());
        Some(source)
    }
    async fn attempt(&self, deps: &Deps, source: &str, by_files: bool) -> Result<Ended> {
        let (stop, status) = (&self.stop, &self.status);
        let log = &deps.env.log;
        if by_files {
            FileCopy { deps, stop, source, status }.run().await?;
            log.info(Component::InitSync, 9100022, "The sync source's files are copied", |_| {});
            return Ok(Ended::CopiedFiles);
        }
        let at = Attempt { deps, stop, source, status }.run().await?;
        log.info(Component::InitSync, 21163, "Initial sync attempt finished successfully", |a| {
            a.show("lastApplied", at.op_time);
        });
        Ok(Ended::Copied)
    }
    /// For a while without that source.
    fn failed(&self, deps: &Deps, source: &str, left: u32, e: &Error) {
        let why = format!("{}: {}", e.code.name(), e.message);
        self.status.attempt_failed(&why, deps.env.clock.wall_ms());
        deps.env.log.error(Component::InitSync, 21200, "Initial sync attempt failed", |a| {
            a.u64("attemptsLeft", u64::from(left)).str("error", &why);
        });
        let millis = Duration::from_millis(limits::DENY_PROBE_FAILED_MS);
        deps.upper.deny_source(source, millis, "an initial sync from it failed");
    }
    /// The attempt under way ends soon.
    pub fn stop(&self) {
        self.stop.ask();
    }
    async fn pause(&self, deps: &Deps) {
        let pause = deps.env.clock.sleep(Duration::from_millis(limits::INITIAL_SYNC_PAUSE_MS));
        self.stop.unless_asked(pause).await;
    }
}

/// What the source's sessions have done, all entries up to `upto` included.
struct Sessions {
    upto: Timestamp,
    /// The first entry of transactions that were not over then.
    oldest_active: Timestamp,
    docs: Vec<DocBuf>,
}

struct Attempt<'a> {
    deps: &'a Deps,
    stop: &'a Stop,
    source: &'a str,
    status: &'a SyncStatus,
}

fn invalid_source(text: &'static str) -> Error {
    Error::new(ErrorCode::InvalidSyncSource, text)
}

/// The beginning of a log that tells of everything that sessions which live at `ts` have done.
fn long_before(ts: Timestamp) -> Timestamp {
    Timestamp::new(ts.secs().saturating_sub(limits::INITIAL_SYNC_HISTORY_SECS), 0)
}

impl Attempt<'_> {
    async fn run(&self) -> Result<Position> {
        let probe = probe(self.deps, self.source).await?;
        let sessions = self.sessions().await?;
        let (begin, committed) = self.source_applied().await?;
        let first = self.start_log(self.log_begins(begin, committed, sessions.as_ref()), begin).await?;
        self.status.begins_at(probe.rbid, begin.ts);
        let fetching = Fetching::start(self.deps, self.source, self.status, probe.rbid, first);
        let copied = self.copy(begin, &fetching).await;
        fetching.end().await;
        copied?;
        self.deps.hold("initialSyncHangBeforeFinish", self.stop).await;
        if self.probe_again().await?.rbid != probe.rbid {
            return Err(invalid_source("the sync source rolled back during the initial sync"));
        }
        if let Some(sessions) = &sessions {
            self.take_sessions(sessions, begin)?;
        }
        self.apply_after(begin).await?;
        self.finish(sessions.is_some()).await
    }

    fn patience(&self) -> Patience<'_> {
        Patience { deps: self.deps, stop: self.stop, source: self.source, status: self.status }
    }
    /// By now much work would be lost with the source: it gets time.
    async fn probe_again(&self) -> Result<Probe> {
        Ok(self.patience().trying(|| probe(self.deps, self.source)).await?)
    }

    /// Clones, and waits until the log holds everything that the clones may have seen.
    async fn copy(&self, begin: OpTime, fetching: &Fetching) -> Result<()> {
        self.deps.hold("initialSyncHangBeforeCopyingDatabases", self.stop).await;
        let mut cloner = Cloner {
            deps: self.deps,
            stop: self.stop,
            source: self.source,
            status: self.status,
            patience: self.patience(),
            at: Timestamp::ZERO,
            collections: 0,
            documents: 0,
        };
        cloner.run().await?;
        self.deps.hold("initialSyncHangAfterDataCloning", self.stop).await;
        let (stop, _) = self.source_applied().await?;
        self.status.stops_at(stop.ts);
        self.deps.env.log.info(Component::InitSync, 21181, "Finished cloning data", |a| {
            a.u64("collections", cloner.collections).u64("documents", cloner.documents);
            a.show("beginApplyingTimestamp", begin.ts).show("stopTimestamp", stop.ts);
        });
        loop {
            let seen = self.deps.progress.changed().version();
            if self.deps.progress.written().op_time.ts >= stop.ts {
                return Ok(());
            }
            if let Some(e) = fetching.failed() {
                return Err(e);
            }
            if self.stop.is_asked() {
                return Err(Error::new(
                    ErrorCode::InterruptedAtShutdown,
                    "the initial sync was told to stop",
                ));
            }
            let pause = Duration::from_millis(limits::INITIAL_SYNC_PAUSE_MS);
            self.deps.env.timeout(pause, self.deps.progress.changed().changed(seen)).await;
        }
    }

    /// What the source has applied: a copy taken from now on holds at least that. (A secondary's log may be ahead
    /// of its data.) And what a majority has by then.
    async fn source_applied(&self) -> Result<(OpTime, Option<OpTime>)> {
        let ask = doc! {
            "find": "oplog.rs", "sort": { "$natural": -1 }, "limit": 1, "singleBatch": true,
            "$readPreference": { "mode": "secondaryPreferred" },
            "$oplogQueryData": 1, "$replData": 1, "$db": "local"
        };
        let ask = ask.to_raw();
        let reply = self
            .patience()
            .trying(|| self.deps.pool.call(self.source, &ask, Retry::Idempotent, LIMIT))
            .await?;
        match Metadata::of(&reply).query {
            Some(q) if !q.applied.ts.is_zero() => {
                Ok((q.applied, Some(q.committed.op_time).filter(|c| !c.ts.is_zero())))
            }
            _ => {
                let newest = end_of_oplog(self.deps, self.source, -1).await?;
                let newest = newest.ok_or_else(|| invalid_source("the sync source has an empty oplog"))?;
                Ok((op_time_of(Some(Value::Document(&newest))), None))
            }
        }
    }

    /// What sessions have done on the source: retries of writes that the clones hold already must be known as such, here
    /// too. `None` when the log that is copied tells it: the source is a server that keeps it in a collection, or cannot tell, but
    /// its log goes back for as long as sessions live.
    async fn sessions(&self) -> Result<Option<Sessions>> {
        let ask = doc! { "_keptSessions": 1, "$db": "admin" }.to_raw();
        let patience = self.patience();
        let asked =
            patience.trying(|| self.deps.pool.call(self.source, &ask, Retry::Idempotent, LIMIT)).await;
        let reply = match asked {
            Ok(reply) => reply,
            Err(f) if f.code() == ErrorCode::CommandNotFound => return Ok(None),
            Err(f) if f.code() == ErrorCode::LockBusy => {
                return match self.source_log_is_long().await? {
                    true => Ok(None),
                    false => Err(invalid_source("the sync source cannot tell what its sessions have done")),
                };
            }
            Err(f) => return Err(f.into()),
        };
        let oldest_active = match reply.get("oldestActive") {
            Some(Value::Timestamp(ts)) => ts,
            _ => return Err(invalid_source("the sync source tells too little of its sessions")),
        };
        let list = reply.get("sessions").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        let docs = list.iter().filter_map(|e| e.value().as_doc().map(RawDoc::to_buf)).collect();
        Ok(Some(Sessions { upto: op_time_of(reply.get("upto")).ts, oldest_active, docs }))
    }
    /// Whether the source's log begins before the oldest of what sessions may still ask about. A log that was copied may begin
    /// later than that: it tells of nothing that was done before.
    async fn source_log_is_long(&self) -> Result<bool> {
        let oldest = end_of_oplog(self.deps, self.source, 1).await?;
        let newest = end_of_oplog(self.deps, self.source, -1).await?;
        let at = |doc: Option<DocBuf>| doc.map(|d| op_time_of(Some(Value::Document(&d))));
        let (Some(oldest), Some(newest)) = (at(oldest), at(newest)) else { return Ok(false) };
        // The first entry of a set's life belongs to no term.
        Ok(oldest.t < 0 || oldest.ts <= long_before(newest.ts))
    }
    /// Puts them in place, and what our log says between them and `begin`.
    fn take_sessions(&self, sessions: &Sessions, begin: OpTime) -> Result<()> {
        self.deps.upper.take_sessions(&sessions.docs);
        let mut cursor = self.deps.catalog.storage().log().read(Bound::Excluded(sessions.upto), false);
        while let Some((_, entry)) = cursor.next()?.filter(|(ts, _)| *ts <= begin.ts) {
            self.deps.upper.applied_sessions(&[EntryView::parse(RawDoc::trusted(&entry))?]);
        }
        Ok(())
    }

    /// Our log begins where the source's sessions are known and a majority was, so that nobody has to roll back beyond it. Where one
    /// of both is not known, as long before `begin` as sessions live: then it tells of them itself.
    fn log_begins(&self, begin: OpTime, committed: Option<OpTime>, sessions: Option<&Sessions>) -> Timestamp {
        let told = sessions.map(|s| s.upto.min(s.oldest_active).min(begin.ts));
        match (told, committed) {
            (Some(told), Some(committed)) => told.min(committed.ts),
            (told, _) => told.unwrap_or(begin.ts).min(long_before(begin.ts)),
        }
    }
    /// Returns the first entry of our log, which is the source's at `from` or the next one.
    async fn start_log(&self, from: Timestamp, begin: OpTime) -> Result<OpTime> {
        let mut b = DocBuilder::new();
        b.str("find", "oplog.rs");
        b.doc("filter", |f| {
            f.doc("ts", |t| {
                t.timestamp("$gte", from);
            });
        });
        b.i32("batchSize", 1).bool("singleBatch", true);
        b.doc("$readPreference", |d| {
            d.str("mode", "secondaryPreferred");
        });
        // As members read it: the entry whole, with its record id.
        b.i64("term", self.deps.upper.term());
        b.str("$db", "local");
        let reply = self.deps.pool.call(self.source, &b.finish(), Retry::Idempotent, LIMIT).await?;
        let batch = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array());
        let first = batch.and_then(|b| b.first()).and_then(|e| e.value().as_doc());
        let first = first.ok_or_else(|| invalid_source("the sync source has lost its newest entry"))?;
        let meta = Meta::of(first, 0)?;
        let at = meta.op_time;
        if at > begin {
            return Err(invalid_source("the sync source's newest entry has changed"));
        }
        let chunk = Arc::new(Chunk { bytes: Bytes::from(first.as_bytes()), entries: vec![meta] });
        writer::write(self.deps, [&chunk].into_iter())?;
        Ok(at)
    }

    /// Applies our log's entries after `begin`, over copies of different ages.
    async fn apply_after(&self, begin: OpTime) -> Result<()> {
        let mut cursor = self.deps.catalog.storage().log().read(Bound::Excluded(begin.ts), false);
        let mut applied = 0u64;
        loop {
            let (mut bytes, mut entries) = (Vec::new(), Vec::new());
            while bytes.len() < limits::REAPPLY_CHUNK_BYTES {
                let Some((_, entry)) = cursor.next()? else { break };
                entries.push(Meta::of(RawDoc::trusted(&entry), bytes.len())?);
                bytes.extend_from_slice(&entry);
            }
            if entries.is_empty() {
                break;
            }
            applied += entries.len() as u64;
            self.status.applied(entries.len() as u64);
            let mut waiting = VecDeque::from([(Arc::new(Chunk { bytes: bytes.into(), entries }), 0)]);
            while !waiting.is_empty() {
                let batch = applier::Batch::of(&mut waiting);
                applier::apply(self.deps, batch, Applying::InitialSync).await?;
            }
        }
        self.deps.env.log.info(Component::InitSync, 21182, "Finished applying oplog entries", |a| {
            a.u64("entries", applied);
        });
        Ok(())
    }

    /// History starts here: the tables stand at the last entry, and only then the marker goes.
    async fn finish(&self, with_sessions: bool) -> Result<Position> {
        let storage = self.deps.catalog.storage();
        let mut cursor = storage.log().read(Bound::Unbounded, true);
        let (_, top) = cursor.next()?.ok_or_else(|| Error::internal("an initial sync left no log"))?;
        let top = EntryView::parse(RawDoc::trusted(&top))?;
        let at = Position { op_time: top.op_time(), wall: top.wall };
        storage.log().publish(at.op_time.ts);
        storage.log().wait_durable(at.op_time.ts).await?;
        self.deps.catalog.reload_all_views()?;
        storage.set_stable(at.op_time.ts);
        storage.set_oldest(at.op_time.ts);
        let catalog = self.deps.catalog.clone();
        let stands = self.deps.env.offload(move || catalog.checkpoint()).await;
        let stands = stands.unwrap_or_else(|| Err(Error::internal("the checkpoint panicked")))?;
        if stands < at.op_time.ts {
            return Err(Error::internal("the checkpoint of an initial sync does not hold all of it"));
        }
        if with_sessions {
            self.deps.upper.store_session_records(at.op_time).await?;
        }
        on_disk(self.deps, |catalog| catalog.mark_copy(false)).await?;
        self.deps.progress.reset(at);
        Ok(at)
    }
}

/// What waits for the disk, beside the tasks that do not.
async fn on_disk(deps: &Deps, work: impl FnOnce(&Catalog) -> Result<()> + Send + 'static) -> Result<()> {
    let catalog = deps.catalog.clone();
    let done = deps.env.offload(move || work(&catalog)).await;
    done.unwrap_or_else(|| Err(Error::internal("a step of an initial sync panicked")))
}

/// Entries on their way into our log while collections are copied.
struct Fetching {
    stop: Stop,
    queue: Arc<Queue>,
    failed: Arc<Mutex<Option<Error>>>,
}

impl Fetching {
    fn start(deps: &Deps, source: &str, status: &SyncStatus, rbid: i32, first: OpTime) -> Fetching {
        let fetching = Fetching {
            stop: Stop::default(),
            queue: Arc::new(Queue::new(limits::FETCH_BUFFER_BYTES_MAX, &deps.instance.metrics.replication)),
            failed: Arc::default(),
        };
        let (d, stop, queue) = (deps.clone(), fetching.stop.clone(), fetching.queue.clone());
        let (failed, source, status) = (fetching.failed.clone(), source.to_owned(), status.clone());
        fetching.stop.spawn(&deps.env, "initial sync fetcher", async move {
            let patience = Patience { deps: &d, stop: &stop, source: &source, status: &status };
            let end = fetch(&patience, &queue, rbid, first).await;
            *failed.lock().unwrap_or_else(poisoned) = end.err();
        });
        let (d, queue, failed) = (deps.clone(), fetching.queue.clone(), fetching.failed.clone());
        fetching.stop.spawn(&deps.env, "initial sync writer", async move {
            while let Some(chunks) = queue.take_all().await {
                if let Err(e) = writer::write(&d, chunks.iter()) {
                    *failed.lock().unwrap_or_else(poisoned) = Some(e);
                    return;
                }
            }
        });
        fetching
    }
    fn failed(&self) -> Option<Error> {
        self.failed.lock().unwrap_or_else(poisoned).clone()
    }
    async fn end(&self) {
        self.stop.ask();
        self.queue.close();
        self.stop.wait_ended().await;
    }
}

/// Fetches from `first` on until told to stop.
async fn fetch(patience: &Patience<'_>, to: &Queue, rbid: i32, first: OpTime) -> Result<()> {
    let (deps, stop, source) = (patience.deps, patience.stop, patience.source);
    let mut last = first;
    let mut retried = false;
    loop {
        let mut fetcher =
            Fetcher { deps, stop, to, source, rbid, oldest: None, retried, stays: true, good: 0 };
        let end = fetcher.run(&mut last).await;
        if fetcher.good > 1 {
            patience.worked();
        }
        match end {
            End::Stopped => return Ok(()),
            End::BetterSource => {
                return Err(Error::internal("the fetcher of an initial sync left its source"));
            }
            End::Failed(f) => match patience.after(f).await {
                Err(_) if stop.is_asked() => return Ok(()),
                tried => tried?,
            },
            End::Refused(r) => return Err(r.error()),
            End::Invalid(e) => return Err(e),
        }
        retried = true;
    }
}
