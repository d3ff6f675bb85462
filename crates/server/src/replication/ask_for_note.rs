//! A secondary that is asked for a time of which its primary may have written nothing yet: it has the primary write an entry.
//!
//! Times come from other shards, where somebody else has written; a set that is idle itself would let whoever reads on its
//! secondaries wait for its next periodic entry (R-CC; MongoDB does the same by the same command).

use super::Replication;
use pando_base::{Result, Timestamp, limits};
use pando_bson::DocBuilder;
use pando_command::OpCtx;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Until it is dropped, whatever ends the operation.
struct Asking<'a>(&'a AtomicBool);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

impl Replication {
    /// Returns when everything up to `after` is here. A time that replication brings anyway costs no question.
    pub(super) async fn await_applied_or_ask(&self, ctx: &OpCtx, after: Timestamp) -> Result<()> {
        let mut patience = Duration::from_millis(limits::NOTE_ASKED_FOR_AFTER_MS);
        loop {
            let applied = ctx.env().timeout(patience, self.storage.log().wait_applied(after));
            if ctx.interruptible(applied).await?.is_some() {
                return Ok(());
            }
            if self.member.is_primary() {
                self.write_noop("waiting for afterClusterTime")?;
            } else if !self.asks_for_note.swap(true, SeqCst) {
                // One question serves all that wait.
                let _asking = Asking(&self.asks_for_note);
                ctx.interruptible(self.ask_for_note(after)).await?;
            }
            patience = Duration::from_millis(limits::NOTE_ASKED_FOR_AGAIN_MS);
        }
    }
    /// A primary that has written since says so; one that is none any more, or cannot be reached, is asked again by who waits still.
    async fn ask_for_note(&self, after: Timestamp) {
        let Some(primary) = self.member.state().primary else { return };
        let mut b = DocBuilder::new();
        b.i32("appendOplogNote", 1).timestamp("maxClusterTime", after);
        b.doc("data", |d| _ = d.str("msg", "noop write for afterClusterTime read concern"));
        b.str("$db", "admin");
        let limit = Duration::from_millis(limits::NOTE_ASKED_FOR_AGAIN_MS);
        let _ = self.peers.call(&primary, &b.finish(), pando_rpc::Retry::Never, limit).await;
    }
}
