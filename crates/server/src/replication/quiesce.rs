//! A member leaves: it steps down in favour of another, and serves on while `hello` sends everybody there (R-HELLO-7, R-STEP-7).

use super::Replication;
use pando_base::{Error, ErrorCode, Millis, Result, limits};
use pando_bson::DocBuilder;
use pando_command::Client;
use pando_command::reply::append_topology;
use pando_env::Component;
use pando_repl::MemberState;
use pando_repl::topology::Event;
use pando_repl::topology::message::StepDownRequest;
use std::time::Duration;

impl Replication {
    /// Steps down in favour of another member (R-STEP-7). `force`: in the end without one.
    pub(crate) async fn hand_over(&self, limit_ms: Millis, force: bool) -> Result<()> {
        let Some(c) = self.coordinator.get().filter(|_| !self.member.is_alone()) else { return Ok(()) };
        if !c.read(|core| core.is_leader()) {
            return Ok(());
        }
        let log = &self.env.log;
        log.info(Component::Repl, 4784900, "Stepping down the ReplicationCoordinator for shutdown", |a| {
            a.i64("waitTimeMillis", limit_ms);
        });
        let step_down = |force: bool, catch_up_ms: Millis| {
            let period_ms = limits::SHUTDOWN_STEP_DOWN_MS.max(catch_up_ms);
            let request = StepDownRequest { force, catch_up_ms, period_ms };
            c.command(move |token| Event::StepDown { token, request })
        };
        let worth_waiting = !force || c.read(|core| core.has_possible_heir());
        let patience = if worth_waiting { limit_ms.min(limits::SHUTDOWN_HANDOVER_MS) } else { 0 };
        let mut done = step_down(false, patience).await.map(drop);
        if force && done.as_ref().is_err_and(|e| e.code == ErrorCode::ExceededTimeLimit) {
            done = step_down(true, 0).await.map(drop);
        }
        done.or_else(|e| if e.code == ErrorCode::NotWritablePrimary { Ok(()) } else { Err(e) })
    }

    /// Serves on until `deadline`, so that clients can turn to other members: at most as long as there are any, at
    /// least until a former primary has an heir.
    pub(crate) async fn quiesce(&self, deadline: Duration) {
        let Some(c) = self.coordinator.get() else { return };
        let now = self.env.clock.mono();
        if now >= deadline || self.member.state().member != MemberState::Secondary {
            return;
        }
        let left = (deadline - now).as_millis() as Millis;
        c.tell(Event::Quiesce { until: c.now() + left });
        self.env.log.info(Component::Repl, 4695102, "Entering quiesce mode for shutdown", |a| {
            a.i64("quiesceTimeMillis", left);
        });
        let heir_by = deadline.min(now + Duration::from_millis(limits::SHUTDOWN_HEIR_MS));
        loop {
            let at = self.env.clock.mono();
            let waits_for_heir = at < heir_by && self.member.state().primary.is_none();
            if at >= deadline || self.lifecycle.is_stopping() || !(waits_for_heir || self.has_guests()) {
                break;
            }
            self.env.clock.sleep(Duration::from_millis(limits::QUIESCE_POLL_MS)).await;
        }
        self.env.log.info(Component::Repl, 4695103, "Exiting quiesce mode for shutdown", |_| {});
    }

    /// Is anybody connected who could be told to go elsewhere?
    fn has_guests(&self) -> bool {
        let asked_for_it = |c: &Client| c.active_op().is_some_and(|op| op.command == "shutdown");
        self.instance.clients.all().iter().any(|c| c.is_connection() && !c.is_internal() && !asked_for_it(c))
    }

    /// What `hello` answers while the server takes its leave: 91 and how long it still serves.
    pub(crate) fn check_quiesce(&self) -> Result<()> {
        let (Some(until), Some(c)) = (self.member.state().quiesce_until_ms, self.coordinator.get()) else {
            return Ok(());
        };
        let left = (until - c.now()).max(0);
        let mut extra = DocBuilder::new();
        append_topology(&mut extra, self.member.topology_version());
        extra.i64("remainingQuiesceTimeMillis", left);
        let text = "The server is in quiesce mode and will shut down";
        Err(Error::new(ErrorCode::ShutdownInProgress, text).with_extra(extra.finish().into_bytes()))
    }
}
