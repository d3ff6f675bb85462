//! Cursors on shards: opened together or not at all, asked for more, and ended with whoever holds them.

use crate::remote::Shards;
use crate::remote::envelope;
use pando_base::session_id::SessionId;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc, Value};
use pando_command::OpCtx;
use pando_env::Env;
use pando_env::together;
use pando_fleet::Answer;
use pando_metadata_cache::Target;
use pando_monitor::ReadPreference;
use pando_routing::ShardId;
use pando_rpc::{Pool, Retry};
use std::time::Duration;

/// What goes on being true of all commands of one cursor.
#[derive(Clone, Default)]
pub(crate) struct OfSession {
    pub(crate) lsid: Option<SessionId>,
    /// Of the transaction it was opened in.
    pub(crate) txn_number: Option<i64>,
}

impl OfSession {
    pub(crate) fn of(ctx: &OpCtx) -> OfSession {
        OfSession { lsid: ctx.lsid, txn_number: ctx.txn_number.filter(|_| ctx.in_txn()) }
    }
    fn append(&self, b: &mut DocBuilder) {
        envelope::append_session(b, self.lsid.as_ref());
        if let Some(n) = self.txn_number {
            b.i64("txnNumber", n).bool("autocommit", false);
        }
    }
}

/// A shard's part of a cursor.
pub(crate) struct Remote {
    pub(crate) shard: ShardId,
    pub(crate) host: String,
    /// 0 = it has come to its end.
    pub(crate) id: i64,
    pub(crate) ns: String,
}

/// All parts; dropped before their ends, they are killed.
pub(crate) struct Remotes {
    env: Env,
    pool: Pool,
    pub(crate) all: Vec<Remote>,
    session: OfSession,
}

/// A batch as a shard sent it.
pub(crate) struct Sent {
    pub(crate) docs: Vec<DocBuf>,
    pub(crate) resume: Option<DocBuf>,
}

impl Remotes {
    pub(crate) fn none(shards: &Shards, ctx: &OpCtx) -> Remotes {
        let (env, pool) = (shards.env.clone(), shards.fleet.pool.clone());
        Remotes { env, pool, all: Vec::new(), session: OfSession::of(ctx) }
    }

    /// Opens a cursor on each of the targets. Those that opened are closed again when one did not, unless what is missing may be.
    pub(crate) async fn open(
        shards: &Shards,
        ctx: &OpCtx,
        targets: &[Target],
        preference: &ReadPreference,
        allow_partial: bool,
        body: impl Fn(&Target) -> DocBuf,
    ) -> Result<(Remotes, Vec<Sent>, bool)> {
        let mut remotes = Remotes::none(shards, ctx);
        let (mut sent, mut failed, mut partial) = (Vec::new(), None, false);
        let retry = if ctx.in_txn() { Retry::Never } else { Retry::Idempotent };
        for said in shards.scatter(ctx, targets, preference, retry, body).await {
            match said.result {
                Ok(answer) => match remotes.add(said.shard, &answer) {
                    Ok(batch) => sent.push(batch),
                    Err(e) => failed = failed.or(Some(e)),
                },
                Err(f) if allow_partial && is_gone(f.code()) => partial = true,
                // What sends its reader elsewhere says more than what failed there.
                Err(f) if f.code().is(pando_base::codes::class::STALE_ROUTING) => failed = Some(f.error),
                Err(f) => failed = failed.or(Some(f.error)),
            }
        }
        match failed {
            Some(e) => Err(e),
            None => Ok((remotes, sent, partial)),
        }
    }

    fn add(&mut self, shard: ShardId, answer: &Answer) -> Result<Sent> {
        let (id, ns, sent) = parse(&answer.reply, "firstBatch")?;
        self.all.push(Remote { shard, host: answer.host.clone(), id, ns });
        Ok(sent)
    }

    /// The command for a shard's next batch.
    pub(crate) fn get_more(&self, at: usize, batch_size: Option<u64>, wait_ms: Option<i64>) -> DocBuf {
        let remote = &self.all[at];
        let (db, coll) = remote.ns.split_once('.').unwrap_or((&remote.ns, ""));
        let mut b = DocBuilder::new();
        b.i64("getMore", remote.id).str("collection", coll);
        if let Some(n) = batch_size {
            b.i64("batchSize", i64::try_from(n).unwrap_or(i64::MAX));
        }
        if let Some(ms) = wait_ms {
            b.i64("maxTimeMS", ms);
        }
        self.session.append(&mut b);
        b.str("$db", db);
        b.finish()
    }
    /// Takes a shard's answer in.
    pub(crate) fn heard(&mut self, at: usize, reply: &RawDoc) -> Result<Sent> {
        let (id, _, sent) = parse(reply, "nextBatch")?;
        self.all[at].id = id;
        Ok(sent)
    }
    /// A shard has said that its part is gone.
    pub(crate) fn ended(&mut self, at: usize) {
        self.all[at].id = 0;
    }
}

fn parse(reply: &RawDoc, name: &str) -> Result<(i64, String, Sent)> {
    let cursor = reply.get("cursor").and_then(|v| v.as_doc());
    let cursor = cursor.ok_or_else(|| Error::internal("a shard's reply without a cursor"))?;
    let batch = cursor.get(name).and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    let docs = batch.iter().filter_map(|e| e.value().as_doc().map(RawDoc::to_buf)).collect();
    let resume = cursor.get("postBatchResumeToken").and_then(|v| v.as_doc()).map(RawDoc::to_buf);
    let id = cursor.get("id").and_then(|v| v.as_i64()).unwrap_or(0);
    let ns = cursor.get("ns").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    Ok((id, ns, Sent { docs, resume }))
}

/// Errors of a shard that is not there.
fn is_gone(code: ErrorCode) -> bool {
    use pando_base::codes::class;
    code.is(class::NOT_PRIMARY)
        || matches!(
            code,
            ErrorCode::HostUnreachable
                | ErrorCode::FailedToSatisfyReadPreference
                | ErrorCode::NetworkTimeout
                | ErrorCode::HostNotFound
        )
}

impl Drop for Remotes {
    fn drop(&mut self) {
        let open: Vec<Remote> = self.all.drain(..).filter(|r| r.id != 0).collect();
        if open.is_empty() {
            return;
        }
        let (pool, session) = (self.pool.clone(), self.session.clone());
        let limit = Duration::from_millis(limits::CONFIG_READ_MS);
        // One that does not answer is not waited for by the others.
        self.env.spawn("kills cursors", async move {
            let (pool, session) = (&pool, &session);
            let kills = open.iter().map(|remote| async move {
                let (db, coll) = remote.ns.split_once('.').unwrap_or((&remote.ns, ""));
                let mut ids = ArrayBuilder::new();
                ids.value(Value::Int64(remote.id));
                let mut b = DocBuilder::new();
                b.str("killCursors", coll).raw_array("cursors", &ids.finish());
                session.append(&mut b);
                b.str("$db", db);
                // Those that nobody kills go by themselves after a while.
                let _ = pool.call(&remote.host, &b.finish(), Retry::Idempotent, limit).await;
            });
            together(kills.collect()).await;
        });
    }
}
