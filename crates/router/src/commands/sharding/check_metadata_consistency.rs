//! `checkMetadataConsistency`: whether what shards have is what the config servers say, of a collection, a database or the cluster.

use super::super::prelude::*;
use crate::cursors::{Open, Remotes, RouterCursor, Shape};
use pando_metadata_cache::Ask;
use pando_monitor::ReadPreference;
use pando_routing::ShardId;
use pando_rpc::Retry;
use std::collections::BTreeMap;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let size = req.body.get("cursor").and_then(|v| v.as_doc()?.get("batchSize")?.as_i64());
    let only = req.first().value().as_str().map(str::to_owned);
    let databases = match (req.db, &only) {
        ("admin", None) => {
            let entries = router.catalog.read(&Ask::of("databases", DocBuf::new())).await?;
            let name = |e: &DocBuf| e.get("_id").and_then(|v| v.as_str().map(str::to_owned));
            entries.iter().filter_map(name).collect()
        }
        (db, _) => vec![db.to_owned()],
    };
    let collections = router.catalog.read(&Ask::of("collections", DocBuf::new())).await?;
    let mut found = Vec::new();
    for db in databases {
        Check::of(router, ctx, &db, &collections).run(only.as_deref(), &mut found).await?;
    }
    let ns = match &only {
        Some(coll) => Namespace::new(req.db, coll)?,
        None => Namespace::unchecked(req.db, "$cmd.aggregate"),
    };
    let batch_size = size.and_then(|n| u64::try_from(n).ok());
    let open = Open { batch_size, ..Open::new(ns) };
    let cursor = RouterCursor::with_documents(Remotes::none(router, ctx), found, Shape::default())?;
    router.begin(ctx, &req, open, cursor).await
}

/// One database.
struct Check<'a> {
    router: &'a Router,
    ctx: &'a OpCtx,
    db: &'a str,
    /// What is sharded of it, by name.
    sharded: BTreeMap<&'a str, &'a RawDoc>,
}

impl<'a> Check<'a> {
    fn of(router: &'a Router, ctx: &'a OpCtx, db: &'a str, collections: &'a [DocBuf]) -> Check<'a> {
        let of_db = |doc: &'a DocBuf| {
            let name = doc.get("_id")?.as_str()?.strip_prefix(db)?.strip_prefix('.')?;
            Some((name, &**doc))
        };
        Check { router, ctx, db, sharded: collections.iter().filter_map(of_db).collect() }
    }

    async fn run(&self, only: Option<&str>, found: &mut Vec<DocBuf>) -> Result<()> {
        // What a router believes may be of before. What is not there is consistent.
        self.router.catalog.forget_database(self.db);
        let Ok((_, entry)) = self.router.catalog.database(self.db).await else { return Ok(()) };
        let shards = self.router.catalog.shards().await?;
        for shard in shards.iter().map(|s| &s.entry.id) {
            for coll in self.listed(shard, "listCollections", Value::Int32(1)).await? {
                let text = |name: &str| coll.get(name).and_then(|v| v.as_str()).unwrap_or_default();
                let (name, kind) = (text("name"), text("type"));
                if kind == "view" || only.is_some_and(|only| only != name) || name.starts_with("system.") {
                    continue;
                }
                match self.sharded.get(name) {
                    Some(sharded) => self.compare(shard, name, &coll, sharded, found).await?,
                    None if *shard != entry.primary => {
                        let text =
                            "Unsharded collection found on shard differing from database primary shard";
                        found.push(self.wrong("MisplacedCollection", text, shard, name, |d| {
                            coll.get_path("info.uuid").into_iter().for_each(|v| _ = d.value("localUUID", v));
                        }));
                    }
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// A part of a sharded collection.
    async fn compare(
        &self,
        shard: &ShardId,
        name: &str,
        coll: &RawDoc,
        sharded: &RawDoc,
        found: &mut Vec<DocBuf>,
    ) -> Result<()> {
        let (local, wanted) = (coll.get_path("info.uuid"), sharded.get("uuid"));
        if !matches!((local, wanted), (Some(local), Some(wanted)) if same(local, wanted)) {
            let text = "Found collection on shard with a UUID that is not the one of the sharding catalog";
            found.push(self.wrong("CollectionUUIDMismatch", text, shard, name, |d| {
                local.into_iter().for_each(|v| _ = d.value("localUUID", v));
                wanted.into_iter().for_each(|v| _ = d.value("UUID", v));
            }));
            return Ok(());
        }
        let key = sharded.get("key").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
        let begins_with_key = |index: &DocBuf| {
            let of_index = index.get("key").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
            let mut fields = of_index.iter();
            key.iter()
                .all(|k| fields.next().is_some_and(|f| f.name() == k.name() && same(f.value(), k.value())))
        };
        let indexes = self.listed(shard, "listIndexes", Value::String(name)).await?;
        if !indexes.iter().any(begins_with_key) {
            let text = "Found sharded collection without an index on its shard key";
            found.push(self.wrong("MissingShardKeyIndex", text, shard, name, |d| {
                d.raw_doc("shardKey", key);
            }));
        }
        Ok(())
    }

    /// What a shard lists; nothing where it has nothing of that.
    async fn listed(&self, shard: &ShardId, command: &str, of: Value<'_>) -> Result<Vec<DocBuf>> {
        let mut b = DocBuilder::new();
        b.value(command, of).doc("cursor", |d| _ = d.i32("batchSize", i32::MAX)).str("$db", self.db);
        let primary = ReadPreference::default();
        let answer = self.router.call(self.ctx, shard, &primary, &b.finish(), &[], Retry::Idempotent).await;
        let reply = match answer {
            Ok(answer) => answer.reply,
            Err(f) if f.code() == ErrorCode::NamespaceNotFound => return Ok(Vec::new()),
            Err(f) => return Err(f.into()),
        };
        let batch = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array());
        let batch = batch.unwrap_or(RawDoc::empty());
        Ok(batch.iter().filter_map(|e| e.value().as_doc().map(RawDoc::to_buf)).collect())
    }

    fn wrong(
        &self,
        kind: &str,
        text: &str,
        shard: &ShardId,
        coll: &str,
        more: impl FnOnce(&mut DocBuilder),
    ) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("type", kind).str("description", text);
        b.doc("details", |d| {
            d.str("namespace", &format!("{}.{coll}", self.db)).str("shard", shard.as_str());
            more(d);
        });
        b.finish()
    }
}

/// Directions of fields are numbers of any type.
fn same(a: Value<'_>, b: Value<'_>) -> bool {
    pando_bson::compare::cmp_values(a, b).is_eq()
}
