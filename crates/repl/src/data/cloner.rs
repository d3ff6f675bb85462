//! Copying every replicated collection of a source, while it goes on changing (R-IS-4, R-IS-5).

use crate::data::{Deps, Stop};
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value, doc};
use pando_env::Component;
use pando_rpc::{Connection, Exhaust, Failure, Options};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(limits::CLONER_CALL_SECS_MAX);
/// Between two lines about a large collection.
const TELL_EVERY: Duration = Duration::from_secs(limits::CLONER_TELL_SECS);

pub(crate) struct Cloner<'a> {
    pub(crate) deps: &'a Deps,
    pub(crate) stop: &'a Stop,
    pub(crate) source: &'a str,
    /// Timestamp of the last unit of copied rows.
    pub(crate) at: Timestamp,
    pub(crate) collections: u64,
    pub(crate) documents: u64,
}

fn stopped() -> Failure {
    let error = Error::new(ErrorCode::InterruptedAtShutdown, "the initial sync was told to stop");
    Failure { kind: pando_rpc::Kind::Command, error }
}

fn with_db(b: &mut DocBuilder, db: &str) {
    b.doc("$readPreference", |d| {
        d.str("mode", "secondaryPreferred");
    });
    b.str("$db", db);
}

/// The documents of a cursor's batch.
fn batch_of<'r>(reply: &'r RawDoc, name: &str) -> impl Iterator<Item = &'r RawDoc> + use<'r> {
    let cursor = reply.get("cursor").and_then(|v| v.as_doc());
    let array = cursor.and_then(|c| c.get(name)).and_then(|v| v.as_array());
    array.into_iter().flatten().filter_map(|e| e.value().as_doc())
}

