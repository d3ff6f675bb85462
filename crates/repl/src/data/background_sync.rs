//! The loop above the fetcher: choose a source, look at it, follow it, and decide what its end means
//! (R-SYNC-9..11, R-FETCH-9).

use crate::data::fetcher::{End, Fetcher};
use crate::data::metadata::op_time_of;
use crate::data::queue::Queue;
use crate::data::{Deps, Stop};
use pando_base::{Error, ErrorCode, OpTime, limits};
use pando_bson::{DocBuf, RawDoc, Value, doc};
use pando_env::Component;
use pando_oplog::fetch::Refusal;
use pando_rpc::{Failure, Kind, Retry};
use std::sync::Arc;
use std::time::Duration;

const PROBE_LIMIT: Duration = Duration::from_secs(pando_base::limits::SYNC_SOURCE_PROBE_SECS_MAX);

pub(crate) async fn run(deps: Deps, stop: Stop, to: Arc<Queue>, last: OpTime) {
    let mut sync = BackgroundSync { deps, stop, to, last, oldest_seen: None, too_stale: false };
    while !sync.stop.is_asked() {
        let pause = match sync.deps.upper.choose_source(sync.last) {
            Some(source) => sync.with_source(&source).await,
            None => {
                sync.nobody_left();
                true
            }
        };
        if pause {
            sync.pause().await;
        }
    }
    sync.deps.progress.set_source(None);
}

/// What a probe tells of a source.
pub(crate) struct Probe {
    pub(crate) rbid: i32,
    pub(crate) oldest: OpTime,
}

struct BackgroundSync {
    deps: Deps,
    stop: Stop,
    to: Arc<Queue>,
    /// Newest entry fetched.
    last: OpTime,
    /// The oldest entry of a candidate that had nothing for us any more, since one was usable.
    oldest_seen: Option<OpTime>,
    too_stale: bool,
}

impl BackgroundSync {
    /// Before the next try: a second, or less when something is heard of the other members.
    async fn pause(&self) {
        let news = self.deps.upper.news();
        let seen = news.version();
        let env = &self.deps.env;
        let least = env.clock.sleep(Duration::from_millis(limits::SYNC_SOURCE_RETRY_MS_MIN));
        self.stop.unless_asked(least).await;
        let most = Duration::from_millis(limits::SYNC_SOURCE_RETRY_MS);
        self.stop.unless_asked(env.timeout(most, news.changed(seen))).await;
    }
    /// Every candidate was tried. If their logs begin after ours ends, only a new copy helps; it is looked at again
    /// now and then, since a member with more of the past may come (R-SYNC-9, R-SYNC-11).
    fn nobody_left(&mut self) {
        let Some(oldest) = self.oldest_seen.filter(|_| !self.too_stale) else { return };
        self.too_stale = true;
        self.deps.env.log.error(
            Component::Repl,
            21805,
            "Too stale to catch up: copies the set's data again when nobody turns up with a longer oplog (resyncWhenTooStale), or at once by { resync: 1 } on this member",
            |a| {
                a.show("lastOpTimeFetched", self.last).show("earliestOpTimeAvailable", oldest);
            },
        );
        self.deps.upper.too_stale(true);
    }
    /// Follows `source` until that ends; true when the next try should wait a moment.
    async fn with_source(&mut self, source: &str) -> bool {
        let Some(probed) = self.stop.unless_asked(probe(&self.deps, source)).await else { return false };
        let probe = match probed {
            Ok(probe) => probe,
            Err(f) => {
                let ms = match f.kind {
                    Kind::TimedOut => limits::DENY_PROBE_TIMED_OUT_MS,
                    _ => limits::DENY_PROBE_FAILED_MS,
                };
                self.deny(source, ms, &f.error);
                return true;
            }
        };
        if probe.oldest.ts > self.last.ts {
            self.begins_too_late(source, probe.oldest);
            return true;
        }
        self.oldest_seen = None;
        self.too_stale = false;
        self.deps.upper.too_stale(false);
        self.deps.env.log.info(Component::Repl, 21799, "Sync source candidate chosen", |a| {
            a.str("syncSource", source).show("lastOpTimeFetched", self.last);
        });
        self.deps.progress.set_source(Some(source.to_owned()));
        let end = self.follow(source, &probe).await;
        self.deps.progress.set_source(None);
        self.deps.upper.source_left();
        self.judge(source, end).await
    }

    /// Its log no longer has, or never had, what comes after ours.
    fn begins_too_late(&mut self, source: &str, oldest: OpTime) {
        self.oldest_seen = Some(self.oldest_seen.map_or(oldest, |o| o.min(oldest)));
        self.deps.upper.begins_too_late(source, oldest);
        self.deny(source, limits::DENY_TOO_STALE_MS, &Refusal::TooStale { oldest }.error());
    }

