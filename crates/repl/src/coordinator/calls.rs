//! Questions to other members: each is a task of its own on a connection of the coordinator's own pool (R-HB-1).

use crate::coordinator::{Coordinator, wire};
use pando_base::Millis;
use pando_base::codes::class;
use pando_base::limits::REPL_CALL_MS_MAX;
use pando_bson::{DocBuf, doc};
use pando_rpc::{Kind, Retry};
use pando_topology::message::Failure;
use pando_topology::{Action, Event, Host};
use std::sync::Arc;
use std::time::Duration;

impl Coordinator {
    /// Sends what an action asks for; the answer comes back as an event.
    pub(crate) fn call(self: &Arc<Self>, action: Action) {
        match action {
            Action::SendHeartbeat { to, seq, request, timeout_ms } => {
                let from = to.id;
                self.spawn_call(to.host, wire::heartbeat(&request), timeout_ms, move |c, reply| {
                    let result = reply.and_then(|r| wire::parse_heartbeat_reply(&r));
                    c.tell(Event::HeartbeatReplied { from, seq, result });
                });
            }
            Action::SendVoteRequest { to, election, request, timeout_ms } => {
                let from = to.id;
                self.spawn_call(to.host, wire::vote_request(&request), timeout_ms, move |c, reply| {
                    let result = reply.map(|r| wire::parse_vote_reply(&r));
                    c.tell(Event::VoteReplied { from, election, result });
                });
            }
            Action::FetchConfig { from, request } => {
                let host = from.clone();
                self.spawn_call(from, wire::heartbeat(&request), REPL_CALL_MS_MAX, move |c, reply| {
                    let result = reply.and_then(|r| wire::parse_heartbeat_reply(&r));
                    c.tell(Event::ConfigFetched { from: host, result });
                });
            }
            Action::CheckQuorum { id, to, request, timeout_ms } => {
                let from = to.id;
                self.spawn_call(to.host, wire::heartbeat(&request), timeout_ms, move |c, reply| {
                    let result = reply.and_then(|r| wire::parse_heartbeat_reply(&r));
                    c.tell(Event::QuorumReplied { id, from, result });
                });
            }
            Action::SendStepUp { to } => {
                let body = doc! { "replSetStepUp": 1, "skipDryRun": true, "$db": "admin" }.to_raw();
                self.spawn_call(to.host, body, REPL_CALL_MS_MAX, |_, _| {});
            }
            // Everything else has been carried out where it appeared.
            _ => {}
        }
    }

    fn spawn_call(
        self: &Arc<Self>,
        host: Host,
        body: DocBuf,
        timeout_ms: Millis,
        then: impl FnOnce(&Coordinator, Result<DocBuf, Failure>) + Send + 'static,
    ) {
        let c = self.clone();
        self.env.spawn("replication call", async move {
            let limit = Duration::from_millis(timeout_ms.max(1) as u64);
            let reply = c.pool.call(&host, &body, Retry::Idempotent, limit).await.map_err(failure);
            // It is about to end: who answers next at that address is another process, on a connection of its own.
            if matches!(&reply, Err(Failure::Answer(code, _)) if code.is(class::SHUTDOWN)) {
                c.pool.forget(&host);
            }
            if !c.effects.is_stopping() {
                then(&c, reply);
            }
        });
    }
}

/// What the core makes of a failed call.
pub(crate) fn failure(f: pando_rpc::Failure) -> Failure {
    match f.kind {
        Kind::Refused => Failure::Refused,
        Kind::Reset => Failure::Reset,
        Kind::TimedOut => Failure::Timeout,
        Kind::Command => Failure::Answer(f.error.code, f.error.message.to_string()),
        // Not dead: it spoke.
        Kind::Unreachable | Kind::Handshake | Kind::Protocol | Kind::NotSent => {
            Failure::Other(f.error.message.to_string())
        }
    }
}
