//! How far the stable timestamp may move, and the oldest one behind it (R-TS-1, R-TS-2, R-TS-6).

use super::Replication;
use pando_base::Timestamp;
use pando_base::mutants::{Mutant as Planted, broken as planted};
use pando_command::Param;

impl Replication {
    /// What a rollback need not reach; where majority reads are off, whatever is written without holes (R-TS-6).
    fn stable_goal(&self) -> Timestamp {
        if self.config.majority_reads || !self.member.is_replicated() {
            let ahead = planted(Planted::StableAheadOfCommit);
            return if ahead { self.storage.all_durable() } else { self.committed() };
        }
        let all_durable = self.storage.all_durable();
        if self.is_following() { all_durable.min(self.progress.applied().op_time.ts) } else { all_durable }
    }
    /// With one member whatever is durable can never be rolled back (R-TS-1); the window below it stays readable
    /// (R-TS-2).
    pub(crate) fn advance_stable(&self) {
        if self.is_member_alone() && !self.instance.params.bool(Param::takeUnstableCheckpointOnShutdown) {
            return;
        }
        let stable = self.stable_goal();
        // An unfinished copy has no history yet.
        if stable.is_zero() || (self.is_following() && !self.member.is_readable()) {
            return;
        }
        self.storage.set_stable(stable);
        let window = self.instance.params.int(Param::minSnapshotHistoryWindowInSeconds).max(0) as u32;
        let oldest = Timestamp::new(stable.secs().saturating_sub(window), 0);
        // Before the end of an initial sync, or of a rollback that fetched documents, the data was not of one time.
        let began = self.maintenance.initial_data().unwrap_or(Timestamp::ZERO);
        self.storage.set_oldest(oldest.max(began).max(self.storage.oldest()));
    }
}
