//! The state lock of a step-down (R-STEP-3, R-STEP-7): writes are ended, everything else goes on.

use super::role_changes::RoleChanges;
use pando_base::{ErrorCode, limits};
use std::time::Duration;

impl RoleChanges {
    /// No write of this node's own is under way when this returns, and none begins. Reads go on.
    pub(crate) async fn take_state_lock(&self) {
        let gate = self.maintenance.gate();
        // Otherwise it has written nothing itself: elected, it may still be applying what it had fetched.
        let wrote = gate.is_open();
        gate.close();
        let (from, waits) = (self.env.clock.mono(), gate.inside() > 0);
        let code = ErrorCode::InterruptedDueToReplStateChange;
        let killed = self.instance.clients.kill_where(code, |_, op| op.is_write);
        self.sessions.abort_open_transactions();
        self.replication.transitions.note(&self.instance.clients, "stepDown", killed);
        let limit = self.instance.params.int(pando_command::Param::fassertOnLockTimeoutForStepUpDown);
        let limit = Duration::from_secs(limit.max(0) as u64);
        let mut waited = Duration::ZERO;
        let turn = Duration::from_millis(limits::STATE_LOCK_KILL_MS);
        while self.env.timeout(turn, gate.empty()).await.is_none() {
            // Whoever began since then, or did not look yet.
            self.instance.clients.kill_where(code, |_, op| op.is_write);
            self.sessions.abort_open_transactions();
            waited += turn;
            if !limit.is_zero() && waited >= limit {
                let why = "operations that write do not end";
                return self.lifecycle.fatal("The replication state transition lock cannot be had", why);
            }
        }
        gate.note_alone(waits.then(|| self.env.clock.mono().saturating_sub(from)));
        let log = self.storage.log();
        if let Err(e) = log.wait_durable(log.last()).await {
            return self.lifecycle.fatal("The log could not be synced at a change of role", &e.message);
        }
        match self.replication.top_of_log() {
            Ok(_) if !wrote => {}
            Ok(top) => self.replication.progress.reset(top),
            Err(e) => self.lifecycle.fatal("The log could not be read", &e.message),
        }
    }
}
