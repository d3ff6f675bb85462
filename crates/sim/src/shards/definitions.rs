//! Collections over all shards: one by a hashed key and one by ranges, with a chunk a shard each, and one that is not sharded. Every
//! shard keeps the chunks of all: a thousand shards with two chunks each in both take more memory than a run should.
//!
//! At the end they are changed on all shards, and dropped.
//!
//! Ranges of a zone to which all shards belong make a chunk each, and are dealt to all; so do what is below and above them.

use super::caller::{at, batch, expect, number};
use super::machines::{Run, shard_name};
use super::writes::{in_d, on};
use pando_bson::{Bson, Document, doc};
use std::time::Duration;

/// Keys of one range.
pub(super) const KEYS_EACH: i64 = 10;

/// However many shards there are: one after the other they would take longer.
const CHANGED_WITHIN: Duration = Duration::from_secs(1);

impl Run {
    /// Chunks of `d.ranged` between the first and the last, which are empty: each has [`KEYS_EACH`] keys.
    pub(super) fn chunks(&self) -> i64 {
        self.n()
    }
    pub(super) fn define(&mut self) -> Result<(), String> {
        self.admin(doc! { "enableSharding": "d", "primaryShard": shard_name(0) })?;
        let n = self.n();
        self.step("shardCollection, hashed, a chunk a shard", 1, |run| {
            let mut body = doc! { "shardCollection": "d.hashed", "key": { "k": "hashed" } };
            body.push("numInitialChunks", n);
            run.admin(body)
        })?;
        self.check_owners("d.hashed", n)?;
        self.step("addShardToZone", n as u64, |run| {
            (0..n as usize).try_for_each(|i| {
                run.admin(doc! { "addShardToZone": shard_name(i), "zone": "all" }).map(drop)
            })
        })?;
        self.step("updateZoneKeyRange, a range a shard", n as u64, |run| {
            (0..n).try_for_each(|i| run.add_range(i * KEYS_EACH))
        })?;
        self.step("shardCollection by ranges, a chunk a shard", 1, |run| {
            run.admin(doc! { "shardCollection": "d.ranged", "key": { "k": 1 } })
        })?;
        self.check_owners("d.ranged", self.chunks() + 2)?;
        self.ok(&doc! { "create": "plain", "$db": "d" })?;
        // One of each kind: a chunk more, and one less.
        self.step("split and mergeChunks", 2, |run| {
            let middle = 5;
            run.admin(doc! { "split": "d.ranged", "middle": { "k": middle } })?;
            let mut merge = doc! { "mergeChunks": "d.ranged" };
            let bounds = [0, KEYS_EACH].map(|k| Bson::from(doc! { "k": k }));
            merge.push("bounds", bounds.to_vec());
            run.admin(merge)
        })?;
        self.check_owners("d.ranged", self.chunks() + 2)
    }
    /// Index, options and the collections themselves, on all shards.
    pub(super) fn redefine(&mut self) -> Result<(), String> {
        let mut index = doc! { "name": "by_g" };
        index.push("key", doc! { "g": 1 });
        let mut create = on("createIndexes", "ranged");
        create.push("indexes", vec![Bson::from(index)]);
        self.step("createIndexes", 1, |run| run.ok(&in_d(create)).map(drop))?;
        let mut change = on("collMod", "ranged");
        change.push("index", doc! { "name": "by_g", "hidden": true });
        let begun = self.world.sim.now();
        self.step("collMod", 1, |run| run.ok(&in_d(change)).map(drop))?;
        expect("all shards change at once", self.world.sim.now() - begun < CHANGED_WITHIN, true)?;
        let mut drop_index = on("dropIndexes", "ranged");
        drop_index.push("index", "by_g");
        self.step("dropIndexes", 1, |run| run.ok(&in_d(drop_index)).map(drop))?;
        self.step("drop of a collection", 1, |run| run.ok(&in_d(on("drop", "hashed"))).map(drop))?;
        self.step("dropDatabase", 1, |run| run.ok(&doc! { "dropDatabase": 1, "$db": "d" }).map(drop))?;
        let body = doc! { "count": "ranged", "$db": "d" };
        expect("documents left", number(&self.ok(&body)?, "n"), 0)?;
        let of_all = self.ok(&doc! { "count": "chunks", "$db": "config" })?;
        expect("chunks left", number(&of_all, "n"), 0)
    }
    fn add_range(&mut self, from: i64) -> Result<(), String> {
        let mut body = doc! { "updateZoneKeyRange": "d.ranged", "zone": "all" };
        body.push("min", doc! { "k": from });
        body.push("max", doc! { "k": from + KEYS_EACH });
        self.admin(body).map(drop)
    }
    pub(super) fn uuid_of(&mut self, ns: &str) -> Result<Bson, String> {
        let entry = self.ok(&doc! { "find": "collections", "filter": { "_id": ns }, "$db": "config" })?;
        let uuid = batch(&entry, "firstBatch").first().and_then(|e| e.get("uuid").cloned());
        uuid.ok_or_else(|| format!("{ns} is not sharded"))
    }
    /// So many chunks, and each shard has some.
    fn check_owners(&mut self, ns: &str, chunks: i64) -> Result<(), String> {
        let mut filter = Document::new();
        filter.push("uuid", self.uuid_of(ns)?);
        let mut by = doc! { "_id": "$shard" };
        by.push("n", doc! { "$sum": 1 });
        let mut body = doc! { "aggregate": "chunks" };
        body.push("pipeline", vec![Bson::from(doc! { "$match": filter }), Bson::from(doc! { "$group": by })]);
        body.push("cursor", Document::new());
        body.push("$db", "config");
        let owners = self.all(&body)?;
        expect("owners", owners.len() as i64, self.n())?;
        expect("chunks", owners.iter().map(|o| number(o, "n")).sum::<i64>(), chunks)?;
        let known = owners.iter().all(|o| at(o, "_id").and_then(Bson::as_str).is_some());
        expect("owners have names", known, true)
    }
}
