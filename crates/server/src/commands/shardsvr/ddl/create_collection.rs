//! What the primary shard of the database has to do for `shardCollection` (SH-DDL-7): whether it can be done, the collection and its
//! index here, and what the collection will be. The order of things is `pando_workflows::create_collection`'s.

use super::Ddl;
use crate::commands;
use crate::sharding::shard_key_indexes::serves;
use pando_access::{Collection, Index};
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_metadata_cache::Ask;
use pando_routing::initial::Beginning;
use pando_routing::zones::{ZoneRange, Zones};
use pando_routing::{Chunk, CollectionEntry, Generation, ShardId, ShardKey};
use pando_shard::metadata::KnownDatabase;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is asked for.
pub(crate) struct Wanted<'a> {
    pub(crate) ns: Namespace,
    pub(crate) key: ShardKey,
    pub(crate) unique: bool,
    pub(crate) chunks: Option<usize>,
    /// Each zone is cut at hashes.
    pub(crate) presplit: bool,
    /// Only `{locale: "simple"}` may be given.
    pub(crate) collation: Option<&'a RawDoc>,
    /// An index over the key is made where there is none.
    pub(crate) makes_index: bool,
}

fn invalid(text: String) -> Error {
    Error::new(ErrorCode::InvalidOptions, text)
}

impl<'a> Wanted<'a> {
    /// As [`Wanted::to_request`] has written it into a coordinator's state.
    pub(super) fn of_state(ns: &Namespace, body: &'a RawDoc) -> Result<Wanted<'a>> {
        let lost = || Error::internal(format!("a coordinator's state without a request: {body}"));
        let request = body.get("request").and_then(|v| v.as_doc()).ok_or_else(lost)?;
        let key = request.get("shardKey").and_then(|v| v.as_doc()).ok_or_else(lost)?;
        let flag = |name: &str| request.get(name).is_some_and(|v| v.is_truthy());
        let chunks = request.get("numInitialChunks").and_then(|v| v.as_i64());
        Ok(Wanted {
            ns: ns.clone(),
            key: ShardKey::parse(key)?,
            unique: flag("unique"),
            chunks: chunks.map(|n| n as usize),
            presplit: flag("presplitHashedZones"),
            collation: request.get("collation").and_then(|v| v.as_doc()),
            makes_index: flag("implicitlyCreateIndex"),
        })
    }
    /// What two requests must have in common to be one.
    pub(crate) fn to_request(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.raw_doc("shardKey", self.key.pattern()).bool("unique", self.unique);
        if let Some(n) = self.chunks {
            b.i64("numInitialChunks", n as i64);
        }
        if self.presplit {
            b.bool("presplitHashedZones", true);
        }
        if let Some(collation) = self.collation {
            b.raw_doc("collation", collation);
        }
        b.bool("implicitlyCreateIndex", self.makes_index);
        b.finish()
    }
}

impl Ddl<'_> {
    /// Whether the collection can be sharded so: nothing, or `{already: {collectionVersion, collectionUUID}}` where it is.
    pub(super) async fn check_create(&self, wanted: &Wanted<'_>) -> Result<DocBuf> {
        self.check_database_is_here(wanted.ns.db()).await?;
        self.sharding.refresh_anew(&wanted.ns).await?;
        let mut b = DocBuilder::new();
        match self.sharding.metadata.known(&wanted.ns).table() {
            Some(table) => {
                let uuid = already(&table.collection, wanted)?;
                b.doc("already", |d| {
                    table.version().append("collectionVersion", d);
                    d.uuid("collectionUUID", &uuid.0);
                });
            }
            None => {
                self.own_collection(wanted)?;
                self.with_beginning(wanted, pando_base::Timestamp::ZERO, |b| b.check()).await?;
            }
        }
        Ok(b.finish())
    }

    /// The database may have gone while this definition waited for its locks. `config` is everybody's.
    async fn check_database_is_here(&self, db: &str) -> Result<()> {
        if db == "config" {
            return Ok(());
        }
        self.check_has_not_moved(db).await?;
        match self.sharding.metadata.known_database(db) {
            Some(KnownDatabase::Here(_)) => Ok(()),
            _ => Err(Error::new(ErrorCode::NamespaceNotFound, format!("database {db} not found"))),
        }
    }