    /// Runs the fetcher, again after a cut connection if it had been of use.
    async fn follow(&mut self, source: &str, probe: &Probe) -> End {
        let mut restarts = 0;
        loop {
            let mut fetcher = Fetcher {
                deps: &self.deps,
                stop: &self.stop,
                to: &self.to,
                source,
                rbid: probe.rbid,
                oldest: Some(probe.oldest),
                retried: restarts > 0,
                stays: false,
                good: 0,
            };
            let end = fetcher.run(&mut self.last).await;
            if fetcher.good > 1 {
                restarts = 0;
            }
            if let End::Failed(f) = &end
                && matches!(f.kind, Kind::Refused | Kind::Reset)
            {
                self.deps.upper.connection_lost(source);
            }
            match &end {
                End::Failed(f) if restarts < limits::FETCHER_RESTARTS_MAX => {
                    restarts += 1;
                    self.deps.env.log.info(
                        Component::Repl,
                        21274,
                        "Recreating cursor for oplog fetcher",
                        |a| {
                            a.str("syncSource", source).show("lastOpTimeFetched", self.last).data("error", f);
                        },
                    );
                }
                _ => return end,
            }
        }
    }

    async fn judge(&mut self, source: &str, end: End) -> bool {
        match end {
            End::Stopped | End::BetterSource => false,
            End::Failed(f) => {
                self.deny(source, limits::DENY_PROBE_FAILED_MS, &f.error);
                // A source that answers with an error will do so again; one that died has a successor.
                f.kind == Kind::Command
            }
            End::Invalid(e) => {
                self.deny(source, limits::DENY_PROBE_FAILED_MS, &e);
                true
            }
            End::Refused(Refusal::Diverged { mine, theirs }) => {
                // Since the probe this host may have copied the set's data, into a log that begins later.
                match self.stop.unless_asked(probe(&self.deps, source)).await {
                    Some(Ok(probe)) if probe.oldest.ts > mine.ts => {
                        self.begins_too_late(source, probe.oldest)
                    }
                    Some(Ok(_)) => {
                        self.deps.upper.diverged(source, &Refusal::Diverged { mine, theirs }.error());
                    }
                    Some(Err(f)) => self.deny(source, limits::DENY_PROBE_FAILED_MS, &f.error),
                    None => {}
                }
                true
            }
            End::Refused(r) => {
                self.deny(source, limits::DENY_TOO_STALE_MS, &r.error());
                true
            }
        }
    }
    fn deny(&self, source: &str, ms: u64, why: &Error) {
        self.deps.env.log.info(Component::Repl, 5929000, "Sync source is avoided for a while", |a| {
            a.str("syncSource", source).u64("millis", ms).data("error", &why);
        });
        self.deps.upper.deny_source(source, Duration::from_millis(ms), &why.message);
        self.deps.pool.forget(source);
    }
}

fn without_oplog() -> Failure {
    let text = "the sync source has no usable oplog";
    Failure::new(Kind::Command, Error::new(ErrorCode::InvalidSyncSource, text))
}

/// Rollback number and oldest entry of a source (R-SYNC-10).
pub(crate) async fn probe(deps: &Deps, source: &str) -> Result<Probe, Failure> {
    let ask = doc! { "replSetGetRBID": 1, "$db": "admin" }.to_raw();
    let reply = deps.pool.call(source, &ask, Retry::Idempotent, PROBE_LIMIT).await?;
    let rbid = reply.get("rbid").and_then(|v| v.as_i64()).ok_or_else(without_oplog)? as i32;
    let first = end_of_oplog(deps, source, 1).await?.ok_or_else(without_oplog)?;
    let oldest = entry_time(&first);
    if oldest.ts.is_zero() {
        return Err(without_oplog());
    }
    Ok(Probe { rbid, oldest })
}

fn entry_time(entry: &RawDoc) -> OpTime {
    op_time_of(Some(Value::Document(entry)))
}

/// The oldest (`1`) or newest (`-1`) entry of a source.
pub(crate) async fn end_of_oplog(deps: &Deps, source: &str, natural: i32) -> Result<Option<DocBuf>, Failure> {
    let ask = doc! {
        "find": "oplog.rs", "sort": { "$natural": natural }, "limit": 1, "singleBatch": true,
        "projection": { "ts": 1, "t": 1, "wall": 1 },
        "$readPreference": { "mode": "secondaryPreferred" }, "$db": "local"
    };
    let reply = deps.pool.call(source, &ask.to_raw(), Retry::Idempotent, PROBE_LIMIT).await?;
    let batch = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array());
    Ok(batch.and_then(|b| b.first()).and_then(|e| e.value().as_doc()).map(RawDoc::to_buf))
}
