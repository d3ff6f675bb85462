//! Shards by their names: read at the start, when one is missing, and when somebody tells of a newer topology (SH-REG-1).

use crate::MetadataCache;
use crate::reads::Ask;
use crate::single::Joined;
use pando_base::{Result, Timestamp};
use pando_bson::DocBuf;
use pando_fleet::{SetMonitor, Shard, ShardEntry, Shards};
use pando_routing::ShardId;
use std::sync::Arc;

impl MetadataCache {
    /// Reads `config.shards`.
    pub async fn refresh_shards(&self) -> Result<Arc<Shards>> {
        // What is read is at least as new as what was known before.
        let known = self.config.times.topology();
        let docs = self.config.find(&Ask::of("shards", DocBuf::new())).await?;
        let entries = docs.iter().map(|doc| ShardEntry::parse(doc)).collect::<Result<Vec<_>>>()?;
        let newest = entries.iter().map(|e| e.topology_time).max().unwrap_or(Timestamp::ZERO);
        self.registry.install(entries, newest.max(known));
        Ok(self.registry.shards())
    }
    /// All shards that are known; read again where somebody has told of a newer topology. A command to a thousand shards asks a
    /// thousand times at the same moment, and the list is as long: it is read once for all of them.
    pub async fn shards(&self) -> Result<Arc<Shards>> {
        // Of two readings that are waited for the second has begun after this: nothing newer can be asked for, be the list empty.
        let mut waited = 0;
        loop {
            let shards = self.registry.shards();
            let is_new = !shards.is_empty() && self.config.times.topology() <= shards.topology_time();
            if is_new || waited == 2 {
                return Ok(shards);
            }
            match self.reading_shards.join() {
                Joined::Reads(reading) => return reading.over(self.refresh_shards().await),
                Joined::Waits(waiting) => waited += u32::from(waiting.over().await?),
            }
        }
    }
    /// The set that a shard is; `config` are the config servers.
    pub async fn set_of(&self, shard: &ShardId) -> Result<SetMonitor> {
        if *shard == ShardId::config() {
            return Ok(self.config.set.clone());
        }
        if let Some(Shard { monitor, .. }) = self.shards().await?.get(shard) {
            return Ok(monitor.clone());
        }
        let shards = self.refresh_shards().await?;
        shards.expect(shard).map(|s| s.monitor.clone())
    }
}
