//! Changes of role as operations feel them (R-STEP-3, R-STEP-7): writes are ended, everything else goes on.

use super::Replication;
use crate::Server;
use pando_base::{ErrorCode, Result, limits};
use pando_command::client::Clients;
use pando_metrics::{Collector, Source};
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// `serverStatus.metrics.repl.stateTransition`: the last change.
#[derive(Default)]
pub(crate) struct Transitions(Mutex<(&'static str, usize, usize)>);

impl Transitions {
    /// Operations of users that were ended, and those that go on.
    pub(crate) fn note(&self, clients: &Clients, what: &'static str, killed: usize) {
        let is_user = |c: &pando_command::Client| c.is_connection() && !c.is_internal();
        let running = clients.all().iter().filter(|c| is_user(c) && c.active_op().is_some()).count();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            (what, killed, running - killed.min(running));
    }
}

impl Source for Transitions {
    fn collect(&self, to: &mut Collector<'_>) {
        let (what, killed, running) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        to.text(
            "lastStateTransition",
            what,
            "The last change of this member's role: stepUp, stepDown, rollback",
        )
        .gauge("userOperationsKilled", killed, "operations", "Users' operations that the last change ended")
        .gauge(
            "userOperationsRunning",
            running,
            "operations",
            "Users' operations that went on after the last change",
        );
    }
}

/// Entries that new primaries fetched before they wrote (`numCatchUpOps`, `averageCatchUpOps`).
#[derive(Default)]
pub(crate) struct CatchUps(Mutex<(Option<i64>, i64)>);

impl CatchUps {
    fn note(&self, ops: Option<i64>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *all = (ops, all.1 + ops.unwrap_or(0));
    }
    /// Of the last election.
    pub(crate) fn last(&self) -> Option<i64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }
    pub(crate) fn total(&self) -> i64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

impl Replication {
    /// Elected and drained, and about to write: what was fetched since the election?
    pub(crate) fn count_catch_up(&self) -> Result<()> {
        let from = self.coordinator()?.read(|core| core.election().and_then(|e| e.catch_up_from));
        let Some(from) = from else {
            self.catch_ups.note(None);
            return Ok(());
        };
        let mut fetched = self.storage.log().read(Bound::Excluded(from.ts), false);
        let mut ops = 0;
        while fetched.next()?.is_some() {
            ops += 1;
        }
        self.catch_ups.note(Some(ops));
        Ok(())
    }
}

impl Server {
    /// No write of this node's own is under way when this returns, and none begins. Reads go on.
    pub(crate) async fn take_state_lock(&self) {
        let gate = self.maintenance.gate();
        // Otherwise it has written nothing itself: elected, it may still be applying what it had fetched.
        let wrote = gate.is_open();
        gate.close();
        let (from, waits) = (self.env.clock.mono(), gate.inside() > 0);
        let code = ErrorCode::InterruptedDueToReplStateChange;
        let killed = self.instance.clients.kill_where(code, |_, op| op.is_write);
        self.abort_open_transactions();
        self.replication.transitions.note(&self.instance.clients, "stepDown", killed);
        let limit = self.instance.params.int(pando_command::Param::fassertOnLockTimeoutForStepUpDown);
        let limit = Duration::from_secs(limit.max(0) as u64);
        let mut waited = Duration::ZERO;
        let turn = Duration::from_millis(limits::STATE_LOCK_KILL_MS);
        while self.env.timeout(turn, gate.empty()).await.is_none() {
            // Whoever began since then, or did not look yet.
            self.instance.clients.kill_where(code, |_, op| op.is_write);
            self.abort_open_transactions();
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
