//! What a member that gives its data up has promised to others, and what it keeps of its own for people.

use super::Replication;
use pando_base::{OpTime, Result, Timestamp};
use pando_bson::RawDoc;
use pando_env::Component;
use pando_oplog::EntryView;
use pando_repl::topology::WhyCopyAgain;
use std::ops::Bound;

impl Replication {
    /// Our newest entry that the set may count on, if all since `reached` has parted from it. `reached` itself is committed
    /// (the oldest entry of somebody's log is), so whoever may be elected has it: to promise more would bind this member's
    /// vote for nothing.
    pub(super) fn newest_not_after(&self, reached: OpTime) -> Result<OpTime> {
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
    pub(super) async fn keep_what_may_be_lost(&self, why: WhyCopyAgain, promised: OpTime) -> Result<()> {
        let stable = if self.config.majority_reads { self.storage.stable() } else { Timestamp::ZERO };
        let sure = self.progress.committed().op_time.ts.max(stable);
        let rbid = self.count_rollback(promised).await?;
        let kept = self.keep_undone_documents(sure).await?;
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
