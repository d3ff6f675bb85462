//! Nobody reads here while rows are taken back or given up.

use super::role_changes::RoleChanges;
use pando_base::{ErrorCode, limits};
use std::time::Duration;

impl RoleChanges {
    /// Ends what reads or waits here: nobody may hold a snapshot while rows are taken back. Returns how many operations
    /// of users were told to end.
    pub(crate) async fn quiet_down(&self) -> usize {
        let code = ErrorCode::InterruptedDueToReplStateChange;
        self.cursors.kill(self.env.clock.mono(), &|_| true);
        self.sessions.abort_open_transactions();
        let mut killed = 0;
        loop {
            let kill = |users: bool| {
                let is_user = |c: &pando_command::Client| c.is_connection() && !c.is_internal();
                let clients = &self.instance.clients;
                clients.kill_where(code, |c, op| is_user(c) == users && (op.is_read || op.is_write))
            };
            let users = kill(true);
            let busy = users + kill(false);
            killed = killed.max(users);
            if busy == 0 || self.lifecycle.is_stopping() {
                return killed;
            }
            self.env.clock.sleep(Duration::from_millis(limits::ROLLBACK_POLL_MS)).await;
        }
    }
}
