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

//! What was acknowledged by a majority is at or below the commit point, which the common point never passes.
//! A member whose history begins after the common point gives its data up and copies the set's again.
//!
//! A crash anywhere finds the log either whole (this node parts from its source again, and rolls back again) or cut.

use super::Replication;
use super::role_changes::RoleChanges;
use super::rollback_stats::Last;
use pando_access::observer::RolledBack;
use pando_base::mutants::{Mutant as Planted, broken as planted};
use pando_base::{Error, ErrorCode, Millis, Namespace, OpTime, Result, Timestamp, limits};
use pando_bson::{Value, doc};
use pando_command::Param;
use pando_env::Component;

use pando_query::date;
use pando_repl::data::common_point::{self, CommonPoint, Found};
use pando_repl::data::refetch;
use pando_repl::data::rollback_way::{self, Facts, Way};
use pando_repl::data::{Position as DataPosition, Undone};
use pando_repl::topology::{Event, MemberState, Position, Positions};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

fn rollback_id_ns() -> Namespace {
    Namespace::unchecked("local", "system.rollback.id")
}

/// How a rollback ended.
enum Done {
    Follows,
    /// The source's log does not show where they parted, but before this.
    CannotTell(OpTime),
    /// Without data. Entries up to here it had told others to hold.
    Emptied(OpTime),
}

struct Summary<'a> {
    started: Millis,
    source: &'a str,
    rbid: i32,
    common: OpTime,
    stable: Timestamp,
    undone: Arc<Undone>,
    /// Documents in rollback files.
    kept: u64,
    /// Entries of the log, or documents of the source.
    redone: Redone,
}

#[derive(Clone, Copy)]
enum Redone {
    Replayed(u64),
    Fetched(u64),
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

impl Replication {
    /// Nothing has been changed. Which member is asked next, and when nobody is left, the coordinator knows.
    fn ask_another(&self, source: &str, reached: OpTime) {
        self.env.log.warn(
            Component::Rollback,
            9100026,
            "The oplogs of this node and its sync source have no entry in common: another member is asked where they parted",
            |a| {
                a.str("syncSource", source).show("partedBefore", reached);
            },
        );
        self.rollbacks.without_common_point.inc();
        self.tell(Event::NoCommonPoint { host: source.into(), reached });
        self.tell(Event::FollowerState(self.follower_state()));
    }

    pub(crate) fn tell(&self, event: Event) {
        if let Some(c) = self.coordinator.get() {
            c.tell(event);
        }
    }
    /// From now on this member cannot be elected; false where it was before.
    pub(crate) fn leave_service(&self) -> Result<bool> {
        let coordinator = self.coordinator()?;
        coordinator.tell(Event::FollowerState(MemberState::Rollback));
        let leads = coordinator.read(|core| core.is_leader());
        if leads {
            coordinator.tell(Event::FollowerState(self.follower_state()));
        }
        Ok(!leads)
    }
    /// Of a member that follows: nobody reads data that is not of one time.
    pub(crate) fn follower_state(&self) -> MemberState {
        if self.maintenance.is_before_min_valid() { MemberState::Recovering } else { MemberState::Secondary }
    }

