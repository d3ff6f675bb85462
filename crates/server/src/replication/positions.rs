//! How far the log is, as replies and other members see it.

use super::Replication;
use pando_base::{OpTime, Timestamp};
use pando_bson::DocBuilder;
use pando_command::OpCtx;
use pando_repl::data::Position;
use pando_repl::data::metadata::{OplogQueryData, ReplData};
use pando_repl::show::Positions;

impl Replication {
    /// This node takes entries from another and writes none of its own.
    pub(crate) fn is_following(&self) -> bool {
        self.member.is_replicated() && !self.member.is_primary()
    }
    /// The newest write that a new read would see, with its term.
    pub(crate) fn last_applied(&self) -> OpTime {
        if self.is_following() {
            return self.progress.applied().op_time;
        }
        OpTime::new(self.storage.log().visible(), self.maintenance.term())
    }
    /// The majority commit point, as far as it can be read here. With one member, what is durable is committed.
    pub(crate) fn committed(&self) -> Timestamp {
        let log = self.storage.log();
        if self.is_following() {
            let p = &self.progress;
            return p.committed().op_time.ts.min(p.applied().op_time.ts);
        }
        if self.member.is_alone() || !self.member.is_replicated() {
            return log.durable().min(log.visible());
        }
        self.progress.committed().op_time.ts.min(log.visible())
    }
    pub(crate) fn positions(&self) -> Positions {
        if self.is_following() {
            let p = &self.progress;
            let (applied, durable, committed) = (p.applied(), p.durable(), p.committed());
            return Positions {
                applied: applied.op_time,
                applied_wall_ms: applied.wall,
                durable: durable.op_time,
                durable_wall_ms: durable.wall,
                committed: committed.op_time,
                committed_wall_ms: committed.wall,
            };
        }
        self.primary_positions()
    }
    /// What a new majority read would see, behind the rollback id it is of: with one id it never goes back, whatever role
    /// the node has or loses. None while it cannot be read.
    pub fn majority_read_point(&self) -> Option<(i32, Timestamp)> {
        let point = (self.progress.rbid(), self.committed());
        // Without a commit point, as behind a start or in a set that was split off, nobody reads.
        (self.member.is_readable() && !point.1.is_zero()).then_some(point)
    }
    /// What is wrong between the timestamps of this node, if anything: for the monitors of the tests. The smaller ones
    /// are read first, since all of them move on meanwhile.
    pub fn timestamp_problem(&self) -> Option<String> {
        let (storage, log, p) = (&self.storage, self.storage.log(), &self.progress);
        let before = (self.member.is_readable(), p.rbid());
        let (following, alone) = (self.is_following(), self.member.is_alone());
        let (oldest, stable, snapshot) = (storage.oldest(), storage.stable(), self.committed());
        let (durable_entry, visible) = (log.durable_entry(), log.visible());
        let (durable, applied) = (p.durable().op_time, p.applied().op_time);
        let (written, committed) = (p.written().op_time, p.committed().op_time.ts);
        let (all_durable, last) = (storage.all_durable(), log.last());
        let mut wrong = Vec::new();
        let mut check = |holds: bool, what: &str| {
            if !holds {
                wrong.push(what.to_owned())
            }
        };
        check(oldest <= stable, "oldest <= stable");
        check(stable <= all_durable, "stable <= all_durable");
        check(durable_entry <= last, "durable <= last");
        if following {
            check(applied.ts <= all_durable, "lastApplied <= all_durable");
            check(durable <= written && applied <= written, "lastDurable, lastApplied <= lastWritten");
            check(
                // Whoever leaves for a set of its own forgets the commit point between the two.
                snapshot <= applied.ts && (snapshot <= committed || committed.is_zero()),
                "committed snapshot <= lastApplied, lastCommitted",
            );
        } else {
            check(visible <= all_durable, "visible <= all_durable");
        }
        if !following && self.member.is_replicated() {
            check(snapshot <= visible.max(log.visible()), "committed snapshot <= lastApplied");
            check(alone || snapshot <= committed, "committed snapshot <= lastCommitted");
        }
        // A change of role or a rollback in between.
        let same =
            before == (true, p.rbid()) && following == self.is_following() && self.member.is_readable();
        (same && !wrong.is_empty()).then(|| {
            format!(
                "{wrong:?}: oldest {oldest}, stable {stable}, committed snapshot {snapshot}, durable entry {durable_entry}, \
                 visible {visible}, lastDurable {durable}, lastApplied {applied}, lastWritten {written}, \
                 lastCommitted {committed}, all_durable {all_durable}, last {last}"
            )
        })
    }
    /// Positions of a node that writes its own log.
    pub(crate) fn primary_positions(&self) -> Positions {
        // Wall times of entries are their timestamps' seconds: good enough between whole seconds.
        let wall = |t: Timestamp| i64::from(t.secs()) * 1000;
        // What own entries carry: the set's term may have moved on under a primary that steps down just now, and an
        // entry must not be taken for one of a later term.
        let term = self.maintenance.term();
        let log = self.storage.log();
        let applied = log.visible();
        // Not `durable()`: a place that was reserved and given back names no entry, and no log could be found to hold it.
        let durable = log.durable_entry().min(applied);
        let committed = if self.member.is_alone() || !self.member.is_replicated() {
            Position { op_time: OpTime::new(durable, term), wall: wall(durable) }
        } else {
            self.progress.committed()
        };
        Positions {
            applied: OpTime::new(applied, term),
            applied_wall_ms: wall(applied),
            durable: OpTime::new(durable, term),
            durable_wall_ms: wall(durable),
            committed: committed.op_time,
            committed_wall_ms: committed.wall,
        }
    }
    /// After the log was synced.
    pub(crate) fn note_synced(&self) {
        self.progress.synced(self.storage.log().durable());
        if self.member.is_primary() {
            self.tell_own_progress();
        } else if let Some(c) = self.coordinator.get() {
            pando_repl::data::Upper::progressed(&**c);
        }
    }

    /// `$replData` and `$oplogQueryData`, when they were asked for.
    pub(crate) fn append_replication_metadata(&self, ctx: &OpCtx, b: &mut DocBuilder) {
        let state = self.member.state();
        let Some(config) = &state.config else { return };
        let p = self.positions();
        let committed = Position { op_time: p.committed, wall: p.committed_wall_ms };
        let source = self.progress.source().unwrap_or_default();
        let index_of =
            |host: &str| config.members.iter().position(|m| m.host == host).map_or(-1, |i| i as i32);
        // Also on a secondary: who follows it hears this way that there is a primary (R-META-2).
        let primary_index = state.primary.as_deref().map_or(-1, index_of);
        if ctx.args.wants_repl_data {
            ReplData {
                term: state.term,
                committed,
                visible: p.applied,
                config_version: config.version,
                config_term: config.term,
                replica_set_id: config.settings.replica_set_id,
                sync_source_index: index_of(&source),
                is_primary: self.member.is_primary(),
            }
            .append_to(b);
        }
        if ctx.args.wants_oplog_query_data {
            OplogQueryData {
                committed,
                applied: p.applied,
                rbid: self.progress.rbid(),
                primary_index,
                sync_source_index: index_of(&source),
                sync_source_host: source,
                positions_awaited: self.progress.positions_awaited(self.env.clock.mono()),
            }
            .append_to(b);
        }
    }
}
