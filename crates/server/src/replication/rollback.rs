//! Rollback: what this member wrote and no other has, is undone (R-RB-1..4).
//!
//! ```text
//!   diverged ─► ROLLBACK: no reads, cursors and operations end ─► common point ─► new rollback number on disk
//!            ─► index builds end ─► rollback files ─► rows back to stable, log cut, log replayed
//!            ─► sessions, settings, positions ─► hooks, summary ─► SECONDARY, follows again
//! ```
//! Where stable runs ahead of the commit point (`enableMajorityReadConcern: false`) rows cannot be taken back to it: what is
//! undone is fetched from the source instead, and the member is RECOVERING until its log is applied up to what it may have
//! fetched (R-REF-1..3).
//!
//! What was acknowledged by a majority is at or below the commit point, which the common point never passes.
//! A member whose history begins after the common point gives its data up and copies the set's again.
//!
//! A crash anywhere finds the log either whole (this node parts from its source again, and rolls back again) or cut.

use super::Replication;
use super::role_changes::RoleChanges;
use super::rollback_summary::{Redone, Summary};
use pando_access::observer::RolledBack;
use pando_base::mutants::{Mutant as Planted, broken as planted};
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp};
use pando_command::Param;
use pando_env::Component;
use pando_repl::data::Undone;
use pando_repl::data::common_point::{self, CommonPoint, Found};
use pando_repl::data::refetch::{self, Fetched};
use pando_repl::data::rollback_way::{self, Facts, Way};
use pando_repl::topology::{Event, Position, Positions};
use std::sync::Arc;

/// How a rollback ended.
enum Done {
    Follows,
    /// The source's log does not show where they parted, but before this.
    CannotTell(OpTime),
    /// The source is on a branch that has lost: it is this one's turn to be rolled back.
    LeftAlone(Error),
    /// Without data. Entries up to here it had told others to hold.
    Emptied(OpTime),
}

/// Services hear once of the beginning and once of the end, whichever it is.
struct Told<'a> {
    replication: &'a Replication,
    taken_back: bool,
}

impl<'a> Told<'a> {
    fn begin(replication: &'a Replication) -> Told<'a> {
        replication.services().inspect(|s| s.hooks.rollback_begin());
        Told { replication, taken_back: false }
    }
    /// Own writes are undone, and all that follows from it in the data is done.
    fn taken_back(&mut self) {
        self.taken_back = true;
        self.replication.services().inspect(|s| s.hooks.rollback_end(true));
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if !self.taken_back {
            self.replication.services().inspect(|s| s.hooks.rollback_end(false));
        }
    }
}

impl RoleChanges {
    /// The log of `source` has parted from ours. Ends with this node following again, or with the process.
    pub(crate) fn start_rollback(self: &Arc<Self>, source: String) {
        if !self.replication.rollbacks.begin() {
            return;
        }
        let roles = self.clone();
        self.env.spawn("rollback", async move {
            let done = roles.roll_back(&source).await;
            roles.replication.rollbacks.end();
            match done {
                Ok(Done::Follows) => {}
                Ok(Done::CannotTell(reached)) => roles.replication.ask_another(&source, reached),
                Ok(Done::Emptied(promised)) => roles.replication.tell(Event::Emptied { promised }),
                Ok(Done::LeftAlone(why)) => {
                    roles.cannot_go_on_with(&source, &why);
                    roles.replication.avoid(&source);
                    roles.replication.tell(Event::FollowerState(roles.replication.follower_state()));
                }
                Err(e) if is_of_the_source(&e) => {
                    roles.cannot_go_on_with(&source, &e);
                    roles.replication.tell(Event::FollowerState(roles.replication.follower_state()));
                }
                Err(e) => roles.lifecycle.fatal("Rollback failed", &e.message),
            }
        });
    }

    fn cannot_go_on_with(&self, source: &str, why: &Error) {
        self.env.log.info(Component::Rollback, 21656, "Rollback cannot go on with this source", |a| {
            a.str("syncSource", source).data("error", why);
        });
    }

    async fn roll_back(self: &Arc<Self>, source: &str) -> Result<Done> {
        if !self.replication.leave_service()? {
            return Ok(Done::Follows);
        }
        let started = self.env.clock.wall_ms();
        let mut hooks = Told::begin(&self.replication);
        self.stop_following(source).await?;
        let point = match self.parting(source).await? {
            Found::At(point) => *point,
            Found::NoneSince(reached) => return Ok(Done::CannotTell(reached)),
        };
        self.replication.check_is_member(source)?;
        let common = point.at.op_time;
        let way = self.way_back(&point)?;
        if let Way::AnotherSource(text) = way {
            return Ok(Done::LeftAlone(Error::new(ErrorCode::InvalidSyncSource, text)));
        }
        let fetched = match way {
            Way::Refetch => {
                self.lifecycle.hold("rollbackHangBeforeFetching").await;
                Some(refetch::fetch(&self.replication.data_path_deps()?, source, common.ts).await?)
            }
            _ => None,
        };
        let rbid = self.replication.count_rollback(common).await?;
        self.lifecycle.hold("rollbackHangAfterIncrementingRollbackId").await;
        self.maintenance.end_builds("the node rolls back").await;
        let undone = Arc::new(point.undone);
        let kept = self.replication.keep_undone_documents(common.ts).await?;
        self.lifecycle.hold("rollbackHangAfterWritingRollbackFiles").await;
        // Whoever reads the log may have begun since.
        self.quiet_down().await;
        let stable = self.storage.stable();
        if way == Way::CopyAgain {
            self.give_data_up(common, stable).await?;
            self.tell_observers(OpTime::NULL, &undone);
            hooks.taken_back();
            return Ok(Done::Emptied(common));
        }
        let redone = self.take_back(common.ts, fetched).await?;
        self.lifecycle.hold("rollbackHangAfterRecoveringToStable").await;
        self.restore_from_data().await?;
        self.replication.progress.reset(point.at);
        self.tell_observers(common, &undone);
        hooks.taken_back();
        let summary = Summary { started, source, rbid, common, stable, undone, kept, redone };
        self.replication.tell_rollback(summary);
        self.replication.tell(Event::Rewound(Positions::at(Position::new(common, point.at.wall))));
        self.replication.avoid_older_branches(source);
        self.replication.tell(Event::FollowerState(self.replication.follower_state()));
        Ok(Done::Follows)
    }

