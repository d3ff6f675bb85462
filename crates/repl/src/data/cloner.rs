//! Copying every replicated collection of a source, while it goes on changing (R-IS-4, R-IS-5).
//!
//! Documents come in record order as a stream of batches, each with a token that tells where it ends. When the
//! connection breaks, the copy goes on behind the last batch that was stored.

use crate::data::cursor_reply::CursorReply;
use crate::data::patience::{Patience, stopped};
use crate::data::sync_status::SyncStatus;
use crate::data::{Deps, Stop};
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value, doc};
use pando_catalog::CloneLoad;
use pando_command::Param;
use pando_env::Component;
use pando_rpc::{Connection, Exhaust, Failure, Options, Retry};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(limits::CLONER_CALL_SECS_MAX);
/// Between two lines about a large collection.
const TELL_EVERY: Duration = Duration::from_secs(limits::CLONER_TELL_SECS);

pub(crate) struct Cloner<'a> {
    pub(crate) deps: &'a Deps,
    pub(crate) stop: &'a Stop,
    pub(crate) source: &'a str,
    pub(crate) status: &'a SyncStatus,
    pub(crate) patience: Patience<'a>,
    /// Timestamp of the last unit of copied rows.
    pub(crate) at: Timestamp,
    pub(crate) collections: u64,
    pub(crate) documents: u64,
}

/// Where the copy of one collection stands.
#[derive(Default)]
struct Place {
    /// Of a large collection.
    load: Option<CloneLoad>,
    copied: u64,
    /// Of the last batch stored.
    token: Option<DocBuf>,
}

fn with_db(b: &mut DocBuilder, db: &str) {
    b.doc("$readPreference", |d| {
        d.str("mode", "secondaryPreferred");
    });
    b.str("$db", db);
}

