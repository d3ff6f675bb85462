//! A member gives its data up and copies the set's once more: it is too stale to catch up, or its operator says so.

use crate::Server;
use pando_base::{Error, ErrorCode, OpTime, Result};
use pando_env::Component;
use pando_repl::topology::{Event, MemberState};
use std::sync::Arc;

impl Server {
    /// Begins it; the member is in STARTUP2 soon and comes back by itself.
    pub(crate) fn start_resync(self: &Arc<Self>) -> Result<()> {
        if self.coordinator()?.read(|core| core.is_leader()) {
            return Err(Error::new(ErrorCode::NotSecondary, "primaries cannot resync"));
        }
        if self.initial_sync_status().is_some() || !self.rollbacks.begin() {
            let text = "this member rolls back or copies the set's data already";
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        let server = self.clone();
        self.env.spawn("resync", async move {
            let done = server.give_up_for_resync().await;
            server.rollbacks.end();
            match done {
                Ok(promised) => {
                    server.tell(Event::TooStale(false));
                    server.tell(Event::Emptied { promised });
                }
                Err(e) => server.fatal("Resync failed", &e.message),
            }
        });
        Ok(())
    }

    /// What this member has told others to hold.
    async fn give_up_for_resync(self: &Arc<Self>) -> Result<OpTime> {
        self.tell(Event::FollowerState(MemberState::Rollback));
        self.stop_data_path().await?;
        self.quiet_down().await;
        self.catalog.end_builds("the node copies the set's data again").await;
        self.quiet_down().await;
        let promised = self.progress.written().op_time;
        self.env.log.warn(
            Component::Repl,
            9100024,
            "This member's data is given up, the set's is copied again",
            |a| {
                a.show("lastWritten", promised);
            },
        );
        self.empty(promised).await?;
        Ok(promised)
    }
}
