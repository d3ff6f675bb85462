//! What coordinators on the config servers ask for: steps of this node, and commands to shards (see `pando_workflows::configsvr`).

use super::ConfigServer;
use crate::settings::feature_version::{Reach, known};
use crate::settings::user_writes::Phase;
use crate::sharding::acknowledged;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_routing::ShardId;
use pando_workflows::{Target, cluster_parameter, configsvr, feature_version, user_writes};
use std::time::Duration;

impl ConfigServer {
    pub(crate) async fn hear(&self, to: &Target, body: &RawDoc, limit: Duration) -> Result<DocBuf> {
        match to {
            Target::Own => self.own_step(body).await,
            Target::Shard(shard) => {
                let shard = ShardId::new(shard);
                let metadata = self.manager.metadata();
                acknowledged(self.shards.primary(&metadata, &shard, body, limit).await?)
            }
            Target::Host(_) | Target::Set(_) | Target::ConfigServers => Err(unknown(body)),
        }
    }
    async fn own_step(&self, body: &RawDoc) -> Result<DocBuf> {
        match body.first().ok_or_else(|| unknown(body))?.name() {
            configsvr::LOOK => self.look_at_shards(),
            cluster_parameter::KEEP => self.keep_parameter(body).await.map(|()| DocBuf::default()),
            user_writes::KEEP => self.keep_user_writes(body).await.map(|()| DocBuf::default()),
            feature_version::ADVANCE => self.advance(body).await.map(|()| DocBuf::default()),
            _ => Err(unknown(body)),
        }
    }
    /// For shards that are added later, and for who asks.
    async fn keep_parameter(&self, body: &RawDoc) -> Result<()> {
        let given = body.first().and_then(|e| e.value().as_doc());
        let given = given.and_then(|given| given.first()).ok_or_else(|| unknown(body))?;
        let Some(Value::Timestamp(time)) = body.get("clusterParameterTime") else {
            return Err(unknown(body));
        };
        self.settings.keep_cluster_parameter(given.name(), given.value(), time).await
    }
    async fn advance(&self, body: &RawDoc) -> Result<()> {
        let wanted = body.get(feature_version::ADVANCE).and_then(|v| v.as_str().and_then(known));
        let reach = body.get("phase").and_then(|v| v.as_str().map(Reach::of_phase));
        let (Some(wanted), Some(reach)) = (wanted, reach) else { return Err(unknown(body)) };
        let _one = self.settings.feature_version_lock.exclusive(&self.replication.env().clock).await;
        while let Some(at) = self.settings.advance_feature_version(wanted, reach).await? {
            self.replication.await_majority(at).await?;
        }
        Ok(())
    }
    /// The entry of the number is on a majority when the coordinator's next checkpoint is.
    fn look_at_shards(&self) -> Result<DocBuf> {
        let mut b = DocBuilder::new();
        b.timestamp("timestamp", self.replication.note("all shards take part in an operation", "")?);
        let shards = self.manager.metadata().shards()?;
        b.array("shards", |list| {
            for id in shards.iter().filter_map(|shard| shard.get("_id")) {
                list.value(id);
            }
        });
        Ok(b.finish())
    }
    /// For shards that are added later.
    async fn keep_user_writes(&self, body: &RawDoc) -> Result<()> {
        let block = body.get("global").and_then(|v| v.as_bool());
        let phase = body.get("phase").and_then(|v| v.as_str().and_then(Phase::parse));
        let (Some(block), Some(phase)) = (block, phase) else { return Err(unknown(body)) };
        let now = self.settings.blocked_user_writes()?.after(phase, block);
        self.settings.block_user_writes(now).await.map(drop)
    }
}

fn unknown(body: &RawDoc) -> Error {
    Error::internal(format!("no step of a coordinator of config servers: {body}"))
}