impl Cloner<'_> {
    async fn connect(&self) -> Result<Connection, Failure> {
        let options = Options { name: "InitialSyncCloner", ..Options::default() };
        let connecting = Connection::connect(&self.deps.env, self.source, &options);
        self.stop.unless_asked(connecting).await.ok_or_else(stopped)?
    }
    /// All documents of a command whose answer is a cursor.
    async fn list(&self, command: &RawDoc, db: &str) -> Result<Vec<DocBuf>, Failure> {
        let reply = self.call(command).await?;
        let mut out: Vec<DocBuf> = batch_of(&reply, "firstBatch").map(RawDoc::to_buf).collect();
        let mut id = reply.get_path("cursor.id").and_then(|v| v.as_i64()).unwrap_or(0);
        let ns = reply.get_path("cursor.ns").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        let coll = ns.split_once('.').map_or("", |(_, c)| c);
        while id != 0 {
            let mut b = DocBuilder::new();
            b.i64("getMore", id).str("collection", coll);
            with_db(&mut b, db);
            let reply = self.call(&b.finish()).await?;
            out.extend(batch_of(&reply, "nextBatch").map(RawDoc::to_buf));
            id = reply.get_path("cursor.id").and_then(|v| v.as_i64()).unwrap_or(0);
        }
        Ok(out)
    }
    async fn call(&self, body: &RawDoc) -> Result<DocBuf, Failure> {
        let mut tries = 0;
        loop {
            let call = self.deps.pool.call(self.source, body, LIMIT);
            match self.stop.unless_asked(call).await.ok_or_else(stopped)? {
                Err(f) if f.breaks_connection() && tries < limits::CLONE_RETRIES_MAX => {
                    tries += 1;
                    self.pause().await?;
                }
                done => return done,
            }
        }
    }
    async fn pause(&self) -> Result<(), Failure> {
        let pause = self.deps.env.clock.sleep(Duration::from_millis(limits::INITIAL_SYNC_PAUSE_MS));
        self.stop.unless_asked(pause).await.ok_or_else(stopped)
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
        for db in names {
            self.database(&db).await?;
        }
        Ok(())
    }

    async fn database(&mut self, db: &str) -> Result<(), Failure> {
        let mut b = DocBuilder::new();
        b.i32("listCollections", 1);
        with_db(&mut b, db);
        for listed in self.list(&b.finish(), db).await? {
            let text = |name: &str| listed.get(name).and_then(|v| v.as_str()).unwrap_or_default();
            // Views come with `system.views`; profiles are everybody's own.
            if text("type") == "view" || text("name") == "system.profile" {
                continue;
            }
            self.collection(db, &listed).await?;
        }
        Ok(())
    }

    async fn collection(&mut self, db: &str, listed: &RawDoc) -> Result<(), Failure> {
        let name = listed.get("name").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        let Some(Value::Binary { bytes, .. }) = listed.get_path("info.uuid") else { return Ok(()) };
        let Some(uuid) = Uuid::from_slice(bytes) else { return Ok(()) };
        let Some(indexes) = gone_is_none(self.indexes(db, uuid).await)? else { return Ok(()) };
        let at = self.next_stamp();
        self.deps.catalog.clone_collection(db, listed, &indexes, at).map_err(cannot_store)?;
        self.publish();
        self.collections += 1;
        let mut tries = 0;
        let mut copied = 0;
        loop {
            let done = self.documents_of(db, uuid, &mut copied).await;
            match gone_is_none(done) {
                Ok(_) => break,
                // It may have been renamed, or its plan was dropped under it: the copy goes on from what is there.
                Err(f) if may_retry(&f) && tries < limits::CLONE_RETRIES_MAX => {
                    tries += 1;
                    self.pause().await?;
                }
                Err(f) => return Err(f),
            }
        }
        self.documents += copied;
        self.deps.env.log.info(Component::InitSync, 21142, "CollectionCloner finished", |a| {
            a.str("namespace", &format!("{db}.{name}")).u64("documents", copied);
            a.u64("indexes", indexes.len() as u64);
        });
        Ok(())
    }

    /// Ready indexes only: one that is being built comes with the entry that ends its build.
    async fn indexes(&self, db: &str, uuid: Uuid) -> Result<Vec<DocBuf>, Failure> {
        let mut b = DocBuilder::new();
        b.uuid("listIndexes", &uuid.0).bool("includeBuildUUIDs", true);
        with_db(&mut b, db);
        let all = self.list(&b.finish(), db).await?;
        Ok(all.into_iter().filter(|d| d.get("buildUUID").is_none() && d.get("clustered").is_none()).collect())
    }

    /// In record order, as a stream.
    async fn documents_of(&mut self, db: &str, uuid: Uuid, copied: &mut u64) -> Result<(), Failure> {
        let mut connection = self.connect().await?;
        let mut b = DocBuilder::new();
        b.uuid("find", &uuid.0);
        b.doc("hint", |h| {
            h.i32("$natural", 1);
        });
        b.bool("showRecordId", true).bool("noCursorTimeout", true).i32("batchSize", 1000);
        with_db(&mut b, db);
        let find = b.finish();
        let calling = connection.call(&find, LIMIT);
        let reply = self.stop.unless_asked(calling).await.ok_or_else(stopped)??;
        let id = reply.get_path("cursor.id").and_then(|v| v.as_i64()).unwrap_or(0);
        let ns = reply.get_path("cursor.ns").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        *copied += self.keep(uuid, reply, "firstBatch").await?;
        if id == 0 {
            return Ok(());
        }
        let mut b = DocBuilder::new();
        b.i64("getMore", id).str("collection", ns.split_once('.').map_or("", |(_, c)| c));
        with_db(&mut b, db);
        let more = b.finish();
        let mut stream: Exhaust = connection.stream(&more, LIMIT).await?;
        let mut told = self.deps.env.clock.mono();
        loop {
            let reply = self.stop.unless_asked(stream.next(LIMIT)).await.ok_or_else(stopped)??;
            let left = reply.get_path("cursor.id").and_then(|v| v.as_i64()).unwrap_or(0);
            *copied += self.keep(uuid, reply, "nextBatch").await?;
            let now = self.deps.env.clock.mono();
            if now.saturating_sub(told) >= TELL_EVERY {
                told = now;
                self.deps.env.log.info(Component::InitSync, 21141, "Collection clone progress", |a| {
                    a.str("namespace", &ns).u64("documents", *copied);
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
    async fn keep(&mut self, uuid: Uuid, reply: &RawDoc, name: &str) -> Result<u64, Failure> {
        let docs: Vec<&RawDoc> = batch_of(reply, name).collect();
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
        Ok(new)
    }
}

/// Nothing the source can help.
fn cannot_store(error: Error) -> Failure {
    Failure { kind: pando_rpc::Kind::Protocol, error }
}

/// A collection that was dropped meanwhile is no failure.
fn gone_is_none<T>(done: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match done {
        Ok(v) => Ok(Some(v)),
        Err(f) if f.code() == ErrorCode::NamespaceNotFound => Ok(None),
        Err(f) => Err(f),
    }
}

fn may_retry(f: &Failure) -> bool {
    let network = f.breaks_connection() && f.kind != pando_rpc::Kind::Protocol;
    network || matches!(f.code(), ErrorCode::QueryPlanKilled | ErrorCode::CursorNotFound)
}
