//! Definitions that concern several shards, as the primary shard of their database coordinates them (SH-DDL-1).
//!
//! ```text
//!   router ─► _shardsvr… on the primary shard ─► DDL lock ─► other shards: _shardsvr…Participant
//!                                                       └─► config servers: _configsvrCommit… (one transaction)
//!                                                       └─► everybody who takes part reads the new metadata
//! ```
//! What the cluster believes changes with the commit on the config servers, and with nothing else: before it a definition that was cut off
//! leaves collections that nobody routes to, which the next attempt takes over.
//!
//! * [`create_collection`], [`drop_collection`], [`drop_database`], [`everywhere`] — one definition each;
//! * [`participant`] — what other shards do.

pub(crate) mod create_collection;
pub(crate) mod drop_collection;
pub(crate) mod drop_database;
pub(crate) mod everywhere;
pub(crate) mod participant;
pub(crate) mod section;

use crate::Server;
use crate::sharding::{Cluster, Sharding};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::concern::Provenance;
use pando_command::{OpCtx, Request, W, WriteConcern};
use pando_env::Component;
use pando_monitor::ReadPreference;
use pando_routing::ShardId;
use pando_rpc::Retry;
use std::sync::Arc;

/// One definition under way.
pub(crate) struct Ddl<'a> {
    pub(crate) server: &'a Server,
    pub(crate) ctx: &'a OpCtx,
    pub(crate) sharding: &'a Arc<Sharding>,
    pub(crate) cluster: &'a Arc<Cluster>,
}

impl<'a> Ddl<'a> {
    /// 203 where this set is no shard.
    pub(crate) fn new(server: &'a Server, ctx: &'a OpCtx) -> Result<Ddl<'a>> {
        let sharding = server.sharding.as_ref().ok_or_else(|| {
            let text = "Cannot accept sharding commands if not started with --shardsvr";
            Error::new(ErrorCode::NoShardingEnabled, text)
        })?;
        Ok(Ddl { server, ctx, sharding, cluster: sharding.cluster()? })
    }
    pub(crate) fn own_id(&self) -> &'a ShardId {
        &self.cluster.identity.shard
    }
    /// A command to the config servers' primary.
    pub(crate) async fn on_config(&self, body: &RawDoc) -> Result<DocBuf> {
        let call = self.cluster.catalog.config.command(body, Retry::Idempotent);
        acknowledged(self.ctx.interruptible(call).await??)
    }
    /// A command to another shard's primary.
    pub(crate) async fn on_shard(&self, shard: &ShardId, body: &RawDoc) -> Result<DocBuf> {
        let set = self.cluster.catalog.set_of(shard).await?;
        let primary = ReadPreference::default();
        let limit = pando_metadata_cache::limit();
        let call = self.cluster.fleet.call(&set, &primary, body, &[], Retry::Idempotent, limit);
        acknowledged(self.ctx.interruptible(call).await??.reply)
    }
    /// One of this server's own commands, as part of this operation.
    pub(crate) fn request<'b>(name: &'static str, db: &'b str, body: &'b RawDoc) -> Request<'b> {
        Request { name, invoked_as: name, db, body, sequences: &[], exhaust_allowed: false, legacy: false }
    }
    /// Returns when a majority has what this operation has written here.
    pub(crate) async fn committed(&self) -> Result<()> {
        let majority = WriteConcern::of(W::Majority, Provenance::ClientSupplied);
        match self.server.replication.await_write_concern(self.ctx, &majority).await {
            None => Ok(()),
            Some(e) => Err(Error::new(e.code, e.message)),
        }
    }
    /// All shards but this one.
    pub(crate) async fn others(&self) -> Result<Vec<ShardId>> {
        let shards = self.cluster.catalog.refresh_shards().await?;
        let ids = shards.iter().map(|s| s.entry.id.clone());
        Ok(ids.filter(|id| id != self.own_id()).collect())
    }
    /// Has shards read anew what they know of a collection. Whoever misses it learns when the next request comes.
    pub(crate) async fn tell(&self, shards: &[ShardId], ns: &str) {
        let mut b = DocBuilder::new();
        b.str("_flushRoutingTableCacheUpdates", ns).bool("syncFromConfig", true).str("$db", "admin");
        let body = b.finish();
        for shard in shards.iter().filter(|id| *id != self.own_id()) {
            if let Err(e) = self.on_shard(shard, &body).await {
                self.ctx.env().log.info(Component::Sharding, 5_277_901, "A shard was not told", |a| {
                    a.str("shard", shard.as_str()).data("error", &e);
                });
            }
        }
    }
}

/// A reply that is `ok` may tell beside it that no majority has what was done: a definition does not go on upon that.
fn acknowledged(reply: DocBuf) -> Result<DocBuf> {
    let Some(e) = reply.get("writeConcernError").and_then(|v| v.as_doc()) else { return Ok(reply) };
    let code = e.get("code").and_then(|v| v.as_i64()).and_then(|code| i32::try_from(code).ok());
    let text = e.get("errmsg").and_then(|v| v.as_str()).unwrap_or("a majority was not reached").to_owned();
    Err(Error::new(code.map_or(ErrorCode::WriteConcernFailed, ErrorCode), text))
}

pub(crate) fn append_majority(b: &mut DocBuilder) {
    b.doc("writeConcern", |d| {
        d.str("w", "majority");
    });
}
