//! Following one source over one connection (R-FETCH-1..8).
//!
//! The query starts at our own newest entry, so its first document proves that the source has our history. Then
//! batches stream in without being asked for; each is checked, copied once, and queued.

use crate::data::metadata::{Metadata, append_op_time};
use crate::data::queue::{Chunk, Queue};
use crate::data::{Deps, Stop};
use pando_base::{Error, ErrorCode, OpTime, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::Param;
use pando_oplog::fetch::{self, Refusal};
use pando_rpc::{Connection, Exhaust, Failure, Options};
use pando_storage::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Why following a source ended.
#[derive(Debug)]
pub(crate) enum End {
    /// We were told to stop.
    Stopped,
    /// There is a better source.
    BetterSource,
    /// The network, or an answer that is an error.
    Failed(Failure),
    /// The source's log does not continue ours.
    Refused(Refusal),
    /// What it sent cannot be an oplog.
    Invalid(Error),
}

impl From<Failure> for End {
    fn from(f: Failure) -> End {
        End::Failed(f)
    }
}

pub(crate) struct Fetcher<'a> {
    pub(crate) deps: &'a Deps,
    pub(crate) stop: &'a Stop,
    pub(crate) to: &'a Queue,
    pub(crate) source: &'a str,
    /// The source's rollback number when it was probed.
    pub(crate) rbid: i32,
    /// The source's oldest entry then.
    pub(crate) oldest: Option<OpTime>,
    /// A first query after a cut connection has less time.
    pub(crate) retried: bool,
    /// Batches that were good.
    /// An initial sync follows one source to its end: what it has copied is of that one.
    pub(crate) stays: bool,
    pub(crate) good: u64,
}

fn network_limit(ms: u64) -> Duration {
    Duration::from_millis(ms + limits::OPLOG_NETWORK_SLACK_MS)
}

/// What every oplog query carries.
fn append_envelope(b: &mut DocBuilder) {
    b.doc("$readPreference", |d| {
        d.str("mode", "secondaryPreferred");
    });
    b.i32("$replData", 1);
    b.i32("$oplogQueryData", 1);
    b.str("$db", "local");
}

