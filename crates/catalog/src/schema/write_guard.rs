//! The right to write to a collection.

use crate::lock::Guard;
use crate::schema::collection::Collection;
use std::ops::Deref;
use std::sync::Arc;

/// A collection that this holder may write to; definitions cannot change meanwhile.
pub struct WriteGuard {
    coll: Arc<Collection>,
    /// `None`: an open transaction holds it.
    lock: Option<Guard>,
}

impl WriteGuard {
    /// Of a collection whose lock is held with it.
    pub(crate) fn new(coll: Arc<Collection>, lock: Guard) -> WriteGuard {
        WriteGuard { coll, lock: Some(lock) }
    }
    /// For a statement of the transaction that holds the collection's lock, or has made the collection.
    pub fn held_by_transaction(coll: Arc<Collection>) -> WriteGuard {
        WriteGuard { coll, lock: None }
    }
    pub fn is_shared_with_transaction(&self) -> bool {
        self.lock.is_none()
    }
    pub fn collection(&self) -> &Arc<Collection> {
        &self.coll
    }
    /// A transaction keeps it from here on, whatever task its statements run on.
    pub fn leave_task(mut self) -> WriteGuard {
        if let Some(lock) = &mut self.lock {
            lock.leave_task();
        }
        self
    }
    /// One of [`Catalog::try_write_lock`](crate::Catalog::try_write_lock) in the hands of this task.
    pub async fn join_task(mut self) -> WriteGuard {
        if let Some(lock) = self.lock.take() {
            self.lock = Some(lock.join_task().await);
        }
        self
    }
}

impl Deref for WriteGuard {
    type Target = Collection;
    fn deref(&self) -> &Collection {
        &self.coll
    }
}
