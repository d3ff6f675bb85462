//! Ranges that are to be deleted: a task that nobody waits for any more is taken up by a workflow of the primary (SH-RDEL-1).

use crate::replication::Replication;
use pando_access::observer::{Inserted, OpObserver, Updated};
use pando_access::{Collection, WriteOp, WriteUnit};
use pando_base::Result;
use pando_bson::{DocBuf, RawDoc};
use pando_env::{Component, Env};
use pando_routing::ShardKey;
use pando_shard::FilteringMetadata;
use pando_workflows::migration::{self, Migration};
use std::sync::{Arc, Weak};

/// Watches the tasks. On a secondary nothing is deleted: whoever becomes primary reads them all.
pub(crate) struct DeletionObserver {
    env: Env,
    replication: Weak<Replication>,
    metadata: Arc<FilteringMetadata>,
}

impl DeletionObserver {
    pub(crate) fn of(
        env: &Env,
        replication: &Arc<Replication>,
        metadata: &Arc<FilteringMetadata>,
    ) -> Arc<DeletionObserver> {
        let replication = Arc::downgrade(replication);
        Arc::new(DeletionObserver { env: env.clone(), replication, metadata: metadata.clone() })
    }
    /// The primary has waited for its own readers; those of a secondary, or of a former primary, are told.
    fn end_reads(&self, unit: &mut WriteUnit, task: &RawDoc) {
        let Some(task) = Migration::parse(task).filter(|_| unit.is_applying()) else { return };
        let key = ShardKey::parse(&task.key);
        let Ok(range) = key.and_then(|key| key.range(&task.min, &task.max)) else { return };
        let metadata = self.metadata.clone();
        unit.after_commit(move |_| metadata.outlive(task.uuid, &range));
    }
    fn take_up(&self, unit: &mut WriteUnit, task: &RawDoc) {
        if unit.is_applying() {
            return;
        }
        let (env, replication, task) = (self.env.clone(), self.replication.clone(), task.to_buf());
        unit.after_commit(move |_| {
            let begun = begin(env.clone(), replication, task);
            env.spawn("range deleter", begun);
        });
    }
}

/// Every write asks.
fn is_tasks(coll: &Collection) -> bool {
    coll.ns.db() == "config" && coll.ns.coll() == migration::DELETIONS_COLLECTION
}

async fn begin(env: Env, replication: Weak<Replication>, task: DocBuf) {
    let Some(replication) = replication.upgrade() else { return };
    let Some(services) = replication.services() else { return };
    if let Err(e) = services.host.start(migration::DELETER, &task).await {
        env.log.warn(Component::Sharding, 9_100_070, "A range is deleted later, by the next primary", |a| {
            a.data("task", &&*task).data("error", &e);
        });
    }
}

impl OpObserver for DeletionObserver {
    fn inserted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        if is_tasks(e.coll) && !migration::is_pending(e.doc) {
            self.take_up(unit, e.doc);
        }
        Ok(())
    }
    fn updated(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        if is_tasks(e.coll) && migration::is_pending(e.old) && !migration::is_pending(e.new) {
            self.take_up(unit, e.new);
        }
        if is_tasks(e.coll) && migration::is_processing(e.new) && !migration::is_processing(e.old) {
            self.end_reads(unit, e.new);
        }
        Ok(())
    }
}
