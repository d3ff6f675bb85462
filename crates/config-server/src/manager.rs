//! The handle that commands hold.

use crate::kept_tables::KeptTables;
use crate::metadata::{Metadata, Stored};
use crate::mutexes::{Mutexes, Subject};
use crate::node::Node;
use crate::remove_shard::not_found;
use pando_access::{Change, Guard, InternalCollections, Interrupt};
use pando_base::{OpTime, Result, SessionId, Uuid, limits};
use pando_bson::{DocBuf, ObjectId};
use pando_env::Env;
use pando_routing::{CollectionEntry, commit};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub struct CatalogManager {
    pub(crate) env: Env,
    pub(crate) internal: InternalCollections,
    pub(crate) node: Arc<dyn Node>,
    pub(crate) mutexes: Mutexes,
    pub(crate) tables: KeptTables,
    /// Whether the collections and indexes are there; asked anew by every primary.
    pub(crate) prepared: AtomicBool,
    /// The config servers are about to be no shard any more.
    pub(crate) leaving: AtomicBool,
    /// Sessions of transactions that are not used now, and their last numbers.
    sessions: Mutex<Vec<(SessionId, i64)>>,
}

impl CatalogManager {
    pub fn new(env: Env, internal: InternalCollections, node: Arc<dyn Node>) -> CatalogManager {
        CatalogManager {
            env,
            internal,
            node,
            mutexes: Mutexes::default(),
            tables: KeptTables::default(),
            prepared: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            sessions: Mutex::default(),
        }
    }
    pub fn metadata(&self) -> Metadata {
        Metadata(self.internal.clone())
    }
    /// A sharded collection as it is stored now.
    pub(crate) fn stored(&self, name: &str) -> Result<Option<Stored>> {
        let metadata = self.metadata();
        let Some(doc) = metadata.collection(name)? else { return Ok(None) };
        let table = self.tables.table(&metadata, CollectionEntry::parse(&doc)?)?;
        Ok(Some(Stored { doc, table }))
    }
    /// What has to be written so that its chunks become those of `change`.
    pub(crate) fn changes(&self, stored: &Stored, change: commit::Change) -> Result<Vec<Change>> {
        let (metadata, uuid) = (self.metadata(), stored.entry().uuid);
        stored.changes(change, || self.new_object_id(), |min| metadata.chunk(uuid, min))
    }
    /// Of routing tables, for who looks at what the process keeps.
    pub fn kept_chunks(&self) -> usize {
        self.tables.chunks()
    }
    /// Somebody else has written into `config.chunks`: what is kept of it may be wrong.
    pub fn chunks_were_written(&self) {
        self.tables.forget_all();
    }
    pub(crate) async fn lock(&self, interrupt: &dyn Interrupt, subject: Subject) -> Result<Guard> {
        self.unless_interrupted(interrupt, self.mutexes.lock(&self.env, subject)).await
    }
    async fn unless_interrupted<T: Send>(
        &self,
        interrupt: &dyn Interrupt,
        wait: impl Future<Output = T> + Send,
    ) -> Result<T> {
        let mut wait = std::pin::pin!(wait);
        let look = Duration::from_millis(limits::INTERRUPT_CHECK_MS);
        loop {
            if let Some(done) = self.env.timeout(look, wait.as_mut()).await {
                return Ok(done);
            }
            interrupt.check()?;
        }
    }
    /// While it is held no shard goes away; 70 when one of these has gone.
    pub(crate) async fn keep_shards(&self, interrupt: &dyn Interrupt, names: &[&str]) -> Result<Guard> {
        let share = self.mutexes.share(&self.env, Subject::Owners);
        let guard = self.unless_interrupted(interrupt, share).await?;
        let metadata = self.metadata();
        for name in names {
            if metadata.shard(name)?.is_none() {
                return Err(not_found(name));
            }
        }
        Ok(guard)
    }
    /// Four bytes of time, eight of chance.
    pub(crate) fn new_object_id(&self) -> ObjectId {
        let mut id = [0; 12];
        self.env.rng.fill(&mut id);
        let secs = (self.env.clock.wall_ms() / 1000) as u32;
        id[..4].copy_from_slice(&secs.to_be_bytes());
        ObjectId(id)
    }
    pub(crate) fn new_uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.env.rng.fill(&mut bytes);
        Uuid::from_random(bytes)
    }

    /// Writes all of it or nothing, and waits until a majority holds it.
    pub(crate) async fn write(&self, interrupt: &dyn Interrupt, changes: &[Change]) -> Result<OpTime> {
        let at = self.write_here(interrupt, changes).await?;
        self.node.await_majority(at).await?;
        Ok(at)
    }
    /// The same, and what is told of it goes into the changelog at once: a majority holds both after one wait, whoever else waits.
    pub(crate) async fn write_told(
        &self,
        interrupt: &dyn Interrupt,
        changes: &[Change],
        client: &str,
        (what, ns): (&str, &str),
        told: &[DocBuf],
    ) -> Result<OpTime> {
        let at = self.write_here(interrupt, changes).await?;
        for details in told {
            self.log_change(client, what, ns, details).await;
        }
        self.node.await_majority(at).await?;
        Ok(at)
    }
    async fn write_here(&self, interrupt: &dyn Interrupt, changes: &[Change]) -> Result<OpTime> {
        if changes.is_empty() {
            return Ok(OpTime::NULL);
        }
        let (session, number) = self.take_session();
        // A session whose transaction failed is not used again: nobody knows what of it is in the log.
        let at = self.internal.write_together(interrupt, (session, number), changes).await?;
        if changes.len() > 1 {
            self.node.committed(session, number, at);
        }
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).push((session, number));
        Ok(at)
    }
    fn take_session(&self) -> (SessionId, i64) {
        let idle = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (session, last) = idle.unwrap_or_else(|| (SessionId::of(self.new_uuid().0), -1));
        (session, last + 1)
    }
}