impl Cloner<'_> {
    async fn connect(&self) -> Result<Connection, Failure> {
        let options =
            Options { name: "InitialSyncCloner", login: self.deps.login.clone(), ..Options::default() };
        let connecting = Connection::connect(&self.deps.env, self.source, &options);
        self.stop.unless_asked(connecting).await.ok_or_else(stopped)?
    }
    /// All documents of a command whose answer is a cursor.
    async fn list(&self, command: &RawDoc, db: &str) -> Result<Vec<DocBuf>, Failure> {
        let reply = self.call(command).await?;
        let first = CursorReply::of(&reply, "firstBatch")?;
        let mut out: Vec<DocBuf> = first.docs().map(RawDoc::to_buf).collect();
        let (mut id, coll) = (first.id, first.coll);
        while id != 0 {
            let mut b = DocBuilder::new();
            b.i64("getMore", id).str("collection", coll);
            with_db(&mut b, db);
            let reply = self.call(&b.finish()).await?;
            let next = CursorReply::of(&reply, "nextBatch")?;
            out.extend(next.docs().map(RawDoc::to_buf));
            id = next.id;
        }
        Ok(out)
    }
    async fn call(&self, body: &RawDoc) -> Result<DocBuf, Failure> {
        self.patience.trying(|| self.deps.pool.call(self.source, body, Retry::Idempotent, LIMIT)).await
    }
    fn wall(&self) -> i64 {
        self.deps.env.clock.wall_ms()
    }

    /// Copied rows carry timestamps of their own, below every entry's, so that checkpoints can move on with them:
    /// a copy may be much larger than memory.
    fn next_stamp(&mut self) -> Timestamp {
        self.at = Timestamp(self.at.0 + 1);
        self.at
    }
    fn publish(&self) {
        self.deps.catalog.storage().log().publish(self.at);
    }

    pub(crate) async fn run(&mut self) -> Result<(), Failure> {
        let ask = doc! { "listDatabases": 1, "nameOnly": true,
        "$readPreference": { "mode": "secondaryPreferred" }, "$db": "admin" };
        let reply = self.call(&ask.to_raw()).await?;
        let list = reply.get("databases").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        let names: Vec<String> = list
            .iter()
            .filter_map(|e| Some(e.value().as_doc()?.get("name")?.as_str()?.to_owned()))
            .filter(|name| name != "local")
            .collect();
        self.status.databases(names.len());
        for db in names {
            self.database(&db).await?;
            self.status.database_done(self.wall());
        }
        Ok(())
    }

    async fn database(&mut self, db: &str) -> Result<(), Failure> {
        let mut b = DocBuilder::new();
        b.i32("listCollections", 1);
        with_db(&mut b, db);
        let mut all = self.list(&b.finish(), db).await?;
        all.retain(|listed| {
            let text = |name: &str| listed.get(name).and_then(|v| v.as_str()).unwrap_or_default();
            // Views come with `system.views`; profiles are everybody's own; every member makes the tables of its sessions
            // from its log.
            let table = db == "config" && matches!(text("name"), "transactions" | "image_collection");
            text("type") != "view" && text("name") != "system.profile" && !table
        });
        self.status.database(db, all.len(), self.wall());
        for listed in all {
            self.collection(db, &listed).await?;
        }
        Ok(())
    }

    async fn collection(&mut self, db: &str, listed: &RawDoc) -> Result<(), Failure> {
        let unreadable = || {
            let text = format!("the source lists what is no collection: {listed}");
            cannot_store(Error::new(ErrorCode::InvalidSyncSource, text))
        };
        let name = listed.get("name").and_then(|v| v.as_str()).ok_or_else(unreadable)?.to_owned();
        let uuid = match listed.get_path("info.uuid") {
            Some(Value::Binary { bytes, .. }) => Uuid::from_slice(bytes).ok_or_else(unreadable)?,
            // A time series shows its buckets under a name of their own.
            None if listed.get("type").and_then(|v| v.as_str()) == Some("timeseries") => return Ok(()),
            _ => return Err(unreadable()),
        };
        let Some(indexes) = gone_is_none(self.indexes(db, uuid).await)? else { return Ok(()) };
        let ns = format!("{db}.{name}");
        let (documents, bytes) = self.size_of(db, &name).await?;
        self.status.collection(&ns, documents, bytes, indexes.len(), self.wall());
        let at = self.next_stamp();
        self.deps.catalog.clone_collection(db, listed, &indexes, at).map_err(cannot_store)?;
        self.publish();
        self.collections += 1;
        let capped = listed.get_path("options.capped").is_some_and(|v| v.is_truthy());
        let internal = matches!(db, "admin" | "config");
        let mut place = Place::default();
        if documents >= limits::CLONE_BULK_DOCS_MIN && !capped && !internal {
            place.load = Some(self.deps.catalog.clone_load(uuid, at).map_err(cannot_store)?);
        }
        loop {
            let done = self.documents_of(db, uuid, &mut place).await;
            match gone_is_none(done) {
                Ok(_) => break,
                // The record at which the last batch ended was deleted: what is stored already is passed over.
                Err(f) if f.code() == ErrorCode::KeyNotFound && place.token.is_some() => place.token = None,
                // It may have been renamed, or its plan was dropped under it: the copy goes on from what is there.
                Err(f) => self.patience.after(f).await?,
            }
        }
        if let Some(load) = place.load.take() {
            let after = self.next_stamp();
            let done = self.deps.env.offload(move || load.finish(after)).await;
            done.unwrap_or_else(panicked).map_err(cannot_store)?;
            self.publish();
        }
        self.documents += place.copied;
        self.status.collection_done(self.wall());
        self.deps.env.log.info(Component::InitSync, 21142, "CollectionCloner finished", |a| {
            a.str("namespace", &ns).u64("documents", place.copied);
            a.u64("indexes", indexes.len() as u64);
        });
        Ok(())
    }

    /// Documents and bytes, about.
    async fn size_of(&self, db: &str, name: &str) -> Result<(u64, u64), Failure> {
        let mut b = DocBuilder::new();
        b.str("collStats", name);
        with_db(&mut b, db);
        let Some(reply) = gone_is_none(self.call(&b.finish()).await)? else { return Ok((0, 0)) };
        let number = |name: &str| reply.get(name).and_then(|v| v.as_i64()).map_or(0, |n| n.max(0) as u64);
        Ok((number("count"), number("size")))
    }

    /// Those that are being built come as `{spec, buildUUID}`.
    async fn indexes(&self, db: &str, uuid: Uuid) -> Result<Vec<DocBuf>, Failure> {
        let mut b = DocBuilder::new();
        b.uuid("listIndexes", &uuid.0).bool("includeBuildUUIDs", true);
        with_db(&mut b, db);
        let all = self.list(&b.finish(), db).await?;
        Ok(all.into_iter().filter(|d| d.get("clustered").is_none()).collect())
    }

    /// In record order, as a stream.
    async fn documents_of(&mut self, db: &str, uuid: Uuid, place: &mut Place) -> Result<(), Failure> {
        let mut connection = self.connect().await?;
        let mut b = DocBuilder::new();
        b.uuid("find", &uuid.0);
        b.doc("hint", |h| {
            h.i32("$natural", 1);
        });
        let batch_size = self.deps.instance.params.int(Param::collectionClonerBatchSize).max(0);
        b.bool("showRecordId", true).bool("noCursorTimeout", true);
        b.i64(
            "batchSize",
            if batch_size > 0 { batch_size } else { i64::from(limits::CLONE_FIRST_BATCH_DOCS) },
        );
        b.bool("$_requestResumeToken", true);
        if let Some(token) = &place.token {
            b.raw_doc("$_resumeAfter", token);
        }
        with_db(&mut b, db);
        let find = b.finish();
        let calling = connection.call(&find, LIMIT);
        let reply = self.stop.unless_asked(calling).await.ok_or_else(stopped)??;
        let first = CursorReply::of(reply, "firstBatch")?;
        let (id, coll) = (first.id, first.coll.to_owned());
        self.keep(uuid, reply, "firstBatch", place).await?;
        if id == 0 {
            return Ok(());
        }
        let mut b = DocBuilder::new();
        b.i64("getMore", id).str("collection", &coll);
        if batch_size > 0 {
            b.i64("batchSize", batch_size);
        }
        with_db(&mut b, db);
        let more = b.finish();
        let mut stream: Exhaust = connection.stream(&more, LIMIT).await?;
        let mut told = self.deps.env.clock.mono();
        loop {
            let reply = self.stop.unless_asked(stream.next(LIMIT)).await.ok_or_else(stopped)??;
            let left = CursorReply::of(reply, "nextBatch")?.id;
            self.keep(uuid, reply, "nextBatch", place).await?;
            let now = self.deps.env.clock.mono();
            if now.saturating_sub(told) >= TELL_EVERY {
                told = now;
                self.deps.env.log.info(Component::InitSync, 21141, "Collection clone progress", |a| {
                    a.str("namespace", &format!("{db}.{coll}")).u64("documents", place.copied);
                });
            }
            if left == 0 {
                return Ok(());
            }
            if !stream.is_open() {
                stream.again(&more, LIMIT).await?;
            }
        }
    }

    /// Stores a batch of copies.
    async fn keep(
        &mut self,
        uuid: Uuid,
        reply: &RawDoc,
        name: &'static str,
        place: &mut Place,
    ) -> Result<(), Failure> {
        self.patience.worked();
        self.deps.hold("initialSyncHangDuringCollectionClone", self.stop).await;
        if let Some(load) = place.load.take() {
            let new = self.keep_in_bulk(load, reply, name, place).await?;
            self.stored(reply, new, reply.byte_len() as u64, place);
            return Ok(());
        }
        let docs: Vec<&RawDoc> = CursorReply::of(reply, name)?.docs().collect();
        let mut new = 0;
        for some in docs.chunks(limits::CLONE_UNIT_DOCS_MAX) {
            let storage = self.deps.catalog.storage();
            if !storage.has_room() {
                storage.wait_room().await;
            }
            let at = self.next_stamp();
            new += self.deps.catalog.clone_documents(uuid, some, at).map_err(cannot_store)?;
            self.publish();
            self.deps.env.tasks.yield_now().await;
        }
        self.stored(reply, new, docs.iter().map(|d| d.byte_len() as u64).sum(), place);
        Ok(())
    }
    /// The same for a large collection, beside the tasks that must not wait for the disk.
    async fn keep_in_bulk(
        &self,
        mut load: CloneLoad,
        reply: &RawDoc,
        name: &'static str,
        place: &mut Place,
    ) -> Result<u64, Failure> {
        let reply = reply.to_buf();
        let work = move || {
            let pushed = load.push(CursorReply::of(&reply, name).map_err(|f| f.error)?.docs());
            pushed.map(|new| (load, new))
        };
        let (load, new) = self.deps.env.offload(work).await.unwrap_or_else(panicked).map_err(cannot_store)?;
        place.load = Some(load);
        Ok(new)
    }
    fn stored(&self, reply: &RawDoc, new: u64, bytes: u64, place: &mut Place) {
        place.copied += new;
        let token = reply.get_path("cursor.postBatchResumeToken").and_then(|v| v.as_doc());
        // Null says nothing new: the batch was empty.
        if let Some(token) = token.filter(|t| !matches!(t.get("$recordId"), Some(Value::Null) | None)) {
            place.token = Some(token.to_buf());
        }
        self.status.batch(new, bytes);
    }
}

fn panicked<T>() -> Result<T> {
    Err(Error::internal("storing copied documents panicked"))
}

/// Nothing the source can help.
fn cannot_store(error: Error) -> Failure {
    Failure::new(pando_rpc::Kind::Protocol, error)
}

/// A collection that was dropped meanwhile is no failure.
fn gone_is_none<T>(done: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match done {
        Ok(v) => Ok(Some(v)),
        Err(f) if f.code() == ErrorCode::NamespaceNotFound => Ok(None),
        Err(f) => Err(f),
    }
}
