//! `shardCollection` on the primary shard of the database (SH-DDL-7): the collection and its index here and on all shards that begin with
//! a part, then chunks and entry on the config servers.

use super::section::CriticalSection;
use super::{Ddl, append_majority};
use crate::commands;
use pando_access::{Collection, Index};
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid};
use pando_bson::{DocBuilder, RawDoc, Value};
use pando_metadata_cache::Ask;
use pando_routing::initial::Beginning;
use pando_routing::zones::{ZoneRange, Zones};
use pando_routing::{Chunk, ChunkVersion, CollectionEntry, Generation, ShardId, ShardKey};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is asked for.
pub(crate) struct Wanted<'a> {
    pub(crate) ns: Namespace,
    pub(crate) key: ShardKey,
    pub(crate) unique: bool,
    pub(crate) chunks: Option<usize>,
    /// Only `{locale: "simple"}` may be given.
    pub(crate) collation: Option<&'a RawDoc>,
    /// An index over the key is made where there is none.
    pub(crate) makes_index: bool,
}

fn invalid(text: String) -> Error {
    Error::new(ErrorCode::InvalidOptions, text)
}

impl Ddl<'_> {
    /// Returns what the collection is from now on; the same request once more finds it so.
    pub(crate) async fn create_collection(&self, wanted: &Wanted<'_>) -> Result<(Uuid, ChunkVersion)> {
        let ns = &wanted.ns;
        let _locks = self.sharding.ddl_locks.collection(self.ctx.env(), ns.db(), ns.as_str()).await;
        self.sharding.refresh_anew(ns).await?;
        if let Some(table) = self.sharding.metadata.known(ns).table() {
            return already(&table.collection, wanted).map(|uuid| (uuid, table.version()));
        }
        let before = self.own_collection(wanted)?;
        let section = CriticalSection::enter(self, ns).await;
        if before.is_none() {
            self.create_here(ns).await?;
        }
        let coll = self.own_collection(wanted)?;
        let coll = coll.ok_or_else(|| Error::internal("a collection was made and is not there"))?;
        let is_empty = self.server.access.internal_collections().first(ns)?.is_none();
        self.ensure_index(&coll, wanted, is_empty).await?;
        self.committed().await?;
        let at = self.server.replication.note("a collection is sharded", ns.as_str())?;
        let chunks = self.first_chunks(wanted, is_empty, at).await?;
        let mut owners: Vec<ShardId> = chunks.iter().map(|c| c.shard.clone()).collect();
        owners.sort();
        owners.dedup();
        let coll = self.own_collection(wanted)?.unwrap_or(coll);
        self.create_elsewhere(&owners, &coll).await?;
        let epoch = crate::object_id::new_object_id(self.ctx.env());
        let entry = entry_of(wanted, Generation { epoch, timestamp: at }, coll.uuid, self);
        let version = self.commit_collection(&entry, &chunks).await?;
        self.sharding.refresh_anew(ns).await?;
        section.settled();
        self.tell(&owners, ns.as_str()).await;
        Ok((coll.uuid, version))
    }

    /// The collection as it is here, if it is of a kind that can be sharded.
    fn own_collection(&self, wanted: &Wanted<'_>) -> Result<Option<Arc<Collection>>> {
        let definitions = self.server.access.definitions();
        if definitions.is_view(&wanted.ns) {
            let text = format!("Namespace {} is a view, not a collection", wanted.ns);
            return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
        }
        let Some(coll) = definitions.collection(&wanted.ns) else { return Ok(None) };
        if coll.is_capped() {
            return Err(invalid("can't shard a capped collection".to_owned()));
        }
        let simple = |c: &RawDoc| c.get("locale").and_then(|v| v.as_str()) == Some("simple");
        if let Some(default) = &coll.options.collation
            && !wanted.collation.is_some_and(simple)
        {
            let text = format!(
                "Collection has default collation: {default}. Must specify collation {{locale: 'simple'}}"
            );
            return Err(Error::bad_value(text));
        }
        for index in coll.indexes.iter().filter(|i| i.spec.unique && i.name() != "_id_") {
            check_unique_index(&wanted.ns, index, &wanted.key)?;
        }
        Ok(Some(coll.clone()))
    }

    async fn create_here(&self, ns: &Namespace) -> Result<()> {
        let mut b = DocBuilder::new();
        b.str("create", ns.coll());
        let body = b.finish();
        commands::create_as(self.server, self.ctx, Ddl::request("create", ns.db(), &body), None).await
    }

    async fn ensure_index(&self, coll: &Collection, wanted: &Wanted<'_>, is_empty: bool) -> Result<()> {
        if coll.ready_indexes().iter().any(|i| serves(i, wanted)) {
            return Ok(());
        }
        if !is_empty || !wanted.makes_index {
            let text = "Please create an index that starts with the proposed shard key before sharding the collection";
            return Err(invalid(text.to_owned()));
        }
        let mut b = DocBuilder::new();
        b.str("createIndexes", wanted.ns.coll());
        b.array("indexes", |list| {
            list.doc(|d| {
                d.raw_doc("key", wanted.key.pattern()).str("name", &index_name(&wanted.key));
                if wanted.unique {
                    d.bool("unique", true);
                }
                if coll.options.collation.is_some() {
                    d.doc("collation", |c| {
                        c.str("locale", "simple");
                    });
                }
            });
        });
        let body = b.finish();
        let request = Ddl::request("createIndexes", wanted.ns.db(), &body);
        commands::create_indexes(self.server, self.ctx, request).await
    }

    async fn first_chunks(
        &self,
        wanted: &Wanted<'_>,
        is_empty: bool,
        at: pando_base::Timestamp,
    ) -> Result<Vec<Chunk>> {
        let shards = self.cluster.catalog.refresh_shards().await?;
        let mut filter = DocBuilder::new();
        filter.str("ns", wanted.ns.as_str());
        let tags = self.cluster.catalog.read(&Ask::of("tags", filter.finish())).await?;
        let ranges = tags.iter().map(|doc| ZoneRange::parse(doc)).collect::<Result<Vec<_>>>()?;
        let zones = Zones::new(&wanted.key, &ranges)?;
        let mut of_zone: BTreeMap<String, Vec<ShardId>> = BTreeMap::new();
        let mut ids = vec![self.own_id().clone()];
        for shard in shards.iter().filter(|s| !s.entry.draining) {
            for zone in &shard.entry.zones {
                of_zone.entry(zone.clone()).or_default().push(shard.entry.id.clone());
            }
            if shard.entry.id != *self.own_id() {
                ids.push(shard.entry.id.clone());
            }
        }
        let beginning = Beginning {
            key: &wanted.key,
            shards: &ids,
            primary: self.own_id(),
            is_empty,
            chunks: wanted.chunks,
            zones: &zones,
            of_zone: &of_zone,
            at,
        };
        beginning.chunks()
    }

    /// The collection as it is here, on the others that begin with a part.
    async fn create_elsewhere(&self, owners: &[ShardId], coll: &Collection) -> Result<()> {
        let mut b = DocBuilder::new();
        b.str("_shardsvrCreateCollectionParticipant", coll.ns.coll());
        b.uuid("collectionUUID", &coll.uuid.0);
        b.raw_doc("options", &coll.options.to_doc());
        b.array("indexes", |list| {
            for index in coll.ready_indexes() {
                list.raw_doc(&index.spec.doc);
            }
        });
        append_majority(&mut b);
        b.str("$db", coll.ns.db());
        let body = b.finish();
        for shard in owners.iter().filter(|id| *id != self.own_id()) {
            self.on_shard(shard, &body).await?;
        }
        Ok(())
    }

    async fn commit_collection(&self, entry: &CollectionEntry, chunks: &[Chunk]) -> Result<ChunkVersion> {
        let mut b = DocBuilder::new();
        b.i32("_configsvrCommitShardCollection", 1).raw_doc("collection", &entry.to_doc());
        b.array("chunks", |list| {
            for chunk in chunks {
                list.raw_doc(&chunk.to_doc(entry.uuid));
            }
        });
        append_majority(&mut b);
        b.str("$db", "admin");
        let reply = self.on_config(&b.finish()).await?;
        let version = reply.get("collectionVersion").unwrap_or(Value::Null);
        ChunkVersion::parse_argument(&version)
    }
}

