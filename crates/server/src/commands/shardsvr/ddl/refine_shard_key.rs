//! What the primary shard of the database, and each owner, have to do for `refineCollectionShardKey` (SYS-267). The order of things is
//! `pando_workflows::refine_shard_key`'s.

use super::Ddl;
use super::create_collection::check_unique_index;
use crate::sharding::shard_key_indexes::{ascends_as, begins_with, serves};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_routing::{RoutingTable, ShardId, ShardKey};

fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidOptions, text.into())
}

impl Ddl<'_> {
    /// What the config servers know, and whether it can become what is asked for. Asking them first, this node has heard of every time
    /// that they have: the new generation is behind all earlier ones.
    pub(super) async fn look_at_shard_key(&self, ns: &Namespace, body: &RawDoc) -> Result<DocBuf> {
        let lost = || Error::internal(format!("a coordinator's state without a request: {body}"));
        let key = body.get("request").and_then(|v| v.as_doc()?.get("newShardKey")?.as_doc());
        let key = ShardKey::parse(key.ok_or_else(lost)?)?;
        self.check_has_not_moved(ns.db()).await?;
        self.sharding.refresh_anew(ns).await?;
        let known = self.sharding.metadata.known(ns);
        let Some(table) = known.table() else {
            let text = format!("Collection {ns} is not sharded.");
            return Err(Error::new(ErrorCode::NamespaceNotSharded, text));
        };
        let old = &table.collection.key;
        if *old == key {
            return Ok(DocBuf::default());
        }
        if !old.is_prefix_of(&key) {
            return Err(invalid(format!(
                "refineCollectionShardKey shard key {} does not extend the current shard key {}",
                key.pattern(),
                old.pattern()
            )));
        }
        let (own, others): (Vec<ShardId>, _) = owners(table).partition(|shard| shard == self.own_id());
        if !own.is_empty() {
            self.check_shard_key_candidate(ns, &key)?;
        }
        let mut b = DocBuilder::new();
        let at = self.server.replication.note("a shard key is refined", ns.as_str())?;
        b.doc("commit", |d| {
            d.timestamp("oldTimestamp", table.collection.generation.timestamp);
            d.object_id("epoch", crate::object_id::new_object_id(self.ctx.env())).timestamp("timestamp", at);
        });
        b.array("shards", |list| others.iter().for_each(|shard| _ = list.str(shard.as_str())));
        Ok(b.finish())
    }

    /// Whether an index of this shard's part finds documents by the key, and none keeps documents different that this key would not.
    pub(crate) fn check_shard_key_candidate(&self, ns: &Namespace, key: &ShardKey) -> Result<()> {
        let coll = self.server.access.definitions().collection(ns).cloned();
        let coll = coll.ok_or_else(|| {
            Error::new(ErrorCode::NamespaceNotFound, format!("there is no collection {ns} here"))
        })?;
        for index in coll.indexes.iter().filter(|i| i.spec.unique && i.name() != "_id_") {
            check_unique_index(ns, index, key)?;
        }
        let candidates = || coll.ready_indexes().iter().filter(|i| begins_with(i, key) && ascends_as(i, key));
        if candidates().any(|i| serves(i, key) && !i.spec.hidden) {
            return Ok(());
        }
        let is_near = candidates().any(|i| !i.spec.sparse && i.spec.collation.is_none());
        Err(invalid(match is_near {
            true => "couldn't find valid index for shard key",
            false => {
                "Please create an index that starts with the proposed shard key before refining the shard key of the \
                 collection"
            }
        }))
    }
}

fn owners(table: &RoutingTable) -> impl Iterator<Item = ShardId> {
    table.chunks.parts().iter().filter(|p| p.chunks > 0).map(|p| p.shard.clone())
}
