//! A member gives its data up and copies the set's once more: it is too stale to catch up, its operator says so, or its log
//! has parted from everybody's and nobody can tell where.

use super::role_changes::RoleChanges;
use pando_base::{Error, ErrorCode, OpTime, Result};
use pando_env::Component;
use pando_repl::data::Position;
use pando_repl::topology::{Event, WhyCopyAgain};
use std::sync::Arc;

impl RoleChanges {
    /// Begins it; the member is in STARTUP2 soon and comes back by itself.
    pub(crate) fn start_resync(self: &Arc<Self>) -> Result<()> {
        self.begin_giving_up(None)
    }
    /// The same because no member can be followed any more: what may be lost is kept in rollback files.
    pub(crate) fn start_copy_again(self: &Arc<Self>, why: WhyCopyAgain) -> Result<()> {
        self.begin_giving_up(Some(why))
    }

    fn begin_giving_up(self: &Arc<Self>, why: Option<WhyCopyAgain>) -> Result<()> {
        if self.replication.coordinator()?.read(|core| core.is_leader()) {
            return Err(Error::new(ErrorCode::NotSecondary, "primaries cannot resync"));
        }
        if self.replication.initial_sync_status().is_some() || !self.replication.rollbacks.begin() {
            let text = "this member rolls back or copies the set's data already";
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        let roles = self.clone();
        self.env.spawn("resync", async move {
            let done = roles.give_up(why).await;
            roles.replication.rollbacks.end();
            match done {
                Ok(Some(promised)) => {
                    roles.replication.tell(Event::TooStale(false));
                    roles.replication.tell(Event::Emptied { promised });
                }
                Ok(None) => {}
                Err(e) => roles.lifecycle.fatal("Resync failed", &e.message),
            }
        });
        Ok(())
    }

    /// Returns what this member has told others to hold; nothing where it leads the set meanwhile.
    async fn give_up(self: &Arc<Self>, why: Option<WhyCopyAgain>) -> Result<Option<OpTime>> {
        if !self.replication.leave_service()? {
            return Ok(None);
        }
        self.replication.stop_data_path().await?;
        self.quiet_down().await;
        self.maintenance.end_builds("the node copies the set's data again").await;
        self.quiet_down().await;
        let promised = match why {
            Some(WhyCopyAgain::Parted { before }) => self.replication.newest_not_after(before)?,
            Some(WhyCopyAgain::TooStale) | None => self.replication.progress.written().op_time,
        };
        if let Some(why) = why {
            self.replication.keep_what_may_be_lost(why, promised).await?;
        }
        self.env.log.warn(
            Component::Repl,
            9100024,
            "This member's data is given up, the set's is copied again",
            |a| {
                a.show("lastWritten", self.replication.progress.written().op_time);
                a.show("promised", promised);
            },
        );
        self.empty(promised).await?;
        Ok(Some(promised))
    }

    /// This member holds nothing any more. Others may count on its entries up to `promised`.
    pub(crate) async fn empty(&self, promised: OpTime) -> Result<()> {
        self.maintenance.forget_prepared();
        let maintenance = self.maintenance.clone();
        let emptied = self.env.offload(move || maintenance.give_up_data(promised)).await;
        emptied.unwrap_or_else(|| Err(Error::internal("emptying this member panicked")))?;
        self.sessions.retryable.clear();
        self.replication.progress.reset(Position::NULL);
        Ok(())
    }
}
