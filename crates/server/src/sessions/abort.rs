//! Ending what sessions have open, from outside: by `killSessions`, at a change of role, when a session is over.

use super::LogicalSessions;
use pando_base::ErrorCode;
use pando_command::SessionId;
use pando_session::retryable::Aborted;

impl LogicalSessions {
    /// Ends a session's transaction; an operation that uses it is interrupted.
    pub(crate) fn abort_session(&self, id: &SessionId, why: ErrorCode) {
        if self.retryable.abort(id) == Aborted::InUse {
            self.instance.clients.kill_where(why, |_, op| op.in_txn && op.lsid.is_some_and(|l| l == *id));
        }
        let now = self.env.clock.mono();
        self.cursors.kill(now, &|c| c.txn_number.is_some() && c.lsid.is_some_and(|l| l == *id));
    }
    /// This node is about to stop writing: nothing stays open. Operations that use their transaction now are ended by the
    /// caller.
    pub(crate) fn abort_open_transactions(&self) {
        for (id, _) in self.retryable.parked() {
            self.abort_session(&id, ErrorCode::InterruptedDueToReplStateChange);
        }
    }
}
