//! Commands of config servers to shards: whatever a set's members are just now, its primary is asked.

use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc};
use pando_config_server::Metadata;
use pando_env::Env;
use pando_fleet::{Fleet, Monitors};
use pando_monitor::ReadPreference;
use pando_routing::{ForceJumbo, ShardId};
use pando_rpc::{Options, Pool, Retry};
use std::time::Duration;

pub(crate) struct ShardCalls(Fleet);

/// A range of a collection, and where it is to go.
pub(crate) struct RangeMove<'a> {
    pub(crate) ns: &'a str,
    pub(crate) from: &'a ShardId,
    pub(crate) to: &'a ShardId,
    /// `None`: as much below `max` as one migration moves, at most from the beginning of the chunk; the donor finds out where that is.
    pub(crate) min: Option<&'a RawDoc>,
    /// `None`: as much from `min` on as one migration moves, at most to the end of the chunk; the donor finds out where that is.
    pub(crate) max: Option<&'a RawDoc>,
    pub(crate) epoch: ObjectId,
    /// What one migration moves at most.
    pub(crate) max_bytes: u64,
    pub(crate) force: ForceJumbo,
}

impl ShardCalls {
    pub(super) fn new(env: &Env, options: Options, pool: Pool) -> ShardCalls {
        let monitors = Monitors::new(env.clone(), options, pool.clone());
        ShardCalls(Fleet { env: env.clone(), monitors, pool })
    }
    /// What the primary of a shard answers. The command may be sent again where nobody heard what came of it.
    ///
    /// # Errors
    /// 70 for a shard that nobody knows; whatever the shard says.
    pub(crate) async fn primary(
        &self,
        metadata: &Metadata,
        shard: &ShardId,
        body: &RawDoc,
        limit: Duration,
    ) -> Result<DocBuf> {
        let not_found = || {
            let text = format!("Shard {shard} not found");
            Error::new(ErrorCode::ShardNotFound, text)
        };
        let entry = metadata.shard(shard.as_str())?.ok_or_else(not_found)?;
        let entry = pando_fleet::ShardEntry::parse(&entry)?;
        let set = self.0.monitors.of(&entry.set, entry.hosts.iter().map(String::as_str));
        let primary = ReadPreference::default();
        let answer = self.0.call(&set, &primary, body, &[], Retry::Idempotent, limit).await;
        Ok(answer.map_err(Error::from)?.reply)
    }
    /// Has the donor move a range; `how` are further arguments. Returns when it has moved, or why it has not, as far as that is known.
    pub(crate) async fn move_range(
        &self,
        metadata: &Metadata,
        range: &RangeMove<'_>,
        how: impl FnOnce(&mut DocBuilder),
    ) -> Result<()> {
        let mut b = DocBuilder::new();
        b.str("_shardsvrMoveRange", range.ns).str("toShard", range.to.as_str());
        b.str("fromShard", range.from.as_str());
        range.min.iter().for_each(|min| _ = b.raw_doc("min", min));
        range.max.iter().for_each(|max| _ = b.raw_doc("max", max));
        b.object_id("epoch", range.epoch).i64("maxChunkSizeBytes", range.max_bytes.cast_signed());
        range.force.append(&mut b);
        how(&mut b);
        b.doc("writeConcern", |d| _ = d.str("w", "majority").i32("wtimeout", 0)).str("$db", "admin");
        let limit = Duration::from_millis(limits::MIGRATION_MS_MAX);
        self.primary(metadata, range.from, &b.finish(), limit).await.map(drop)
    }
}
