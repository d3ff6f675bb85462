//! A member gives its data up and copies the set's once more: it is too stale to catch up, its operator says so, or its log
//! has parted from everybody's and nobody can tell where.

use super::Replication;
use super::role_changes::RoleChanges;
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp};
use pando_bson::RawDoc;
use pando_command::Param;
use pando_env::Component;
use pando_oplog::EntryView;
use pando_repl::topology::{Event, WhyCopyAgain};
use std::ops::Bound;
use std::sync::Arc;

impl Replication {
    /// Our newest entry that the set may count on, if all since `reached` has parted from it. `reached` itself is committed
    /// (the oldest entry of somebody's log is), so whoever may be elected has it: to promise more would bind this member's
    /// vote for nothing.
    fn newest_not_after(&self, reached: OpTime) -> Result<OpTime> {
        let mut entries = self.storage.log().read(Bound::Included(reached.ts), true);
        while let Some((_, entry)) = entries.next()? {
            let at = EntryView::parse(RawDoc::trusted(&entry))?.op_time();
            if at <= reached {
                return Ok(at);
            }
        }
        Ok(OpTime::NULL)
    }

    /// What lies beyond what is known to be committed, as after any rollback; the number of rollbacks tells those that follow
    /// this member that its log is another one.
    async fn keep_what_may_be_lost(&self, why: WhyCopyAgain, promised: OpTime) -> Result<()> {
        let stable = if self.config.majority_reads { self.storage.stable() } else { Timestamp::ZERO };
        let sure = self.progress.committed().op_time.ts.max(stable);
        let rbid = self.count_rollback(promised).await?;
        let kept = if self.instance.params.bool(Param::createRollbackDataFiles) {
            self.keep_undone_documents(sure).await?
        } else {
            0
        };
        self.rollbacks.copied_again.inc();
        let (id, text) = match why {
            WhyCopyAgain::Parted { .. } => (
                9100027,
                "No member can tell where this member's oplog has parted from the set's: its data will be copied again",
            ),
            WhyCopyAgain::TooStale => (
                9100028,
                "No member's oplog goes back to where this member's ends: its data will be copied again",
            ),
        };
        self.env.log.warn(Component::Rollback, id, text, |a| {
            a.i64("rbid", i64::from(rbid)).show("keptSince", sure).u64("documentsInRollbackFiles", kept);
        });
        Ok(())
    }
}

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
}
