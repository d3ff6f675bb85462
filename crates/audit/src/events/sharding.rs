//! What becomes of a cluster: who is a shard of it, and what lies on several.

use crate::Event;
use pando_bson::RawDoc;

impl Event {
    pub fn enable_sharding(db: &str) -> Event {
        Event::done("enableSharding", |p| {
            p.str("ns", db);
        })
    }
    pub fn shard_collection(ns: &str, key: &RawDoc, unique: bool) -> Event {
        Event::done("shardCollection", |p| {
            p.str("ns", ns).raw_doc("key", key);
            p.doc("options", |o| {
                o.bool("unique", unique);
            });
        })
    }
    /// `connection` is `set/host:port,…`.
    pub fn add_shard(name: &str, connection: &str) -> Event {
        Event::done("addShard", |p| {
            p.str("shard", name).str("connectionString", connection);
        })
    }
    /// It begins to leave, or has left.
    pub fn remove_shard(name: &str) -> Event {
        Event::done("removeShard", |p| {
            p.str("shard", name);
        })
    }
}
