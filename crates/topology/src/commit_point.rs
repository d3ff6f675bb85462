//! The majority commit point (R-CP-1..6): the newest entry that a majority of voters cannot lose.
//!
//! A primary computes it from positions, and only through entries of its own term: an older entry on a majority may
//! still be replaced by a later primary that lacks it. Others learn it: from the sync source, whose log they share up
//! to their own last entry, or by heartbeat, which proves a shared log only if the terms agree.

use crate::action::{Action, Actions};
use crate::config::{Member, ReplSetConfig, VOTING_MEMBERS_MAX};
use crate::core::Core;
use crate::member::{MemberId, Position, Positions};
use crate::mutants::{Mutant, broken};
use crate::office::LeaderMode;
use pando_base::OpTime;
use pando_base::mutants::{Mutant as Planted, broken as planted};

/// Members whose copy makes an entry committed.
fn counts(m: &Member) -> bool {
    m.is_data_bearing() && (m.is_voter() || planted(Planted::CommitCountsNonVoters))
}

impl Core {
    pub(crate) fn best_of(&self, id: MemberId) -> Positions {
        if id == self.self_id() { self.me } else { self.members.get(&id).map_or(Positions::NULL, |m| m.best) }
    }

    /// Something is known to be further; everything that depends on positions looks again.
    pub(crate) fn on_positions_changed(&mut self, out: &mut Actions) {
        self.advance_commit_point();
        self.tell_commit_point(out);
        self.wake_waiters(out);
        self.check_catch_up(out);
        self.look_at_step_down(out);
        self.look_at_reconfig(out);
    }

    pub(crate) fn on_progress(&mut self, positions: &Positions, out: &mut Actions) {
        if self.me.forward_to(positions) {
            self.see_first_entry();
            self.on_positions_changed(out);
            self.send_positions(out);
        }
    }

    // tour: apply 9/9
    /// R-CP-1, R-CP-2, R-CATCH-5.
    fn advance_commit_point(&mut self) {
        let (Some(config), Some(first)) = (&self.config, self.first_of_term) else { return };
        if !matches!(self.mode, LeaderMode::WritablePrimary | LeaderMode::AttemptingStepDown) {
            return;
        }
        let Some(candidate) = self.held_by_majority(config) else { return };
        let own_term = candidate.op >= first || broken(Mutant::CommitOlderTerm);
        if own_term && candidate.op > self.committed.op {
            self.committed = candidate;
            if let Some(e) = self.election.as_mut().filter(|e| e.majority_available.is_none()) {
                e.majority_available = Some(self.now);
            }
        }
    }

    /// The newest position that a majority of the voters with data holds.
    fn held_by_majority(&self, config: &ReplSetConfig) -> Option<Position> {
        let on_disk = config.write_concern_majority_journal_default && !broken(Mutant::CommitBeforeDurable);
        let needed = config.write_majority() - usize::from(broken(Mutant::CommitByMinority));
        // Runs on every commit: no allocation.
        let mut held = [Position::NULL; VOTING_MEMBERS_MAX];
        let mut n = 0;
        for m in config.members.iter().filter(|m| counts(m)).take(held.len()) {
            let p = self.best_of(m.id);
            held[n] = if on_disk { p.durable } else { p.written };
            n += 1;
        }
        let held = &mut held[..n];
        held.sort_by_key(|p| std::cmp::Reverse(p.op));
        held.get(needed.saturating_sub(1)).copied()
    }

    /// R-CP-3, R-CP-5: an arbiter has no log to compare.
    pub(crate) fn learn_commit_point_by_heartbeat(&mut self, theirs: Position) {
        if self.is_leader() || theirs.op <= self.committed.op {
            return;
        }
        let same_term = theirs.op.t == self.me.written.op.t || broken(Mutant::HeartbeatCommitOfAnyTerm);
        if self.is_arbiter() || same_term {
            self.committed = theirs;
        }
    }

    /// R-CP-4: what the source has committed and this node does not have yet is told later. The source was found to
    /// have everything up to `last_fetched`; own entries beyond that (of an office since) need not be in its log.
    pub(crate) fn learn_commit_point_from_source(&mut self, theirs: Position, last_fetched: OpTime) {
        if self.is_leader() && !self.is_catching_up() {
            return;
        }
        let mine = self.me.written;
        let shared = theirs.op.t == mine.op.t || theirs.op <= mine.op || broken(Mutant::SourceCommitUncapped);
        let learnt = if shared { theirs } else { mine };
        let proven = shared || mine.op <= last_fetched || broken(Mutant::SourceCommitUnproven);
        if proven && learnt.op > self.committed.op {
            self.committed = learnt;
        }
    }

    pub(crate) fn tell_commit_point(&mut self, out: &mut Actions) {
        if self.committed.op > self.told_committed {
            self.told_committed = self.committed.op;
            out.push(Action::CommitPoint(self.committed));
            self.wake_waiters(out);
        }
    }

    /// Commit point when a configuration takes effect (R-CONF-6).
    pub(crate) fn remember_commit_point(&mut self) {
        self.committed_in_previous = self.committed.op;
    }
    /// Whether the next configuration may follow (R-CONF-6): a majority of the present one holds what was committed when it came into
    /// force, and an entry of this office. The commit point alone does not say so: the majority that it stands on may be one of the
    /// configuration before, and a third one could have a majority without any of those members.
    pub(crate) fn is_all_committed_here(&self) -> bool {
        let first = self.first_of_term.filter(|_| !planted(Planted::ReconfigInForeignTerm));
        let owed = first.unwrap_or(OpTime::NULL).max(self.committed_in_previous);
        let held = self.config.as_deref().and_then(|c| self.held_by_majority(c)).unwrap_or(Position::NULL);
        self.committed.op >= owed && (held.op >= owed || broken(Mutant::ReconfigOnOldMajority))
    }
}
