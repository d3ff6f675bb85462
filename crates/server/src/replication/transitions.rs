//! What is counted of changes of role.

use super::Replication;
use pando_base::Result;
use pando_command::client::Clients;
use pando_metrics::{Collector, Source};
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

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