    /// Makes collection and index here, and decides what the collection will be: `{collection, chunks, options, indexes, shards}`. Nobody
    /// writes meanwhile.
    pub(super) async fn make_collection(&self, wanted: &Wanted<'_>) -> Result<DocBuf> {
        let ns = &wanted.ns;
        if self.own_collection(wanted)?.is_none() {
            self.create_here(ns).await?;
        }
        let coll = self.own_collection(wanted)?;
        let coll = coll.ok_or_else(|| Error::internal("a collection was made and is not there"))?;
        let is_empty = self.is_empty(ns)?;
        self.ensure_index(&coll, wanted, is_empty).await?;
        // The config servers are asked before: the number is above all times that they have heard of.
        self.cluster.catalog.refresh_shards().await?;
        self.server.replication.await_majority(self.server.replication.last_applied()).await?;
        let at = self.server.replication.note("a collection is sharded", ns.as_str())?;
        let chunks = self.with_beginning(wanted, at, |b| b.chunks()).await?;
        let coll = self.own_collection(wanted)?.unwrap_or(coll);
        let epoch = crate::object_id::new_object_id(self.ctx.env());
        let entry = entry_of(wanted, Generation { epoch, timestamp: at }, &coll, self);
        Ok(self.definition(&entry, &chunks, &coll))
    }
    fn definition(&self, entry: &CollectionEntry, chunks: &[Chunk], coll: &Collection) -> DocBuf {
        let owners: BTreeSet<&str> = chunks.iter().map(|c| c.shard.as_str()).collect();
        let mut b = DocBuilder::new();
        b.raw_doc("collection", &entry.to_doc());
        b.array("chunks", |list| {
            for chunk in chunks {
                list.raw_doc(&chunk.to_doc(entry.uuid));
            }
        });
        b.raw_doc("options", &coll.options.to_doc());
        b.array("indexes", |list| {
            for index in coll.ready_indexes() {
                list.raw_doc(&index.spec.doc);
            }
        });
        b.array("shards", |list| {
            for shard in owners.into_iter().filter(|id| *id != self.own_id().as_str()) {
                list.str(shard);
            }
        });
        b.finish()
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
        if coll.ready_indexes().iter().any(|i| serves(i, &wanted.key) && (i.spec.unique || !wanted.unique)) {
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

    fn is_empty(&self, ns: &Namespace) -> Result<bool> {
        match self.server.access.definitions().collection(ns) {
            Some(_) => Ok(self.server.access.internal_collections().first(ns)?.is_none()),
            None => Ok(true),
        }
    }
    /// What the first chunks depend on, as it is now.
    async fn with_beginning<T>(
        &self,
        wanted: &Wanted<'_>,
        at: pando_base::Timestamp,
        look: impl FnOnce(&Beginning<'_>) -> Result<T>,
    ) -> Result<T> {
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
            is_empty: self.is_empty(&wanted.ns)?,
            chunks: wanted.chunks,
            presplit: wanted.presplit,
            zones: &zones,
            of_zone: &of_zone,
            at,
        };
        look(&beginning)
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
pub(super) fn check_unique_index(ns: &Namespace, index: &Index, key: &ShardKey) -> Result<()> {
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

fn index_name(key: &ShardKey) -> String {
    let part = |e: pando_bson::Elem<'_>| match e.value() {
        Value::String(kind) => format!("{}_{kind}", e.name()),
        _ => format!("{}_1", e.name()),
    };
    key.pattern().iter().map(part).collect::<Vec<_>>().join("_")
}

fn entry_of(
    wanted: &Wanted<'_>,
    generation: Generation,
    coll: &Collection,
    ddl: &Ddl<'_>,
) -> CollectionEntry {
    CollectionEntry {
        ns: wanted.ns.to_string(),
        generation,
        uuid: coll.uuid,
        key: wanted.key.clone(),
        unique: wanted.unique,
        default_collation: coll.options.collation.clone(),
        last_mod_ms: ddl.ctx.env().clock.wall_ms(),
        max_chunk_bytes: None,
        no_balance: false,
        allow_migrations: true,
        timeseries: None,
        resharding: None,
    }
}
