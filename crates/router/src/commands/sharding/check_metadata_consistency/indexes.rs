//! Whether the shards that own chunks of a collection have the index of its shard key, and have all indexes alike.

use super::registered::Registered;
use super::wrong::{same, text, wrong};
use pando_bson::{DocBuf, RawDoc, Value};
use pando_routing::{ShardId, ShardKey};
use std::collections::BTreeMap;

/// The indexes of a collection on one shard, as `listIndexes` lists them.
pub(super) type OnShard = (ShardId, Vec<DocBuf>);

/// A shard without an index that finds every document by the shard key.
pub(super) fn missing(coll: &Registered, (shard, indexes): &OnShard) -> Option<DocBuf> {
    if indexes.iter().any(|index| serves(index, &coll.key)) {
        return None;
    }
    let text = "A shard has no index on the shard key of a collection";
    Some(wrong("MissingShardKeyIndex", text, &coll.ns, |d| {
        d.str("shard", shard.as_str()).raw_doc("shardKey", coll.key.pattern());
    }))
}

/// As shards judge by themselves which index may not be dropped.
fn serves(index: &RawDoc, key: &ShardKey) -> bool {
    let of_some = ["partialFilterExpression", "collation"].iter().any(|name| index.elem(*name).is_some());
    let of_some = of_some || index.get("sparse").is_some_and(|v| v.is_truthy());
    let mut fields = index.get("key").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty()).iter();
    let begins = key.pattern().iter().all(|k| {
        fields.next().is_some_and(|f| {
            f.name() == k.name()
                && match (f.value(), k.value()) {
                    (Value::String(a), Value::String(b)) => a == b,
                    (a, b) => a.is_number() && b.is_number(),
                }
        })
    });
    begins && !of_some
}

/// Indexes that some of the owners have and others have not, or have in another way.
pub(super) fn inconsistent(coll: &Registered, owners: &[OnShard]) -> Vec<DocBuf> {
    let mut by_name: BTreeMap<&str, Vec<(&ShardId, &RawDoc)>> = BTreeMap::new();
    for (shard, indexes) in owners {
        indexes.iter().for_each(|index| by_name.entry(text(index, "name")).or_default().push((shard, index)));
    }
    let told = by_name.iter().filter_map(|(name, on)| {
        let mut with = on.iter().map(|(shard, _)| *shard).peekable();
        // Both are in the same order.
        let without = |(shard, _): &&OnShard| with.next_if(|with| *with == shard).is_none();
        let without: Vec<&OnShard> = owners.iter().filter(without).collect();
        let specs: Vec<&RawDoc> = on.iter().map(|(_, spec)| *spec).collect();
        let properties = differing(&specs);
        (!without.is_empty() || !properties.is_empty()).then(|| {
            let text = "An index of a sharded collection is not the same on all shards that own chunks";
            wrong("InconsistentIndex", text, &coll.ns, |d| {
                d.doc("info", |d| {
                    d.array("missingFromShards", |a| {
                        without.iter().for_each(|(shard, _)| _ = a.str(shard.as_str()));
                    });
                    d.array("inconsistentProperties", |a| {
                        for (k, v) in &properties {
                            a.doc(|d| _ = d.str("k", k).value("v", *v));
                        }
                    });
                    d.str("indexName", name);
                });
            })
        })
    });
    told.collect()
}