/// The collection is sharded: by the same key, it is what is wanted.
fn already(there: &CollectionEntry, wanted: &Wanted<'_>) -> Result<Uuid> {
    if there.key == wanted.key && there.unique == wanted.unique {
        return Ok(there.uuid);
    }
    let text = format!(
        "sharding already enabled for collection {} with options {{ key: {}, unique: {} }}",
        there.ns,
        there.key.pattern(),
        there.unique
    );
    Err(Error::new(ErrorCode::AlreadyInitialized, text))
}

/// Nobody could tell that two documents on two shards are equal.
fn check_unique_index(ns: &Namespace, index: &Index, key: &ShardKey) -> Result<()> {
    let of_index = &index.spec.key;
    let mut fields = of_index.iter();
    let is_prefix = key
        .fields()
        .iter()
        .all(|f| fields.next().is_some_and(|e| e.name() == &*f.path && e.value().is_number() && !f.hashed));
    if is_prefix {
        return Ok(());
    }
    Err(invalid(format!(
        "can't shard collection '{ns}' with unique index on {of_index} and proposed shard key {}. Uniqueness can't be \
         maintained unless shard key is a prefix",
        key.pattern()
    )))
}

/// Whether an index finds documents by the key.
fn serves(index: &Index, wanted: &Wanted<'_>) -> bool {
    let spec = &index.spec;
    let mut fields = spec.key.iter();
    let begins = wanted.key.pattern().iter().all(|k| {
        fields.next().is_some_and(|e| {
            e.name() == k.name()
                && match (e.value(), k.value()) {
                    (Value::String(a), Value::String(b)) => a == b,
                    (a, b) => a.is_number() && b.is_number(),
                }
        })
    });
    let plain = spec.partial.is_none() && !spec.sparse && spec.collation.is_none();
    begins && plain && !index.is_multikey() && (spec.unique || !wanted.unique)
}

fn index_name(key: &ShardKey) -> String {
    let part = |e: pando_bson::Elem<'_>| match e.value() {
        Value::String(kind) => format!("{}_{kind}", e.name()),
        _ => format!("{}_1", e.name()),
    };
    key.pattern().iter().map(part).collect::<Vec<_>>().join("_")
}

fn entry_of(wanted: &Wanted<'_>, generation: Generation, uuid: Uuid, ddl: &Ddl<'_>) -> CollectionEntry {
    let coll = ddl.server.access.definitions().collection(&wanted.ns).cloned();
    CollectionEntry {
        ns: wanted.ns.to_string(),
        generation,
        uuid,
        key: wanted.key.clone(),
        unique: wanted.unique,
        default_collation: coll.and_then(|c| c.options.collation.clone()),
        last_mod_ms: ddl.ctx.env().clock.wall_ms(),
        max_chunk_bytes: None,
        no_balance: false,
        allow_migrations: true,
        timeseries: None,
        resharding: None,
    }
}
