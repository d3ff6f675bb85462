//! What a shard's secondaries know of who owns what comes to them with the data (SH-CACHE-1, SH-CACHE-2, SYS-214).
//!
//! ```text
//!   primary: config servers say ─► config.cache.* ─► FilteringMetadata
//!                                        │ log
//!   secondary: has its primary ask, waits for what that wrote ─► config.cache.* ─► FilteringMetadata
//! ```
//! So a secondary never judges by an ownership that its data has not reached: what the primary learnt stands in the log behind the
//! documents that it speaks of.

use super::Sharding;
use crate::replication::Replication;
use pando_access::observer::{Deleted, Inserted, OpObserver, Updated};
use pando_access::{Collection, InternalCollections, Uninterrupted, WriteOp, WriteUnit};
use pando_base::{Error, ErrorCode, HashMap, Namespace, Result, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_command::OpCtx;
use pando_routing::cached_documents::{COLLECTIONS, CachedCollection, Changes, DATABASES, chunks_of};
use pando_routing::{DatabaseEntry, RoutingTable};
use pando_storage::ReadAt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

pub(crate) struct CachedMetadata {
    internal: InternalCollections,
    replication: Arc<Replication>,
    /// What this primary has written, so that it writes no more than what has changed.
    written: Mutex<HashMap<Namespace, Arc<RoutingTable>>>,
}

/// The documents of one collection, as they were read.
struct Kept {
    collection: DocBuf,
    chunks: Vec<DocBuf>,
}

impl Kept {
    /// # Errors
    /// [`ErrorCode::ConflictingOperationInProgress`] when they were read in the middle of a refresh, others when they make no table.
    fn into_table(self) -> Result<RoutingTable> {
        CachedCollection::parse(&self.collection)?.into_table(&self.chunks)
    }
}

fn by_name(name: &str) -> DocBuf {
    let mut d = DocBuilder::new();
    d.str("_id", name);
    d.finish()
}
fn collections() -> Namespace {
    Namespace::unchecked("config", &COLLECTIONS["config.".len()..])
}
fn databases() -> Namespace {
    Namespace::unchecked("config", &DATABASES["config.".len()..])
}

impl CachedMetadata {
    pub(crate) fn new(internal: InternalCollections, replication: Arc<Replication>) -> CachedMetadata {
        CachedMetadata { internal, replication, written: Mutex::default() }
    }
    fn written(&self) -> MutexGuard<'_, HashMap<Namespace, Arc<RoutingTable>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whoever is not noted any more is read again before it is written.
    fn note_written(&self, ns: &Namespace, table: &Arc<RoutingTable>) {
        let mut written = self.written();
        if written.len() >= limits::CACHED_METADATA_WRITTEN_MAX && !written.contains_key(ns) {
            written.clear();
        }
        written.insert(ns.clone(), table.clone());
    }
    /// Whether this node is the one that asks the config servers.
    pub(crate) fn is_kept_here(&self) -> bool {
        self.replication.member.accepts_writes()
    }
    /// A new primary knows nothing of what its predecessor has written.
    pub(crate) fn forget_all(&self) {
        self.written().clear();
    }

    /// The config servers have said where a collection's documents are; nothing where it is not sharded. Returns when that is
    /// written.
    pub(crate) async fn write(&self, ns: &Namespace, table: Option<&Arc<RoutingTable>>) -> Result<()> {
        match table {
            Some(table) => self.put(ns, table).await,
            None => self.remove(ns).await,
        }
    }
    async fn remove(&self, ns: &Namespace) -> Result<()> {
        self.written().remove(ns);
        if self.internal.named(&collections(), ns.as_str())?.is_none() {
            return Ok(());
        }
        self.internal.remove(&Uninterrupted, &collections(), &by_name(ns.as_str())).await?;
        self.internal.drop(&chunks_of(ns.as_str())?).await
    }
    async fn put(&self, ns: &Namespace, table: &Arc<RoutingTable>) -> Result<()> {
        let known = self.written().get(ns).cloned();
        // What was cut off in the middle, or makes no sense, is written anew.
        let before = match known {
            Some(known) => Some(known),
            None => self.read(ns, ReadAt::Latest)?.and_then(|kept| kept.into_table().ok()).map(Arc::new),
        };
        let doc = CachedCollection::of(table, false).to_doc();
        if before.as_ref().is_some_and(|b| CachedCollection::of(b, false).to_doc() == doc) {
            self.note_written(ns, table);
            return Ok(());
        }
        self.written().remove(ns);
        let chunks = chunks_of(ns.as_str())?;
        let unfinished = CachedCollection::of(table, true).to_doc();
        self.internal.put(&Uninterrupted, &collections(), &unfinished).await?;
        let before = before.filter(|b| b.collection.generation == table.collection.generation);
        if before.is_none() {
            self.internal.drop(&chunks).await?;
        }
        self.internal.ensure(&chunks).await?;
        let changes = Changes::between(before.as_deref(), table);
        for gone in changes.gone.chunks(limits::CACHED_CHUNKS_PER_WRITE_MAX) {
            self.internal.remove_all(&Uninterrupted, &chunks, gone).await?;
        }
        for put in changes.put.chunks(limits::CACHED_CHUNKS_PER_WRITE_MAX) {
            self.internal.put_all(&Uninterrupted, &chunks, put).await?;
        }
        self.internal.put(&Uninterrupted, &collections(), &doc).await?;
        self.note_written(ns, table);
        Ok(())
    }
    /// The same of a database; nothing where there is none.
    pub(crate) async fn write_database(&self, db: &str, entry: Option<&DatabaseEntry>) -> Result<()> {
        let there = self.internal.named(&databases(), db)?;
        let doc = entry.map(DatabaseEntry::to_doc);
        match (&doc, &there) {
            (None, Some(_)) => {
                self.internal.remove(&Uninterrupted, &databases(), &by_name(db)).await?;
            }
            (Some(doc), there) if there.as_ref() != Some(doc) => {
                self.internal.put(&Uninterrupted, &databases(), doc).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// What is written of a collection.
    fn read(&self, ns: &Namespace, at: ReadAt) -> Result<Option<Kept>> {
        let Some(collection) = self.internal.named_as_of(&collections(), ns.as_str(), at)? else {
            return Ok(None);
        };
        let chunks = self.internal.all(&chunks_of(ns.as_str())?, at)?;
        Ok(Some(Kept { collection, chunks }))
    }
    /// A secondary's way to it: the primary learns what there is to learn first.
    pub(crate) async fn collection(&self, ctx: &OpCtx, ns: &Namespace) -> Result<Option<Arc<RoutingTable>>> {
        for _ in 0..limits::CACHED_METADATA_READS_MAX {
            self.have_primary_refresh(ctx, "_flushRoutingTableCacheUpdates", ns.as_str()).await?;
            let kept = self.read(ns, ReadAt::At(self.replication.last_applied().ts))?;
            match kept.map(Kept::into_table) {
                // The primary is at it again.
                Some(Err(e)) if e.code == ErrorCode::ConflictingOperationInProgress => {}
                table => return Ok(table.transpose()?.map(Arc::new)),
            }
        }
        let text = format!("what is kept of {ns} changes faster than it is read");
        Err(Error::new(ErrorCode::ConflictingOperationInProgress, text))
    }
    pub(crate) async fn database(&self, ctx: &OpCtx, db: &str) -> Result<Option<Arc<DatabaseEntry>>> {
        self.have_primary_refresh(ctx, "_flushDatabaseCacheUpdates", db).await?;
        let at = ReadAt::At(self.replication.last_applied().ts);
        let doc = self.internal.named_as_of(&databases(), db, at)?;
        doc.map(|doc| DatabaseEntry::parse(&doc).map(Arc::new)).transpose()
    }
    /// Returns when what the primary has written is here.
    async fn have_primary_refresh(&self, ctx: &OpCtx, command: &str, name: &str) -> Result<()> {
        let Some(primary) = self.replication.member.state().primary else {
            return Err(Error::new(ErrorCode::NotWritablePrimary, "no primary is known"));
        };
        let mut b = DocBuilder::new();
        b.str(command, name).bool("syncFromConfig", true).str("$db", "admin");
        let limit = Duration::from_millis(limits::SHARD_COMMAND_MS_MAX);
        let body = b.finish();
        let call = self.replication.peers.call(&primary, &body, pando_rpc::Retry::Idempotent, limit);
        let reply = ctx.interruptible(call).await??;
        if let Some(Value::Timestamp(at)) = reply.get("operationTime") {
            ctx.interruptible(self.replication.await_applied(at)).await?;
        }
        Ok(())
    }
}

/// On a secondary: what has come with the log is news about who owns what.
pub(crate) struct CacheObserver(Weak<Sharding>);

impl CacheObserver {
    pub(crate) fn of(sharding: &Arc<Sharding>) -> Arc<CacheObserver> {
        Arc::new(CacheObserver(Arc::downgrade(sharding)))
    }
    fn changed(&self, unit: &mut WriteUnit, coll: &Collection, doc: &RawDoc) {
        let is = |name: &str| coll.ns.as_str() == name;
        if !unit.is_applying() || !(is(COLLECTIONS) || is(DATABASES)) {
            return;
        }
        let Some(name) = doc.get("_id").and_then(|v| v.as_str().map(str::to_owned)) else { return };
        let (weak, database) = (self.0.clone(), is(DATABASES));
        unit.after_commit(move |_| {
            let Some(sharding) = weak.upgrade() else { return };
            if database {
                sharding.metadata.forget_database(&name);
            } else if let Ok(ns) = Namespace::parse(&name) {
                sharding.metadata.forget(&ns);
            }
        });
    }
}

impl OpObserver for CacheObserver {
    fn inserted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        self.changed(unit, e.coll, e.doc);
        Ok(())
    }
    fn updated(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        self.changed(unit, e.coll, e.new);
        Ok(())
    }
    fn deleted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        self.changed(unit, e.coll, e.old);
        Ok(())
    }
}
