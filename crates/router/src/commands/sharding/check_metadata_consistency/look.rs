//! One look at what the config servers and the shards have of a scope.

use super::super::super::prelude::*;
use super::collections::{self, Local};
use super::indexes::{self, OnShard};
use super::registered::Registered;
use super::scope::{Names, Scope};
use super::{routing_table, zones};
use pando_env::together;
use pando_metadata_cache::Ask;
use pando_routing::{DatabaseEntry, ShardId};
use pando_rpc::Retry;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Looker<'a> {
    pub(super) router: &'a Router,
    pub(super) ctx: &'a OpCtx,
    /// Indexes are compared.
    pub(super) indexes: bool,
}

/// A database that is looked at.
struct Database<'a> {
    name: &'a str,
    /// Nothing where each node has what it has, as in `config`.
    primary: Option<&'a ShardId>,
    only: Names,
    sharded: Vec<Registered>,
}

impl Looker<'_> {
    /// All that does not fit together.
    pub(super) async fn look(&self, scope: &Scope) -> Result<Vec<DocBuf>> {
        // A database is registered before its collections, and goes after them.
        let mut sharded: BTreeMap<String, Vec<Registered>> = BTreeMap::new();
        for doc in self.read("collections", scope.collections()).await? {
            let coll = Registered::parse(doc)?;
            sharded.entry(coll.parts().0.to_owned()).or_default().push(coll);
        }
        let databases = self.read("databases", scope.databases()).await?;
        let databases = databases.iter().map(|doc| DatabaseEntry::parse(doc));
        let databases = databases.collect::<Result<Vec<_>>>()?;
        let primaries: BTreeMap<&str, &ShardId> =
            databases.iter().map(|entry| (entry.name.as_str(), &entry.primary)).collect();
        let mut found = Vec::new();
        for (&name, &primary) in &primaries {
            let sharded = sharded.remove(name).unwrap_or_default();
            let db = Database { name, primary: Some(primary), only: scope.names(name), sharded };
            self.look_at(&db, &mut found).await?;
        }
        for (name, sharded) in sharded {
            match name.as_str() {
                // It is there without being registered.
                "config" => {
                    let db = Database { name: &name, primary: None, only: scope.names(&name), sharded };
                    self.look_at(&db, &mut found).await?;
                }
                _ => found.extend(sharded.iter().map(Registered::hidden)),
            }
        }
        Ok(found)
    }

    async fn look_at(&self, db: &Database<'_>, found: &mut Vec<DocBuf>) -> Result<()> {
        // Chunks before shards: whoever gets one has the collection by then.
        let mut owners = Vec::with_capacity(db.sharded.len());
        for coll in &db.sharded {
            owners.push(self.catalog_of(coll, found).await?);
        }
        let here = self.local(db).await?;
        if let Some(primary) = db.primary {
            let sharded: BTreeSet<&str> = db.sharded.iter().map(|coll| coll.parts().1).collect();
            for (shard, here) in here.iter().filter(|(shard, _)| *shard != primary) {
                found.extend(collections::misplaced(db.name, shard, here, &sharded));
            }
        }
        for (coll, owners) in db.sharded.iter().zip(&owners) {
            self.compare(coll, owners, &here, found).await?;
        }
        Ok(())
    }

    /// What the config servers have of a collection; returns who owns its chunks.
    async fn catalog_of(&self, coll: &Registered, found: &mut Vec<DocBuf>) -> Result<BTreeSet<ShardId>> {
        let mut by_uuid = DocBuilder::new();
        by_uuid.value("uuid", coll.uuid());
        let chunks = self.read("chunks", by_uuid.finish()).await?;
        found.extend(routing_table::check(coll, &chunks));
        let mut by_name = DocBuilder::new();
        by_name.str("ns", &coll.ns);
        found.extend(zones::check(coll, &self.read("tags", by_name.finish()).await?));
        Ok(routing_table::owners(&chunks))
    }

    /// A sharded collection, where it is and where it should be.
    async fn compare(
        &self,
        coll: &Registered,
        owners: &BTreeSet<ShardId>,
        here: &BTreeMap<ShardId, Local>,
        found: &mut Vec<DocBuf>,
    ) -> Result<()> {
        let name = coll.parts().1;
        let mut have = Vec::new();
        for (shard, here) in here {
            match here.get(name).map(|local| collections::mismatch(coll, shard, local)) {
                Some(Some(wrong)) => found.push(wrong),
                Some(None) if owners.contains(shard) => have.push(shard),
                Some(None) => {}
                None if owners.contains(shard) => found.push(collections::missing(coll, shard)),
                None => {}
            }
        }
        // A shard that is none any more has nothing.
        let gone = owners.iter().filter(|owner| !here.contains_key(owner));
        found.extend(gone.map(|owner| collections::missing(coll, owner)));
        let versions = together(have.iter().map(|shard| self.version_on(coll, shard)).collect()).await;
        for (shard, version) in have.iter().zip(versions) {
            if collections::says_unsharded(&version?) {
                found.push(collections::taken_for_unsharded(coll, shard));
            }
        }
        // Indexes are made on owners only: what others have is none of the collection's.
        let listed = together(have.iter().map(|shard| self.indexes_of(coll, shard)).collect()).await;
        let listed = listed.into_iter().collect::<Result<Vec<OnShard>>>()?;
        found.extend(listed.iter().filter_map(|on_shard| indexes::missing(coll, on_shard)));
        if self.indexes {
            found.extend(indexes::inconsistent(coll, &listed));
        }
        Ok(())
    }

    /// Documents of the config servers, in one read.
    async fn read(&self, coll: &str, filter: DocBuf) -> Result<Vec<DocBuf>> {
        let ask = Ask::of(coll, filter);
        self.ctx.interruptible(self.router.catalog.read(&ask)).await?
    }

    /// The collections of a database on each shard.
    async fn local(&self, db: &Database<'_>) -> Result<BTreeMap<ShardId, Local>> {
        let mut b = DocBuilder::new();
        b.i32("listCollections", 1);
        if let Some(only) = &db.only {
            b.doc("filter", |d| {
                d.doc("name", |d| _ = d.array("$in", |a| only.iter().for_each(|name| _ = a.str(name))));
            });
        }
        b.doc("cursor", |_| {}).str("$db", db.name);
        let body = b.finish();
        let of_each = self.of_each_shard(&body).await?;
        Ok(of_each.into_iter().map(|(shard, listed)| (shard, collections::local(listed))).collect())
    }

    async fn indexes_of(&self, coll: &Registered, shard: &ShardId) -> Result<OnShard> {
        let (db, name) = coll.parts();
        let mut b = DocBuilder::new();
        b.str("listIndexes", name).doc("cursor", |_| {}).str("$db", db);
        Ok((shard.clone(), self.listed(shard, &b.finish()).await?))
    }

    /// What a shard knows of a collection, which it asks nobody about.
    async fn version_on(&self, coll: &Registered, shard: &ShardId) -> Result<DocBuf> {
        let mut b = DocBuilder::new();
        b.str("getShardVersion", &coll.ns).str("$db", "admin");
        Ok(self.router.call_primary(self.ctx, shard, &b.finish(), Retry::Idempotent).await?.reply)
    }

    /// What every shard lists at the same time.
    pub(super) async fn of_each_shard(&self, body: &RawDoc) -> Result<Vec<(ShardId, Vec<DocBuf>)>> {
        let shards = self.router.catalog.shards().await?;
        let shards: Vec<ShardId> = shards.iter().map(|s| s.entry.id.clone()).collect();
        let listed = together(shards.iter().map(|shard| self.listed(shard, body)).collect()).await;
        shards.into_iter().zip(listed).map(|(shard, listed)| Ok((shard, listed?))).collect()
    }

    /// All that a shard's primary lists; nothing where it has nothing of that.
    async fn listed(&self, shard: &ShardId, body: &RawDoc) -> Result<Vec<DocBuf>> {
        let answer = match self.router.call_primary(self.ctx, shard, body, Retry::Idempotent).await {
            Ok(answer) => answer,
            Err(f) if f.code() == ErrorCode::NamespaceNotFound => return Ok(Vec::new()),
            Err(f) => return Err(f.into()),
        };
        let (mut all, mut reply) = (Vec::new(), answer.reply);
        loop {
            let cursor = reply.get("cursor").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
            let batch = ["firstBatch", "nextBatch"].iter().find_map(|name| cursor.get(*name)?.as_array());
            let docs = batch.unwrap_or(RawDoc::empty()).iter();
            all.extend(docs.filter_map(|e| e.value().as_doc().map(RawDoc::to_buf)));
            let id = cursor.get("id").and_then(|v| v.as_i64()).unwrap_or(0);
            if id == 0 {
                return Ok(all);
            }
            let ns = cursor.get("ns").and_then(|v| v.as_str()).unwrap_or_default();
            let (db, coll) = ns.split_once('.').unwrap_or((ns, ""));
            let mut b = DocBuilder::new();
            b.i64("getMore", id).str("collection", coll).str("$db", db);
            reply = self.router.call_host(self.ctx, &answer.host, &b.finish()).await?.reply;
        }
    }
}
