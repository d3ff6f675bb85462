//! What the balancer's policy says of the metadata as it is (SH-BAL-1 to SH-BAL-6).

use crate::chunks::Split;
use crate::defragmentation::phase_of;
use crate::manager::CatalogManager;
use crate::metadata::{is_draining, ns, text, zones};
use pando_balancer::{Collection, Measured, Migration, Phase, Settings, Shard, Shards, Tasks, defragment};
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
    /// Where somebody wants it to have fewer chunks.
    pub defragmentation: Option<Phase>,
}

/// Bytes of each collection on each shard.
pub type Sizes = BTreeMap<String, BTreeMap<ShardId, u64>>;

/// One migration, and how much of its range may move.
#[derive(Clone, Debug)]
pub struct Move {
    pub migration: Migration,
    pub uuid: Uuid,
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
    pub defragmentations: Vec<Defragmentation>,
}

/// What is to be done in a collection's phase; nothing of it: it is over.
pub struct Defragmentation {
    pub ns: String,
    pub uuid: Uuid,
    pub phase: Phase,
    pub key: DocBuf,
    /// These become one each.
    pub merges: Vec<(ShardId, DocBuf, DocBuf)>,
    pub measure: Vec<Unmeasured>,
    /// How much there is to do in this phase, as far as that is known.
    pub left: usize,
    pub is_over: bool,
}

/// A chunk of which nobody knows how large it is.
pub struct Unmeasured {
    pub shard: ShardId,
    pub min: DocBuf,
    pub max: DocBuf,
    /// Its bounds as they are compared.
    pub keys: (Vec<u8>, Vec<u8>),
}

/// What has been measured of collections that are defragmented; those that are none of them are forgotten.
pub type AllMeasured = BTreeMap<Uuid, Measured>;

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
        let [balancer, size, merge] =
            ["balancer", "chunksize", "automerge"].map(|name| metadata.setting(name));
        Settings::parse(balancer?.as_deref(), size?.as_deref(), merge?.as_deref())
    }
    /// Those that nobody has excepted.
    pub fn balanced_collections(&self) -> Result<Vec<Balanced>> {
        let all = self.internal.all(&ns("collections"), pando_storage::ReadAt::Latest)?;
        let mut found = Vec::new();
        for doc in &all {
            let entry = CollectionEntry::parse(doc)?;
            if !entry.no_balance && entry.allow_migrations && entry.resharding.is_none() {
                let defragmentation = phase_of(doc);
                found.push(Balanced { ns: entry.ns, uuid: entry.uuid, defragmentation });
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
    pub fn plan_round(
        &self,
        settings: &Settings,
        collections: &[Balanced],
        sizes: &Sizes,
        measured: &AllMeasured,
    ) -> Result<Plan> {
        let mut shards = Shards::new(self.balancer_shards()?);
        let mut plan = Plan::default();
        let (none, nothing) = (BTreeMap::new(), Measured::default());
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
                evens_out: one.defragmentation.is_none(),
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
                let mut found = pando_balancer::migrations(&collection, &mut shards);
                if let Some(phase) = one.defragmentation {
                    let known = measured.get(&one.uuid).unwrap_or(&nothing);
                    let mut tasks = defragment(phase, &collection, known, &mut shards);
                    found.append(&mut tasks.moves);
                    plan.defragmentations.push(planned(entry, phase, &tasks, found.is_empty()));
                }
                let (epoch, max_bytes) = (entry.generation.epoch, collection.max_chunk_bytes);
                let uuid = entry.uuid;
                let of =
                    |migration| Move { migration, uuid, epoch, key: entry.key.pattern().to_buf(), max_bytes };
                plan.moves.extend(found.into_iter().map(of));
            }
        }
        Ok(plan)
    }
}

fn planned(entry: &CollectionEntry, phase: Phase, tasks: &Tasks<'_>, nothing_moves: bool) -> Defragmentation {
    let merge = |run: &pando_balancer::Run<'_>| {
        let (min, max) = run.range();
        (run.shard().clone(), min, max)
    };
    let unmeasured = |chunk: &pando_routing::ChunkRef<'_>| Unmeasured {
        shard: chunk.shard().clone(),
        min: chunk.min().to_buf(),
        max: chunk.max(),
        keys: (chunk.start().to_vec(), chunk.end().to_vec()),
    };
    Defragmentation {
        ns: entry.ns.clone(),
        uuid: entry.uuid,
        phase,
        key: entry.key.pattern().to_buf(),
        merges: tasks.merges.iter().map(merge).collect(),
        measure: tasks.measure.iter().map(unmeasured).collect(),
        left: tasks.left,
        is_over: nothing_moves && tasks.is_over(),
    }
}