/// Whatever only some specifications of an index say, each once: properties by their names, and what they are.
fn differing<'a>(specs: &[&'a RawDoc]) -> Vec<(&'a str, Value<'a>)> {
    // What a property is, and how many say so.
    let mut said: BTreeMap<&str, Vec<(Value<'a>, usize)>> = BTreeMap::new();
    // `ns` was told by servers of old only, and says nothing of the index.
    for e in specs.iter().flat_map(|spec| spec.iter()).filter(|e| e.name() != "ns") {
        let values = said.entry(e.name()).or_default();
        match values.iter_mut().find(|(v, _)| same(*v, e.value())) {
            Some((_, n)) => *n += 1,
            None => values.push((e.value(), 1)),
        }
    }
    let all = said.into_iter().flat_map(|(name, values)| values.into_iter().map(move |(v, n)| (name, v, n)));
    all.filter(|(.., n)| *n < specs.len()).map(|(name, v, _)| (name, v)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{doc, fields, registered, told};
    use super::*;

    fn on(shard: &str, indexes: &[&str]) -> OnShard {
        (ShardId::new(shard), indexes.iter().map(|index| doc(index)).collect())
    }
    const ID: &str = r#"{"v": 2, "key": {"_id": 1}, "name": "_id_"}"#;
    const A: &str = r#"{"v": 2, "key": {"a": 1}, "name": "a_1"}"#;

    #[test]
    fn an_index_that_begins_with_the_shard_key_and_has_everything_serves() {
        let coll = registered(r#"{"a": 1, "b": "hashed"}"#);
        for (index, is_missing) in [
            (r#"{"key": {"a": 1, "b": "hashed"}}"#, false),
            (r#"{"key": {"a": 1.0, "b": "hashed", "c": 1}, "sparse": false}"#, false),
            (r#"{"key": {"a": 1}}"#, true),
            (r#"{"key": {"b": "hashed", "a": 1}}"#, true),
            (r#"{"key": {"a": 1, "b": 1}}"#, true),
            (r#"{"key": {"a": 1, "b": "hashed"}, "sparse": true}"#, true),
            (r#"{"key": {"a": 1, "b": "hashed"}, "partialFilterExpression": {"x": 1}}"#, true),
            (r#"{"key": {"a": 1, "b": "hashed"}, "collation": {"locale": "de"}}"#, true),
        ] {
            assert_eq!(missing(&coll, &on("s0", &[ID, index])).is_some(), is_missing, "{index}");
        }
        let found = missing(&coll, &on("s0", &[])).unwrap();
        assert_eq!(
            told(&[found]),
            ["MissingShardKeyIndex { shard: \"s0\", shardKey: { a: 1, b: \"hashed\" } }"]
        );
    }

    #[test]
    fn the_same_indexes_in_any_order_are_consistent() {
        let coll = registered(r#"{"k": 1}"#);
        let long = r#"{"name": "a_1", "key": {"a": 1.0}, "v": {"$numberLong": "2"}, "ns": "db.c.d"}"#;
        assert_eq!(told(&inconsistent(&coll, &[on("s0", &[ID, A]), on("s1", &[long, ID])])), [""; 0]);
        assert_eq!(told(&inconsistent(&coll, &[on("s0", &[ID, A])])), [""; 0]);
        assert_eq!(told(&inconsistent(&coll, &[])), [""; 0]);
    }

    #[test]
    fn an_index_that_some_owners_have_not_is_told_with_those() {
        let coll = registered(r#"{"k": 1}"#);
        let found = inconsistent(&coll, &[on("s0", &[ID]), on("s1", &[ID, A]), on("s2", &[ID])]);
        let info = "missingFromShards: [ \"s0\", \"s2\" ], inconsistentProperties: [], indexName: \"a_1\"";
        assert_eq!(told(&found), [format!("InconsistentIndex {{ info: {{ {info} }} }}")]);
        assert_eq!(fields(&found[0]), ["namespace", "info"]);
    }

    #[test]
    fn what_an_index_is_on_some_owners_only_is_told_once() {
        let coll = registered(r#"{"k": 1}"#);
        let ttl = |seconds: i32, more: &str| {
            format!(r#"{{"v": 2, "key": {{"a": 1}}, "name": "a_1", "expireAfterSeconds": {seconds}{more}}}"#)
        };
        let (soon, late) = (ttl(600, ""), ttl(3600, r#", "hidden": true"#));
        let owners = [on("s0", &[&soon]), on("s1", &[&late]), on("s2", &[&soon])];
        let properties = "{ k: \"expireAfterSeconds\", v: 600 }, { k: \"expireAfterSeconds\", v: 3600 }, { k: \"hidden\", v: true }";
        let info =
            format!("missingFromShards: [], inconsistentProperties: [ {properties} ], indexName: \"a_1\"");
        assert_eq!(
            told(&inconsistent(&coll, &owners)),
            [format!("InconsistentIndex {{ info: {{ {info} }} }}")]
        );
    }
}