    fn way_back(&self, point: &CommonPoint) -> Result<Way> {
        let undone = &point.undone;
        let unfetchable = ["dropDatabase", "prepareTransaction"].into_iter().find(|c| undone.has(c));
        let way = rollback_way::choose(&Facts {
            common: point.at.op_time,
            top: undone.newest.map_or(point.at.op_time, |newest| newest.op_time),
            committed: self.progress.committed().op_time,
            stable: self.storage.stable(),
            began: self.maintenance.initial_data()?,
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

    /// The next rollback number, on disk before any data is changed (R-RB-3).
    pub(crate) async fn count_rollback(&self, common: OpTime) -> Result<i32> {
        self.storage.log().wait_durable(common.ts).await?;
        let rbid = self.progress.rbid() + 1;
        self.store_rollback_id(rbid).await?;
        self.sync_local().await?;
        self.progress.set_rbid(rbid);
        Ok(rbid)
    }

    fn tell_rollback(&self, s: Summary<'_>) {
        let ended = self.env.clock.wall_ms();
        let first = s.undone.oldest.map_or(OpTime::NULL, |p| p.op_time);
        let last = s.undone.newest.map_or(OpTime::NULL, |p| p.op_time);
        self.env.log.info(Component::Rollback, 21612, "Rollback summary", |a| {
            a.str("startTime", &date::iso(s.started)).str("endTime", &date::iso(ended));
            a.str("syncSource", s.source).i64("rbid", i64::from(s.rbid));
            a.show("lastOptimeRolledBack", last).show("commonPoint", s.common);
            a.show("firstOpTimeAfterCommonPoint", first).show("stableTimestamp", s.stable);
            a.u64("affectedSessions", s.undone.sessions.len() as u64);
            a.str(
                "affectedNamespaces",
                &Vec::from_iter(s.undone.namespaces.iter().map(String::as_str)).join(", "),
            );
            let commands = s.undone.commands.iter().map(|(name, n)| format!("{name}: {n}"));
            a.str("rollbackCommandCounts", &Vec::from_iter(commands).join(", "));
            a.u64("totalEntriesRolledBackIncludingNoops", s.undone.entries);
            a.u64("documentsInRollbackFiles", s.kept);
            match s.redone {
                Redone::Replayed(n) => a.u64("numOpsReplayed", n),
                Redone::Fetched(n) => a.u64("documentsRefetched", n),
            };
        });
        let last = Last {
            ended,
            millis: ended - s.started,
            common: s.common,
            entries: s.undone.entries,
            documents: s.kept,
        };
        self.rollbacks.note(last);
    }

    /// A member that is still on an older branch has newer entries than ours again: fetched from it, they would have
    /// to be undone once more, over and over.
    fn avoid_older_branches(&self, source: &str) {
        let Some(coordinator) = self.coordinator.get() else { return };
        let older: Vec<_> = coordinator.read(|core| {
            let members = core.config().into_iter().flat_map(|c| &c.members);
            let others = members.filter(|m| m.id != core.self_id() && m.host != source);
            let behind = |id| core.member(id).is_some_and(|d| d.best.written.op.t < core.term());
            others.filter(|m| behind(m.id)).map(|m| m.host.as_str().into()).collect()
        });
        let for_ms = limits::DENY_PROBE_FAILED_MS as i64;
        older.into_iter().for_each(|host| coordinator.tell(Event::SyncSourceDenied { host, for_ms }));
    }

    /// At the start. The first one of a member writes down the number that it begins with.
    pub(crate) async fn restore_rollback_id(&self) -> Result<()> {
        let stored = self.internal.first(&rollback_id_ns())?;
        if let Some(Value::Int32(n)) = stored.as_ref().and_then(|d| d.get("rollbackId")) {
            self.progress.set_rbid(n);
            return Ok(());
        }
        self.store_rollback_id(self.progress.rbid()).await
    }
    async fn store_rollback_id(&self, rbid: i32) -> Result<()> {
        let doc = doc! { "_id": "rollbackId", "rollbackId": rbid };
        self.internal.replace_only(&rollback_id_ns(), &doc.to_raw()).await
    }
}

impl RoleChanges {
    /// The log of `source` has parted from ours. Ends with this node following again, or with the process.
    pub(crate) fn start_rollback(self: &Arc<Self>, source: String) {
        if self.replication.rollbacks.running.swap(true, SeqCst) {
            return;
        }
        let roles = self.clone();
        self.env.spawn("rollback", async move {
            let done = roles.roll_back(&source).await;
            roles.replication.rollbacks.running.store(false, SeqCst);
            match done {
                Ok(Done::Follows) => {}
                Ok(Done::CannotTell(reached)) => roles.replication.ask_another(&source, reached),
                Ok(Done::Emptied(promised)) => roles.replication.tell(Event::Emptied { promised }),
                Err(e) if is_of_the_source(&e) => {
                    roles.env.log.info(
                        Component::Rollback,
                        21656,
                        "Rollback cannot go on with this source",
                        |a| {
                            a.str("syncSource", &source).str("error", &e.message);
                        },
                    );
                    roles.replication.tell(Event::FollowerState(roles.replication.follower_state()));
                }
                Err(e) => roles.lifecycle.fatal("Rollback failed", &e.message),
            }
        });
    }

    async fn roll_back(self: &Arc<Self>, source: &str) -> Result<Done> {
        let coordinator = self.replication.coordinator()?.clone();
        if !self.replication.leave_service()? {
            return Ok(Done::Follows);
        }
        let started = self.env.clock.wall_ms();
        let mut hooks = Told::begin(&self.replication);
        self.replication.stop_data_path().await?;
        self.env.log.info(Component::Rollback, 21611, "Starting rollback", |a| {
            a.str("syncSource", source);
        });
        let killed = self.quiet_down().await;
        self.replication.transitions.note(&self.instance.clients, "rollback", killed);
        self.lifecycle.hold("rollbackHangAfterTransitionToRollback").await;
        let point = match common_point::find(&self.replication.data_path_deps()?, source).await? {
            Found::At(point) => *point,
            Found::NoneSince(reached) => {
                let may = rollback_way::without_common_point(
                    reached,
                    self.replication.progress.committed().op_time,
                );
                may.map_err(|text| Error::new(ErrorCode::UnrecoverableRollbackError, text))?;
                return Ok(Done::CannotTell(reached));
            }
        };
        let common = point.at.op_time;
        let way = self.replication.way_back(&point)?;
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
        let kept = if self.instance.params.bool(Param::createRollbackDataFiles) {
            self.replication.keep_undone_documents(common.ts).await?
        } else {
            0
        };
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
        self.maintenance.forget_prepared();
        let maintenance = self.maintenance.clone();
        let redone = self.env.offload(move || match fetched {
            Some(f) => {
                maintenance.roll_back_fetched(common.ts, f.min_valid).map(|()| Redone::Fetched(f.documents))
            }
            None => maintenance.roll_back(common.ts).map(Redone::Replayed),
        });
        let redone = redone.await.unwrap_or_else(|| Err(Error::internal("the rollback panicked")))?;
        self.lifecycle.hold("rollbackHangAfterRecoveringToStable").await;
        self.sessions.forget();
        if !planted(Planted::RetryableForgottenByRollback) {
            self.sessions.restore_retryable_writes()?;
        }
        self.sessions.restore_prepared()?;
        if !self.maintenance.is_before_min_valid() {
            self.maintenance.resume_builds().await?;
        }
        self.replication.progress.reset(point.at);
        self.tell_observers(common, &undone);
        hooks.taken_back();
        self.replication.tell_rollback(Summary {
            started,
            source,
            rbid,
            common,
            stable,
            undone,
            kept,
            redone,
        });
        let at = Position::new(common, point.at.wall);
        coordinator.tell(Event::Rewound(Positions::at(at)));
        self.replication.avoid_older_branches(source);
        coordinator.tell(Event::FollowerState(self.replication.follower_state()));
        Ok(Done::Follows)
    }

    /// This member's history begins after the common point, with an initial sync from somebody whose newest writes have
    /// been undone since: there is nothing to go back to. Whatever was committed is at or below the common point, which
    /// the source holds, so this member copies the set's data once more.
    async fn give_data_up(&self, common: OpTime, stable: Timestamp) -> Result<()> {
        self.env.log.warn(
            Component::Rollback,
            9100020,
            "The data of this member's initial sync was rolled back by others: it is given up, and copied again",
            |a| {
                a.show("commonPoint", common).show("initialDataTimestamp", stable);
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
    /// This member holds nothing any more. Others may count on its entries up to `promised`.
    pub(crate) async fn empty(&self, promised: OpTime) -> Result<()> {
        self.maintenance.forget_prepared();
        let maintenance = self.maintenance.clone();
        let emptied = self.env.offload(move || maintenance.give_up_data(promised)).await;
        emptied.unwrap_or_else(|| Err(Error::internal("emptying this member panicked")))?;
        self.sessions.retryable.clear();
        self.replication.progress.reset(DataPosition::NULL);
        Ok(())
    }

    /// Ends what reads or waits here: nobody may hold a snapshot while rows are taken back. Returns how many operations
    /// of users were told to end.
    pub(crate) async fn quiet_down(&self) -> usize {
        let code = ErrorCode::InterruptedDueToReplStateChange;
        self.cursors.kill(self.env.clock.mono(), &|_| true);
        self.sessions.abort_open_transactions();
        let mut killed = 0;
        loop {
            let kill = |users: bool| {
                let is_user = |c: &pando_command::Client| c.is_connection() && !c.is_internal();
                let clients = &self.instance.clients;
                clients.kill_where(code, |c, op| is_user(c) == users && (op.is_read || op.is_write))
            };
            let users = kill(true);
            let busy = users + kill(false);
            killed = killed.max(users);
            if busy == 0 || self.lifecycle.is_stopping() {
                return killed;
            }
            self.env.clock.sleep(Duration::from_millis(limits::ROLLBACK_POLL_MS)).await;
        }
    }
}

/// Nothing has been changed here yet: another source may do.
fn is_of_the_source(e: &Error) -> bool {
    e.code == ErrorCode::InvalidSyncSource
}
