//! What the balancer's policy says of the metadata as it is (SH-BAL-1 to SH-BAL-6).

use crate::chunks::Split;
use crate::manager::CatalogManager;
use crate::metadata::{is_draining, ns, text, zones};
use pando_balancer::{Collection, Migration, Settings, Shard, Shards};
use pando_base::{Result, Uuid};
use pando_bson::{DocBuf, ObjectId};
use pando_routing::zones::Zones;
use pando_routing::{CollectionEntry, ShardId};
use std::collections::BTreeMap;

/// A collection that may be balanced.
#[derive(Clone, Debug)]
pub struct Balanced {
    pub ns: String,
    pub uuid: Uuid,
}

/// Bytes of each collection on each shard.
pub type Sizes = BTreeMap<String, BTreeMap<ShardId, u64>>;

/// One migration, and how much of its range may move.
#[derive(Clone, Debug)]
pub struct Move {
    pub migration: Migration,
    pub epoch: ObjectId,
    /// The pattern of the shard key.
    pub key: DocBuf,
    pub max_bytes: u64,
}

/// What is to be done now.
#[derive(Default)]
pub struct Plan {
    pub splits: Vec<Split>,
    /// No shard is in two of them.
    pub moves: Vec<Move>,
}

/// The collection's own size of chunks, or everybody's.
pub(crate) fn max_chunk_bytes(entry: &CollectionEntry, settings: &Settings) -> u64 {
    let own = entry.max_chunk_bytes.and_then(|n| u64::try_from(n).ok());
    own.unwrap_or(settings.max_chunk_bytes)
}

impl CatalogManager {
    /// # Errors
    /// 2 for settings that nobody can go by.
    pub fn balancer_settings(&self) -> Result<Settings> {
        let metadata = self.metadata();
        Settings::parse(metadata.setting("balancer")?.as_deref(), metadata.setting("chunksize")?.as_deref())
    }
    /// Those that nobody has excepted.
    pub fn balanced_collections(&self) -> Result<Vec<Balanced>> {
        let all = self.internal.all(&ns("collections"), pando_storage::ReadAt::Latest)?;
        let mut found = Vec::new();
        for doc in &all {
            let entry = CollectionEntry::parse(doc)?;
            if !entry.no_balance && entry.allow_migrations && entry.resharding.is_none() {
                found.push(Balanced { ns: entry.ns, uuid: entry.uuid });
            }
        }
        Ok(found)
    }
    pub fn balancer_shards(&self) -> Result<Vec<Shard>> {
        let of = |doc: &DocBuf| {
            Ok(Shard {
                id: ShardId::new(text(doc, "_id")?),
                zones: zones(doc).into_iter().map(str::to_owned).collect(),
                draining: is_draining(doc),
            })
        };
        self.metadata().shards()?.iter().map(of).collect()
    }
    /// Decides upon what is stored now; collections in the order in which they are given.
    pub fn plan_round(&self, settings: &Settings, collections: &[Balanced], sizes: &Sizes) -> Result<Plan> {
        let mut shards = Shards::new(self.balancer_shards()?);
        let mut plan = Plan::default();
        let none = BTreeMap::new();
        for one in collections {
            let Some(stored) = self.stored(&one.ns)? else { continue };
            let entry = stored.entry();
            if entry.uuid != one.uuid || !entry.allow_migrations {
                continue;
            }
            let zones = Zones::new(&entry.key, &self.metadata().zone_ranges(&one.ns)?)?;
            let collection = Collection {
                ns: &one.ns,
                chunks: &stored.table.chunks,
                zones: &zones,
                bytes: sizes.get(&one.ns).unwrap_or(&none),
                max_chunk_bytes: max_chunk_bytes(entry, settings),
                forces_jumbo: settings.forces_jumbo,
            };
            let cuts = pando_balancer::splits(&collection);
            let is_cut = !cuts.is_empty();
            plan.splits.extend(cuts.into_iter().map(|cut| Split {
                ns: one.ns.clone(),
                epoch: entry.generation.epoch,
                timestamp: Some(entry.generation.timestamp),
                min: cut.min,
                max: cut.max,
                points: cut.at,
                shard: cut.shard,
            }));
            // What is cut now moves in the next round.
            if !is_cut {
                let found = pando_balancer::migrations(&collection, &mut shards);
                let (epoch, max_bytes) = (entry.generation.epoch, collection.max_chunk_bytes);
                let of = |migration| Move { migration, epoch, key: entry.key.pattern().to_buf(), max_bytes };
                plan.moves.extend(found.into_iter().map(of));
            }
        }
        Ok(plan)
    }
}
