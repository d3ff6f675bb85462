//! The arguments of `shardCollection`.

use crate::declare::arguments;
use crate::declare::kinds::{Bool, IndexKey, Integer, Object, Uuid};
use crate::stats::coll_stats::Flag;

arguments! {
    /// What `shardCollection` asks for. Its first element is a whole namespace.
    pub struct ShardCollectionArgs of "shardCollection" as "shardCollection", keeping {
        "key" key: required IndexKey,
        "unique" unique: optional Bool,
        "numInitialChunks" chunks: optional Integer,
        "presplitHashedZones" presplits_zones: optional Bool,
        "collation" collation: optional Object,
        "timeseries" timeseries: optional Object,
        "collectionUUID" collection_uuid: optional Uuid,
        "implicitlyCreateIndex" makes_index: optional Flag,
        "enforceUniquenessCheck" checks_uniqueness: optional Flag,
    }
}
