//! The data path of a member that follows: fetched from whom the coordinator chooses, from the end of this node's log.

use super::Replication;
use pando_base::{Error, Result};
use pando_env::Component;
use pando_repl::data::sync_status::SyncStatus;
use pando_repl::data::{DataPath, Deps, Position as DataPosition};
use std::sync::{Arc, PoisonError};

impl Replication {
    /// Written, applied, durable of a primary.
    pub(super) fn own_positions(&self) -> [DataPosition; 3] {
        let p = self.primary_positions();
        let applied = DataPosition { op_time: p.applied, wall: p.applied_wall_ms };
        [applied, applied, DataPosition { op_time: p.durable, wall: p.durable_wall_ms }]
    }

    /// Copies from whom the coordinator chooses, from the end of this node's log.
    pub(crate) fn start_data_path(self: &Arc<Self>) -> Result<()> {
        let mut path = self.data_path.lock().unwrap_or_else(PoisonError::into_inner);
        if path.is_none() {
            self.storage.log().follow()?;
            let top = self.top_of_log()?;
            // What was written just before may not be on disk yet.
            self.progress.take_over(&[top, top, self.progress.durable()]);
            self.progress.synced(self.storage.log().durable());
            *path = Some(Arc::new(DataPath::start(self.data_path_deps()?)));
        }
        Ok(())
    }
    pub(crate) fn data_path_deps(&self) -> Result<Deps> {
        Ok(Deps {
            env: self.env.clone(),
            catalog: self.maintenance.catalog_of_data_path(),
            progress: self.progress.clone(),
            upper: self.coordinator()?.clone(),
            pool: self.data_pool.clone(),
            login: self.config.member_login(),
            workers: self.apply_workers(),
            writes_per_worker: self.config.writes_per_worker,
            instance: self.instance.clone(),
        })
    }
    /// Stops fetching, and returns when everything fetched is applied.
    ///
    /// # Errors
    /// What could not be applied for want of data.
    pub(crate) async fn drain_data_path(&self) -> Result<()> {
        self.end_data_path().await.map_or(Ok(()), Err)
    }
    /// The same where it does not matter whether everything is applied.
    pub(crate) async fn stop_data_path(&self) -> Result<()> {
        self.end_data_path().await;
        Ok(())
    }
    async fn end_data_path(&self) -> Option<Error> {
        if let Some(sync) = self.initial_sync.lock().unwrap_or_else(PoisonError::into_inner).take() {
            sync.stop();
        }
        let path = self.data_path.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(path) = path.filter(|_| self.lifecycle.fatal_error().is_none()) {
            let lacking = path.stop().await;
            self.env.log.info(Component::Repl, 21107, "Finished oplog application", |_| {});
            return lacking;
        }
        None
    }
    /// Of the initial sync that runs.
    pub(crate) fn initial_sync_status(&self) -> Option<SyncStatus> {
        let running = self.initial_sync.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().map(|sync| sync.status.clone())
    }
}
