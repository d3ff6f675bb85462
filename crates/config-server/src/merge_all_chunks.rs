//! Neighbouring chunks of a shard that nobody needs apart any more become one: at somebody's command, or by and by (SH-SPLIT-2).

use crate::chunks::merge_details;
use crate::manager::CatalogManager;
use crate::metadata::Stored;
use crate::mutexes::Subject;
use pando_access::Interrupt;
use pando_balancer::{Run, runs};
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_routing::zones::Zones;
use pando_routing::{ChunkRef, ChunkVersion, ShardId, commit};

/// What has become of a shard's part of a collection.
pub struct Merged {
    /// Of that part.
    pub version: ChunkVersion,
    /// How many chunks there were where there are fewer now.
    pub chunks: usize,
}

/// Whether snapshots before the chunk came to its shard are told to nobody any more.
fn is_settled(chunk: ChunkRef<'_>, before: Timestamp) -> bool {
    chunk.since().is_none_or(|since| since <= before)
}

/// The first runs of a shard, with at most so many chunks.
fn runs_of<'a>(
    stored: &'a Stored,
    zones: &Zones,
    shard: &ShardId,
    before: Timestamp,
    max: usize,
) -> Vec<Run<'a>> {
    let owner = stored.table.chunks.number_of(shard);
    let may = |chunk: ChunkRef<'a>| Some(chunk.owner()) == owner && is_settled(chunk, before);
    let mut left = max;
    let mut found = Vec::new();
    for run in runs(&stored.table.chunks, zones, may) {
        let Some(run) = run.shortened(left) else { break };
        left -= run.chunks();
        found.push(run);
    }
    found
}

impl CatalogManager {
    fn zones_of(&self, stored: &Stored) -> Result<Zones> {
        let entry = stored.entry();
        Zones::new(&entry.key, &self.metadata().zone_ranges(&entry.ns)?)
    }
    /// Makes one of neighbouring chunks of a shard wherever their histories need not be known any more, of at most `max` chunks.
    ///
    /// # Errors
    /// 118 where the collection is not sharded, 70 for a shard that nobody knows.
    pub async fn merge_all_chunks(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        of: &str,
        shard: &ShardId,
        max: usize,
    ) -> Result<Merged> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Collection(of.to_owned())).await?;
        if self.metadata().shard(shard.as_str())?.is_none() {
            return Err(Error::new(ErrorCode::ShardNotFound, format!("Shard {shard} not found")));
        }
        let not_sharded = || {
            let text = format!("Collection {of} is not sharded.");
            Error::new(ErrorCode::NamespaceNotSharded, text)
        };
        let (mut left, mut chunks) = (max, 0);
        loop {
            let stored = self.stored(of)?.ok_or_else(not_sharded)?;
            let at_once = left.min(limits::CHUNKS_MERGED_AT_ONCE);
            let zones = self.zones_of(&stored)?;
            let found = runs_of(&stored, &zones, shard, self.node.history_from(), at_once);
            let n: usize = found.iter().map(Run::chunks).sum();
            if n == 0 {
                return Ok(Merged { version: stored.table.shard_version(shard), chunks });
            }
            let ranges: Vec<_> = found.iter().map(Run::range).collect();
            let change = commit::merge_all(&stored.table, shard, &ranges)?;
            let each = change.written.iter().zip(&found);
            let told: Vec<_> = each.map(|(now, run)| merge_details(&stored, now, run.chunks())).collect();
            let changes = self.changes(&stored, change)?;
            self.write_told(interrupt, &changes, client, ("autoMerge", of), &told).await?;
            chunks += n;
            left -= n;
        }
    }
    /// Shards that have chunks of the collection which could become fewer.
    pub fn shards_to_merge_on(&self, of: &str) -> Result<Vec<ShardId>> {
        let Some(stored) = self.stored(of)? else { return Ok(Vec::new()) };
        let (zones, before) = (self.zones_of(&stored)?, self.node.history_from());
        let mut owners: Vec<ShardId> = Vec::new();
        for run in runs(&stored.table.chunks, &zones, |chunk| is_settled(chunk, before)) {
            owners.push(run.shard().clone());
        }
        owners.sort_unstable();
        owners.dedup();
        Ok(owners)
    }
    /// Those collections that nobody has excepted from it.
    pub fn collections_to_merge(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for one in self.balanced_collections()? {
            let entry = self.metadata().collection(&one.ns)?;
            let excepted = entry.and_then(|doc| doc.get("enableAutoMerge").map(|v| !v.is_truthy()));
            if excepted != Some(true) {
                found.push(one.ns);
            }
        }
        Ok(found)
    }
}
