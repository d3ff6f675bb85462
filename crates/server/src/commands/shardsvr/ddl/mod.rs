//! Definitions that concern several shards, as the primary shard of their database coordinates them (SH-DDL-1).
//!
//! ```text
//!   router ─► _shardsvr… on the primary shard ─► workflow (pando_workflows): state document, DDL locks, critical section
//!                                                  ├─► steps here: own_step
//!                                                  ├─► other shards: _shardsvr…Participant
//!                                                  └─► config servers: _configsvrCommit… (one transaction)
//! ```
//! What the cluster believes changes with the commit on the config servers, and with nothing else. A workflow that was begun goes on
//! on the next primary, whoever waits for it.
//!
//! * [`coordinate`] — the command that begins one, or joins it, and waits for its result;
//! * [`steps`], [`coll_mod`], [`create_collection`], [`drop_database`], [`move_primary`], [`refine_shard_key`], [`rename_collection`] — what this shard does for them;
//! * [`user_writes`] — those of users do not begin while they are blocked, and are waited for;
//! * [`participant`] — what other shards do;
//! * [`everywhere`] — changes without a state document: `dropIndexes`.

pub(crate) mod coll_mod;
pub(crate) mod coordinate;
pub(crate) mod create_collection;
pub(crate) mod drop_database;
pub(crate) mod everywhere;
pub(crate) mod move_primary;
pub(crate) mod participant;
pub(crate) mod refine_shard_key;
pub(crate) mod rename_collection;
pub(crate) mod steps;
pub(crate) mod user_writes;

use crate::Server;
use crate::sharding::{Cluster, Sharding};
use pando_access::Guard;
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::concern::Provenance;
use pando_command::{OpCtx, Request, W, WriteConcern};
use pando_repl::services::{Host, Instance};
use pando_routing::ShardId;
use pando_rpc::Sequence;
use std::collections::BTreeSet;
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
    /// What runs workflows on this primary.
    pub(crate) fn host(&self) -> Result<&'a Arc<Host>> {
        let services = self.server.replication.services();
        Ok(&services.ok_or_else(|| Error::internal("services have not started"))?.host)
    }
    /// The workflow under way whose state document has that `_id`.
    pub(crate) async fn find(&self, service: &str, id: Uuid) -> Result<Option<Arc<Instance>>> {
        let mut b = DocBuilder::new();
        b.uuid("_id", &id.0);
        self.ctx.interruptible(self.host()?.find(service, &b.finish())).await?
    }
    /// A former primary does not know what its successors have begun: a majority must agree that this one is no former one.
    pub(crate) async fn still_primary(&self) -> Result<()> {
        self.server.replication.note("is this node primary", "")?;
        self.ctx
            .interruptible(self.server.replication.await_majority(self.server.replication.last_applied()))
            .await?
    }
    /// A command to the config servers' primary.
    pub(crate) async fn on_config(&self, body: &RawDoc) -> Result<DocBuf> {
        self.ctx.interruptible(self.cluster.on_config(body)).await?
    }
    /// A command to another shard's primary.
    pub(crate) async fn on_shard(&self, shard: &ShardId, body: &RawDoc) -> Result<DocBuf> {
        self.on_shard_with(shard, body, &[]).await
    }
    pub(crate) async fn on_shard_with(
        &self,
        shard: &ShardId,
        body: &RawDoc,
        sequences: &[Sequence<'_>],
    ) -> Result<DocBuf> {
        let passes = self.ctx.locks.passes_write_block();
        self.ctx.interruptible(self.cluster.on_shard_with(shard, body, sequences, passes)).await?
    }
    /// DDL locks of a collection, for a definition without a workflow. Those of workflows that were found at the step-up come first.
    pub(crate) async fn lock_collection(&self, ns: &Namespace) -> Result<Vec<Guard>> {
        self.lock_collections(&[ns]).await
    }
    /// The same of several, first all databases, each once, since whoever drops one may already wait for it.
    pub(crate) async fn lock_collections(&self, names: &[&Namespace]) -> Result<Vec<Guard>> {
        if let Some(services) = self.server.replication.services() {
            self.ctx.interruptible(services.host.ready()).await??;
        }
        let (env, locks) = (self.ctx.env(), &self.sharding.ddl_locks);
        let databases: BTreeSet<&str> = names.iter().map(|ns| ns.db()).collect();
        let collections: BTreeSet<&str> = names.iter().map(|ns| ns.as_str()).collect();
        let mut held = Vec::new();
        for db in databases {
            held.push(self.ctx.interruptible(locks.shared(env, db)).await?);
        }
        for ns in collections {
            held.push(self.ctx.interruptible(locks.exclusive(env, ns)).await?);
        }
        Ok(held)
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
}

pub(crate) fn append_majority(b: &mut DocBuilder) {
    b.doc("writeConcern", |d| {
        d.str("w", "majority");
    });
}
