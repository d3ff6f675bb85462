//! Changes of a definition on every shard that owns a part, without a state document (`dropIndexes`, SH-DDL-10).

use super::{Ddl, append_majority};
use pando_base::{Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_env::together;
use pando_metadata_cache::Route;
use pando_routing::{RoutingTable, ShardId};

impl Ddl<'_> {
    /// Whether this shard's part of a collection is as it should be: of one of which it owns nothing no definition has come here since.
    pub(crate) async fn is_authority(&self, ns: &Namespace) -> Result<bool> {
        self.sharding.refresh_anew(ns).await?;
        let known = self.sharding.metadata.known(ns);
        let owns =
            |t: &RoutingTable| t.chunks.parts().iter().any(|p| p.chunks > 0 && p.shard == *self.own_id());
        Ok(known.table().is_none_or(|table| owns(table)))
    }
    /// `command` with the arguments of `body` on all owners but this shard, whose replies are returned. A shard that knows better is
    /// told to look again, once.
    pub(crate) async fn on_other_owners(
        &self,
        ns: &Namespace,
        command: &str,
        body: &RawDoc,
    ) -> Result<Vec<(ShardId, DocBuf)>> {
        self.sharding.refresh_anew(ns).await?;
        let Some(table) = self.sharding.metadata.known(ns).table().cloned() else { return Ok(Vec::new()) };
        let told = |shard: &ShardId| {
            let mut b = DocBuilder::new();
            b.str(command, ns.coll());
            for e in body.iter().skip(1).filter(|e| !pando_command::generic_args::is_generic(e.name_bytes()))
            {
                b.elem(e);
            }
            Route::part(&table, shard).append(&mut b);
            append_majority(&mut b);
            b.str("$db", ns.db());
            b.finish()
        };
        let parts = table.chunks.parts().iter().filter(|p| p.chunks > 0 && p.shard != *self.own_id());
        // All at once: each waits for a majority of its own.
        let calls = parts.map(|part| {
            let body = told(&part.shard);
            async move { Ok((part.shard.clone(), self.on_shard(&part.shard, &body).await?)) }
        });
        together(calls.collect()).await.into_iter().collect()
    }
}
