//! What the balancer's rounds do for collections that are to have fewer chunks (SH-BAL-7): merges and measurements here, small chunks that go to
//! their neighbours' shards with the other migrations. What it knows is in memory; the phase is stored.

use super::ConfigServer;
use pando_access::Uninterrupted;
use pando_base::{Error, Uuid};
use pando_bson::{DocBuf, DocBuilder};
use pando_config_server::{AllMeasured, Balanced, Defragmentation, Move, Unmeasured};
use pando_env::together;
use pando_routing::{ShardId, ShardKey};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(crate) struct Defragmenter {
    measured: Mutex<AllMeasured>,
    /// How much there is to do, as the last round has found.
    left: Mutex<BTreeMap<Uuid, usize>>,
}

impl Defragmenter {
    fn measured(&self) -> MutexGuard<'_, AllMeasured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn left(&self) -> MutexGuard<'_, BTreeMap<Uuid, usize>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// What is known of those that are defragmented now; the others are forgotten.
    pub(super) fn known_of(&self, collections: &[Balanced]) -> AllMeasured {
        let is_one =
            |uuid: &Uuid| collections.iter().any(|one| one.uuid == *uuid && one.defragmentation.is_some());
        self.left().retain(|uuid, _| is_one(uuid));
        let mut measured = self.measured();
        measured.retain(|uuid, _| is_one(uuid));
        measured.clone()
    }
    /// Tasks of its phase, as far as they are known.
    pub(crate) fn left_of(&self, uuid: Uuid) -> usize {
        self.left().get(&uuid).copied().unwrap_or(0)
    }
}

impl ConfigServer {
    /// How much was done.
    pub(super) async fn defragment(&self, one: &Defragmentation) -> usize {
        self.defragmenter.left().insert(one.uuid, one.left);
        if one.is_over {
            let ended = self.manager.end_defragmentation_phase(&Uninterrupted, &one.ns, one.uuid, one.phase);
            if let Err(e) = ended.await {
                self.failed("A phase of a defragmentation was not ended", &one.ns, &e);
            }
            return 1;
        }
        together(one.merges.iter().map(|range| self.merge(one, range)).collect()).await;
        together(one.measure.iter().map(|chunk| self.measure(one, chunk)).collect()).await;
        one.merges.len() + one.measure.len()
    }
    async fn merge(&self, one: &Defragmentation, (shard, min, max): &(ShardId, DocBuf, DocBuf)) {
        let mut b = DocBuilder::new();
        b.str("mergeChunks", &one.ns).array("bounds", |a| _ = a.raw_doc(min).raw_doc(max));
        b.doc("writeConcern", |d| _ = d.str("w", "majority").i32("wtimeout", 0)).str("$db", "admin");
        if let Err(e) = self.on_shard(shard, &b.finish()).await {
            self.failed("Chunks were not merged", &one.ns, &e);
        }
    }
    async fn measure(&self, one: &Defragmentation, chunk: &Unmeasured) {
        let mut b = DocBuilder::new();
        b.str("dataSize", &one.ns).raw_doc("keyPattern", &one.key).raw_doc("min", &chunk.min);
        b.raw_doc("max", &chunk.max).bool("estimate", true).str("$db", database_of(&one.ns));
        let size = |reply: DocBuf| {
            let bytes = reply.get("size").and_then(|v| v.as_i64()).and_then(|n| u64::try_from(n).ok());
            bytes.ok_or_else(|| Error::internal(format!("{} tells no size: {reply}", chunk.shard)))
        };
        match self.on_shard(&chunk.shard, &b.finish()).await.and_then(size) {
            Ok(bytes) => {
                let mut all = self.defragmenter.measured();
                all.entry(one.uuid).or_default().note(&chunk.keys.0, &chunk.keys.1, bytes);
            }
            Err(e) => {
                self.failed("A chunk was not measured", &one.ns, &e);
                let mut all = self.defragmenter.measured();
                all.entry(one.uuid).or_default().note_failure(&chunk.keys.0, &chunk.keys.1);
            }
        }
    }
    /// A small chunk that was not moved is left where it is.
    pub(super) fn note_stuck(&self, one: &Move) {
        let start = ShardKey::parse(&one.key).and_then(|key| key.key_of_bound(&one.migration.min));
        if let Ok(start) = start {
            self.defragmenter.measured().entry(one.uuid).or_default().note_stuck(&start);
        }
    }
}

fn database_of(ns: &str) -> &str {
    ns.split_once('.').map_or(ns, |(db, _)| db)
}
