//! What of a primary's services everybody may ask for: the hooks, the host of workflows, and the wait for a majority.

use super::Replication;
use pando_base::{OpTime, Result};
use pando_repl::services::{Hooks, Host};
use pando_repl::topology::Event;
use pando_repl::topology::write_concern::{Concern, Waiter, Want};
use std::sync::Arc;

pub(crate) struct Services {
    pub(crate) hooks: Hooks,
    pub(crate) host: Arc<Host>,
}

impl Replication {
    /// None on a standalone node.
    pub(crate) fn services(&self) -> Option<&Services> {
        self.services.get()
    }

    /// Returns when a majority holds the entry at `target`; fails when this node is primary no more.
    pub(crate) async fn await_majority(&self, target: OpTime) -> Result<()> {
        let log = self.storage.log();
        log.ask_flush(target.ts);
        if self.member.is_alone() {
            return log.wait_durable(target.ts).await;
        }
        let journaled =
            self.member.config().is_some_and(|config| config.write_concern_majority_journal_default);
        let concern = Concern { want: Want::Majority, journaled };
        let waiter = |id| Event::Await(Waiter { id, target, concern });
        self.coordinator()?.ask(waiter).await.waited()
    }
}
