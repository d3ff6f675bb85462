//! The handle that commands hold.

use crate::metadata::Metadata;
use crate::mutexes::{Mutexes, Subject};
use crate::node::Node;
use crate::remove_shard::not_found;
use pando_access::{Change, Guard, InternalCollections, Interrupt};
use pando_base::{OpTime, Result, SessionId, Uuid, limits};
use pando_bson::ObjectId;
use pando_env::Env;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub struct CatalogManager {
    pub(crate) env: Env,
    pub(crate) internal: InternalCollections,
    pub(crate) node: Arc<dyn Node>,
    pub(crate) mutexes: Mutexes,
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
            prepared: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            sessions: Mutex::default(),
        }
    }
    pub fn metadata(&self) -> Metadata {
        Metadata(self.internal.clone())
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
        self.node.await_majority(at).await?;
        Ok(at)
    }
    fn take_session(&self) -> (SessionId, i64) {
        let idle = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (session, last) = idle.unwrap_or_else(|| (SessionId::of(self.new_uuid().0), -1));
        (session, last + 1)
    }
}