impl Fetcher<'_> {
    fn find(&self, from: OpTime, limit_ms: u64) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("find", "oplog.rs");
        b.doc("filter", |f| {
            f.doc("ts", |t| {
                t.timestamp("$gte", from.ts);
            });
        });
        b.i32("batchSize", limits::OPLOG_QUERY_BATCH_SIZE);
        b.bool("tailable", true).bool("awaitData", true);
        b.i64("maxTimeMS", limit_ms as i64);
        b.i64("term", self.deps.upper.term());
        b.doc("readConcern", |r| {
            r.str("level", "local").timestamp("afterClusterTime", Timestamp::new(0, 1));
        });
        append_envelope(&mut b);
        b.finish()
    }
    fn get_more(&self, id: i64, await_ms: u64) -> DocBuf {
        let mut b = DocBuilder::new();
        b.i64("getMore", id);
        b.str("collection", "oplog.rs");
        b.i32("batchSize", limits::OPLOG_QUERY_BATCH_SIZE);
        b.i64("maxTimeMS", await_ms as i64);
        b.i64("term", self.deps.upper.term());
        append_op_time(&mut b, "lastKnownCommittedOpTime", self.deps.upper.committed());
        append_envelope(&mut b);
        b.finish()
    }

    /// Fetches from `last` on, which moves along.
    pub(crate) async fn run(&mut self, last: &mut OpTime) -> End {
        match self.follow(last).await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }
    async fn follow(&mut self, last: &mut OpTime) -> Result<std::convert::Infallible, End> {
        let options = Options { name: "OplogFetcher", login: self.deps.login.clone(), ..Options::default() };
        let connecting = Connection::connect(&self.deps.env, self.source, &options);
        let mut connection = self.stop.unless_asked(connecting).await.ok_or(End::Stopped)??;
        let metrics = &self.deps.instance.metrics.replication;
        metrics.readers_created.inc();
        let find_ms =
            if self.retried { limits::OPLOG_RETRIED_FIND_MS } else { limits::OPLOG_INITIAL_FIND_MS };
        let find = self.find(*last, find_ms);
        let calling = connection.call(&find, network_limit(find_ms));
        let reply = self.stop.unless_asked(calling).await.ok_or(End::Stopped)??;
        let cursor = self.first_batch(reply, last).await?;
        let await_ms = (self.deps.upper.election_timeout() / 2).as_millis() as u64;
        let limit = network_limit(await_ms);
        let body = self.get_more(cursor, await_ms);
        let mut stream: Exhaust = match self.deps.instance.params.bool(Param::oplogFetcherUsesExhaust) {
            true => connection.stream(&body, limit).await?,
            false => connection.one_by_one(&body, limit).await?,
        };
        loop {
            if !stream.is_open() {
                // The source ends its streams (or knows none): ask for each batch.
                stream.again(&self.get_more(cursor, await_ms), limit).await?;
            }
            let from = self.deps.env.clock.mono();
            // tour: apply 1/9
            let reply = self.stop.unless_asked(stream.next(limit)).await.ok_or(End::Stopped)??;
            metrics.batches.took(self.deps.env.clock.mono().saturating_sub(from));
            self.batch(reply, "nextBatch", last, false).await?;
        }
    }

    async fn first_batch(&mut self, reply: &RawDoc, last: &mut OpTime) -> Result<i64, End> {
        let m = Metadata::of(reply);
        self.check_set(&m)?;
        if let Some(q) = &m.query {
            if q.rbid != self.rbid {
                let text = "the sync source rolled back while it was being chosen";
                return Err(End::Invalid(Error::new(ErrorCode::InvalidSyncSource, text)));
            }
            // By term first: entries of a newer term may have smaller timestamps, where clocks differ.
            if q.applied < *last {
                return Err(End::Refused(Refusal::Behind));
            }
            if q.applied.ts < last.ts {
                return Err(End::Refused(Refusal::Diverged { mine: *last, theirs: q.applied }));
            }
        }
        let id = reply.get_path("cursor.id").and_then(|v| v.as_i64()).unwrap_or(0);
        if id == 0 {
            let text = "the sync source closed the oplog cursor at once";
            return Err(End::Invalid(Error::new(ErrorCode::InvalidSyncSource, text)));
        }
        self.batch(reply, "firstBatch", last, true).await?;
        Ok(id)
    }

    /// A source may leave for a set of its own while it is followed: what it writes then is none of ours (SV-SPLIT-11).
    fn check_set(&self, m: &Metadata) -> Result<(), End> {
        if !self.deps.upper.is_of_another_set(m) {
            return Ok(());
        }
        let text = "the sync source is a member of another set";
        Err(End::Invalid(Error::new(ErrorCode::InvalidSyncSource, text)))
    }

    /// Checks a batch, hands it on, and asks whether to go on with this source.
    async fn batch(
        &mut self,
        reply: &RawDoc,
        name: &str,
        last: &mut OpTime,
        is_first: bool,
    ) -> Result<(), End> {
        let m = Metadata::of(reply);
        self.check_set(&m)?;
        let cursor = reply.get("cursor").and_then(|v| v.as_doc());
        let array = cursor.and_then(|c| c.get(name)).and_then(|v| v.as_array());
        let Some(array) = array else {
            let text = "a reply to an oplog query without a batch";
            return Err(End::Invalid(Error::new(ErrorCode::InvalidSyncSource, text)));
        };
        self.deps.hold("stopReplProducer", self.stop).await;
        let mut entries = fetch::read_batch(array, 0, *last, is_first).map_err(End::Invalid)?;
        let own = self.deps.upper.term();
        if let Some(newest) = entries.last().filter(|e| !pando_base::is_credible_term(e.op_time.t, own)) {
            let text = format!("an entry of the term {}, far above this member's ({own})", newest.op_time.t);
            return Err(End::Invalid(Error::new(ErrorCode::InvalidSyncSource, text)));
        }
        if is_first {
            let known = fetch::check_first(&entries, *last, self.oldest).map_err(End::Refused)?;
            entries.drain(..known);
        }
        let metrics = &self.deps.instance.metrics.replication;
        metrics.fetched_bytes.add(array.byte_len() as u64);
        metrics.fetched_ops.add(entries.len() as u64);
        if entries.is_empty() {
            metrics.empty_batches.inc();
        }
        if let Some(newest) = entries.last() {
            *last = newest.op_time;
            let chunk = Arc::new(Chunk { bytes: Bytes::from(array.as_bytes()), entries });
            // tour: apply 2/9
            let queued = self.stop.unless_asked(self.to.push(chunk)).await;
            if queued != Some(true) {
                return Err(End::Stopped);
            }
        }
        self.good += 1;
        self.deps.upper.saw_metadata(self.source, &m, *last);
        if !self.stays && self.deps.upper.should_change_source(self.source, &m, *last) {
            return Err(End::BetterSource);
        }
        Ok(())
    }
}