    /// Nothing is fetched any more, and nobody reads here.
    async fn stop_following(&self, source: &str) -> Result<()> {
        self.replication.stop_data_path().await?;
        self.env.log.info(Component::Rollback, 21611, "Starting rollback", |a| {
            a.str("syncSource", source);
        });
        let killed = self.quiet_down().await;
        self.replication.transitions.note(&self.instance.clients, "rollback", killed);
        self.lifecycle.hold("rollbackHangAfterTransitionToRollback").await;
        Ok(())
    }

    /// Where the two logs part; an error where that is below what is committed.
    async fn parting(&self, source: &str) -> Result<Found> {
        let found = common_point::find(&self.replication.data_path_deps()?, source).await?;
        if let Found::NoneSince(reached) = &found {
            let committed = self.replication.progress.committed().op_time;
            rollback_way::without_common_point(*reached, committed)
                .map_err(|text| Error::new(ErrorCode::UnrecoverableRollbackError, text))?;
        }
        Ok(found)
    }

    fn way_back(&self, point: &CommonPoint) -> Result<Way> {
        let undone = &point.undone;
        let unfetchable = ["dropDatabase", "prepareTransaction"].into_iter().find(|c| undone.has(c));
        let way = rollback_way::choose(&Facts {
            common: point.at.op_time,
            theirs: point.theirs,
            term: self.replication.member.term(),
            top: undone.newest.map_or(point.at.op_time, |newest| newest.op_time),
            committed: self.replication.progress.committed().op_time,
            stable: self.storage.stable(),
            // Whoever has left a set may have had more of it than those with whom it is one now.
            began: self.maintenance.initial_data()?.max(self.replication.left_set_at()?),
            majority_reads: self.config.majority_reads,
            force_refetch: self.instance.params.bool(Param::forceRollbackViaRefetch),
            uneven: self.maintenance.is_before_min_valid(),
            definitions_known: self.maintenance.remembers_definitions(point.at.op_time.ts)?,
            unfetchable,
            spans_secs: undone.spans_ms() / 1000,
            limit_secs: self.instance.params.int(Param::rollbackTimeLimitSecs),
        });
        match way {
            Way::Never(text) => Err(Error::new(ErrorCode::UnrecoverableRollbackError, text)),
            way => Ok(way),
        }
    }

    /// Takes rows and log back to the common point, or puts what was fetched in place of what was written since.
    async fn take_back(&self, common: Timestamp, fetched: Option<Fetched>) -> Result<Redone> {
        self.maintenance.forget_prepared();
        let maintenance = self.maintenance.clone();
        let redone = self.env.offload(move || match fetched {
            Some(f) => {
                maintenance.roll_back_fetched(common, f.min_valid).map(|()| Redone::Fetched(f.documents))
            }
            None => maintenance.roll_back(common).map(Redone::Replayed),
        });
        redone.await.unwrap_or_else(|| Err(Error::internal("the rollback panicked")))
    }

    /// What is held in memory of the data: sessions, prepared transactions, index builds.
    async fn restore_from_data(&self) -> Result<()> {
        self.sessions.forget();
        if !planted(Planted::RetryableForgottenByRollback) {
            self.sessions.restore_retryable_writes()?;
        }
        self.sessions.restore_prepared()?;
        if !self.maintenance.is_before_min_valid() {
            self.maintenance.resume_builds().await?;
        }
        Ok(())
    }

    /// This member's history begins after the common point, with an initial sync from somebody whose newest writes have
    /// been undone since, or with what the set wrote that it has left: there is nothing to go back to. Whatever was committed is at or below the common point, which
    /// the source holds, so this member copies the set's data once more.
    async fn give_data_up(&self, common: OpTime, stable: Timestamp) -> Result<()> {
        self.env.log.warn(
            Component::Rollback,
            9100020,
            "There is no state of this member's data that the set has had, too: it is given up, and copied again",
            |a| {
                a.show("commonPoint", common).show("stableTimestamp", stable);
            },
        );
        self.empty(common).await?;
        self.replication.rollbacks.copied_again.inc();
        Ok(())
    }
    fn tell_observers(&self, to: OpTime, undone: &Undone) {
        self.maintenance.tell_rolled_back(&RolledBack {
            to,
            namespaces: &undone.namespaces,
            ids: &undone.ids,
            ids_incomplete: undone.ids_incomplete,
            sessions: &undone.sessions,
            config: undone.has_config(),
            shard_identity: undone.has_shard_identity(),
        });
    }
}

/// Nothing has been changed here yet: another source may do.
fn is_of_the_source(e: &Error) -> bool {
    e.code == ErrorCode::InvalidSyncSource
}
