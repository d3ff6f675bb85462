//! A member whose folder came from a backup (`pando restore --keep-set`).
//!
//! After the backup was taken it may have voted, and told others to hold entries, and nobody knows which. It follows the
//! set at once. It votes again, and can be elected, when a primary's entry of the current term is committed and applied
//! here: then whatever was committed before is here too, and votes of earlier terms matter no more.

use super::Replication;
use pando_base::Result;
use pando_bson::doc;
use pando_env::Component;
use pando_repl::topology::Event;
use std::sync::atomic::Ordering::SeqCst;

impl Replication {
    /// Looked at every second.
    pub(crate) async fn end_restored(&self) -> Result<()> {
        if !self.restored.load(SeqCst) || !self.member.is_readable() {
            return Ok(());
        }
        let Some(coordinator) = self.coordinator.get() else { return Ok(()) };
        let term = self.member.term();
        let (committed, applied) = (self.progress.committed().op_time, self.progress.applied().op_time);
        if committed.is_null() || committed.t != term || applied < committed {
            return Ok(());
        }
        // A primary (a forced configuration has made it one) has voted for itself. Others give no vote meanwhile, so none is
        // overwritten. Before this member votes again it is on disk.
        if !self.member.is_primary() {
            let vote = doc! { "term": term, "candidateIndex": -1i64 };
            self.internal
                .replace_only(&crate::replication::membership::election_ns(), &vote.to_raw())
                .await?;
        }
        self.maintenance.end_restored()?;
        self.sync_local().await?;
        self.restored.store(false, SeqCst);
        coordinator.tell(Event::CaughtUp { term });
        self.env.log.info(
            Component::Repl,
            9100029,
            "Restored from a backup and caught up: votes again",
            |a| {
                a.i64("term", term).show("committed", committed);
            },
        );
        Ok(())
    }
}
