//! Whether shards have the collections that they should have, and no others.

use super::registered::Registered;
use super::wrong::{same, text, wrong};
use pando_base::Timestamp;
use pando_bson::{DocBuf, RawDoc, Value};
use pando_routing::ShardId;
use std::collections::{BTreeMap, BTreeSet};

/// The collections of a database on one shard, by their names: as `listCollections` lists them.
pub(super) type Local = BTreeMap<String, DocBuf>;

/// Views lie nowhere, nor do time series: their buckets do.
pub(super) fn local(listed: Vec<DocBuf>) -> Local {
    let lies = listed.into_iter().filter(|coll| !matches!(text(coll, "type"), "view" | "timeseries"));
    lies.map(|coll| (text(&coll, "name").to_owned(), coll)).collect()
}

fn uuid(coll: &RawDoc) -> Option<Value<'_>> {
    coll.get_path("info.uuid")
}

/// Collections that are not sharded, on a shard that is not the primary one of their database.
pub(super) fn misplaced(db: &str, shard: &ShardId, here: &Local, sharded: &BTreeSet<&str>) -> Vec<DocBuf> {
    let is_own = |name: &str| name.starts_with("system.") && !name.starts_with("system.buckets.");
    let astray = here.iter().filter(|(name, _)| !sharded.contains(name.as_str()) && !is_own(name));
    let told = astray.map(|(name, coll)| {
        let text =
            "A collection that is not sharded is on another shard than the primary one of its database";
        wrong("MisplacedCollection", text, &format!("{db}.{name}"), |d| {
            d.str("shard", shard.as_str());
            uuid(coll).into_iter().for_each(|v| _ = d.value("localUUID", v));
        })
    });
    told.collect()
}

/// A sharded collection under its name on a shard, with another UUID.
pub(super) fn mismatch(coll: &Registered, shard: &ShardId, local: &RawDoc) -> Option<DocBuf> {
    if uuid(local).is_some_and(|local| same(local, coll.uuid())) {
        return None;
    }
    let text = "The UUID of a sharded collection on a shard is not the one that is registered";
    Some(wrong("CollectionUUIDMismatch", text, &coll.ns, |d| {
        d.str("shard", shard.as_str());
        uuid(local).into_iter().for_each(|v| _ = d.value("localUUID", v));
        d.value("uuid", coll.uuid());
    }))
}

/// A shard owns chunks of a collection that it has not: what was in them is lost.
pub(super) fn missing(coll: &Registered, shard: &ShardId) -> DocBuf {
    let text = "A shard owns chunks of a collection that it does not have";
    wrong("MissingLocalCollection", text, &coll.ns, |d| {
        d.value("uuid", coll.uuid()).str("shard", shard.as_str());
    })
}

/// Whether a shard has said by `getShardVersion` that a collection is not sharded; one that does not know finds out before it answers anybody.
pub(super) fn says_unsharded(reply: &RawDoc) -> bool {
    matches!(reply.get("global"), Some(Value::Timestamp(Timestamp::ZERO)))
}

/// A shard owns chunks of a collection, and takes it for one that is not sharded.
pub(super) fn taken_for_unsharded(coll: &Registered, shard: &ShardId) -> DocBuf {
    let text = "A shard owns chunks of a collection and takes it for one that is not sharded";
    coll.wrong("ShardThinksCollectionIsUnsharded", text, |d| _ = d.str("shard", shard.as_str()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{UUID, fields, registered, told};
    use super::*;
    use pando_bson::DocBuilder;

    fn listed(name: &str, kind: &str, uuid: u8) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("name", name).str("type", kind);
        b.doc("info", |d| _ = d.uuid("uuid", &[uuid; 16]));
        b.finish()
    }
    fn shard() -> ShardId {
        ShardId::new("s1")
    }

    #[test]
    fn what_is_not_sharded_lies_on_the_primary_shard() {
        let here = local(vec![
            listed("astray", "collection", 1),
            listed("sharded", "collection", 2),
            listed("view", "view", 3),
            listed("series", "timeseries", 4),
            listed("system.buckets.series", "collection", 5),
            listed("system.views", "collection", 6),
        ]);
        let found = misplaced("db", &shard(), &here, &BTreeSet::from(["sharded"]));
        let names: Vec<_> = found.iter().map(|f| super::super::wrong::namespace(f)).collect();
        assert_eq!(names, ["db.astray", "db.system.buckets.series"]);
        assert_eq!(text(&found[0], "type"), "MisplacedCollection");
        assert_eq!(fields(&found[0]), ["namespace", "shard", "localUUID"]);
    }

    #[test]
    fn a_sharded_collection_has_one_uuid_everywhere() {
        let coll = registered(r#"{"k": 1}"#);
        assert!(mismatch(&coll, &shard(), &listed("c.d", "collection", UUID[0])).is_none());
        let found = mismatch(&coll, &shard(), &listed("c.d", "collection", 8)).unwrap();
        assert_eq!(text(&found, "type"), "CollectionUUIDMismatch");
        assert_eq!(fields(&found), ["namespace", "shard", "localUUID", "uuid"]);
        let details = |name: &str| found.get_path(&format!("details.{name}")).map(|v| v.to_string());
        assert_ne!(details("localUUID"), details("uuid"));
    }

    #[test]
    fn an_owner_without_the_collection_has_lost_it() {
        let found = missing(&registered(r#"{"k": 1}"#), &shard());
        assert!(told(std::slice::from_ref(&found))[0].starts_with("MissingLocalCollection { uuid: "));
        assert_eq!(fields(&found), ["namespace", "uuid", "shard"]);
    }

    #[test]
    fn a_shard_that_does_not_know_takes_a_collection_for_nothing() {
        for (reply, says) in [
            (r#"{"global": {"$timestamp": {"t": 0, "i": 0}}}"#, true),
            (r#"{"global": {"$timestamp": {"t": 1, "i": 0}}}"#, false),
            (r#"{"global": "UNKNOWN"}"#, false),
        ] {
            assert_eq!(says_unsharded(&super::super::testing::doc(reply)), says, "{reply}");
        }
        let found = taken_for_unsharded(&registered(r#"{"k": 1}"#), &shard());
        assert_eq!(
            told(std::slice::from_ref(&found)),
            ["ShardThinksCollectionIsUnsharded { shard: \"s1\" }"]
        );
        assert_eq!(fields(&found), ["namespace", "collectionUUID", "shard"]);
    }
}
