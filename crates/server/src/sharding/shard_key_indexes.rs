//! The index that a sharded collection cannot be without: splits, counts of ranges and moves read by it.
//!
//! It may be any index that has the shard key in front and all documents in it. The last one that is not hidden can neither be
//! dropped nor hidden (370); `dropIndexes: "*"` spares them all.

use super::Sharding;
use pando_access::same_key;
use pando_access::{Access, Collection, DropWhich, Index, IndexRange};
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid};
use pando_bson::{RawDoc, Value};
use pando_command::OpCtx;
use pando_routing::{KeyRange, ShardKey};

impl Sharding {
    /// Of a sharded collection; the config servers are asked where nothing is known.
    pub(crate) async fn shard_key(
        &self,
        access: &Access,
        ctx: &OpCtx,
        ns: &Namespace,
    ) -> Result<Option<ShardKey>> {
        // What belongs to the set alone is not sharded.
        if self.shard_name().is_none() || matches!(ns.db(), "admin" | "local") {
            return Ok(None);
        }
        self.make_known(ns, ctx).await?;
        Ok(access.sharded_by(ns))
    }
}

/// Whether an index finds documents by the key.
pub(crate) fn serves(index: &Index, key: &ShardKey) -> bool {
    let spec = &index.spec;
    let all = spec.partial.is_none() && !spec.sparse && spec.collation.is_none() && !index.is_multikey();
    all && begins_with(index, key)
}
/// Whether the fields of the key are an index's first ones.
pub(crate) fn begins_with(index: &Index, key: &ShardKey) -> bool {
    let mut fields = index.spec.key.iter();
    key.pattern().iter().all(|k| {
        fields.next().is_some_and(|e| {
            e.name() == k.name()
                && match (e.value(), k.value()) {
                    (Value::String(a), Value::String(b)) => a == b,
                    (a, b) => a.is_number() && b.is_number(),
                }
        })
    })
}
/// Whether they have the same directions there.
pub(crate) fn ascends_as(index: &Index, key: &ShardKey) -> bool {
    let falls = |v: Value<'_>| v.as_f64().is_some_and(|n| n < 0.0);
    key.pattern().iter().zip(index.spec.key.iter()).all(|(k, e)| falls(k.value()) == falls(e.value()))
}

/// What `dropIndexes: "*"` drops of a sharded collection.
pub(crate) fn not_serving(coll: &Collection, key: &ShardKey) -> Vec<String> {
    let all = coll.indexes.iter().filter(|i| !i.spec.is_id_index() && !serves(i, key));
    all.map(|i| i.spec.name.clone()).collect()
}

/// # Errors
/// 370 when nothing would serve that is not hidden, and something does now.
pub(crate) fn check_dropped(coll: &Collection, key: &ShardKey, which: &DropWhich<'_>) -> Result<()> {
    check_remains(coll, key, |i| match which {
        DropWhich::All => false,
        DropWhich::Name(name) => i.spec.name == *name,
        DropWhich::Names(names) => names.contains(&i.spec.name.as_str()),
        DropWhich::Key(pattern) => same_key(&i.spec.key, pattern),
    })
}

/// The same of an index that is to be hidden (`collMod {index: {name | keyPattern, hidden: true}}`).
pub(crate) fn check_hidden(coll: &Collection, key: &ShardKey, change: &RawDoc) -> Result<()> {
    if !change.get("hidden").is_some_and(|v| v.is_truthy()) {
        return Ok(());
    }
    let name = change.get("name").and_then(|v| v.as_str().map(str::to_owned));
    let pattern = change.get("keyPattern");
    let pattern = pattern.as_ref().and_then(|v| v.as_doc());
    check_remains(coll, key, |i| match (&name, pattern) {
        (Some(name), _) => i.spec.name == *name,
        (None, Some(pattern)) => same_key(&i.spec.key, pattern),
        (None, None) => false,
    })
}

fn check_remains(coll: &Collection, key: &ShardKey, goes: impl Fn(&Index) -> bool) -> Result<()> {
    let serving = || coll.ready_indexes().iter().filter(|i| serves(i, key) && !i.spec.hidden);
    if serving().any(|i| !goes(i)) || !serving().any(|i| goes(i)) {
        return Ok(());
    }
    let text = "Cannot drop the only compatible index for this collection's shard key";
    Err(Error::new(ErrorCode::CannotDropShardKeyIndex, text))
}

/// A range of a collection by the index over its shard key, if there is one.
///
/// # Errors
/// 26 where the collection is another one or none.
pub(crate) fn range_in(
    access: &Access,
    ns: &Namespace,
    uuid: Uuid,
    key: ShardKey,
    keys: &KeyRange,
) -> Result<IndexRange> {
    let coll = access.definitions().collection(ns).filter(|c| c.uuid == uuid).cloned();
    let coll = coll.ok_or_else(|| {
        Error::new(ErrorCode::NamespaceNotFound, format!("there is no collection {ns} with UUID {uuid} here"))
    })?;
    let index = coll.ready_indexes().iter().find(|i| serves(i, &key)).map(|i| i.spec.name.clone());
    let (start, end) = (keys.start.clone(), keys.index_end().to_vec());
    Ok(IndexRange { ns: ns.clone(), uuid, index, key, start, end })
}
