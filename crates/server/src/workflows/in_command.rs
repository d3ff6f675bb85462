//! Workflows that run inside a command.

use super::data::WorkflowData;
use crate::replication::Replication;
use pando_access::Access;
use pando_base::panics::poisoned;
use pando_base::{Error, Millis, OpTime, Result, limits};
use pando_bson::DocBuf;
use pando_command::concern::Provenance;
use pando_command::{OpCtx, W, WriteConcern};
use pando_env::{BoxFuture, Component};
use pando_repl::services::{End, Hands, Held, drive};
use pando_workflows::{Action, Concern, Home, Outcome, Resource, Running, Section, Target, Workflow};
use std::sync::Mutex;
use std::time::Duration;

/// Runs a workflow inside a command: a kill or a deadline is told to it, and it decides.
pub(crate) async fn run(
    replication: &Replication,
    access: &Access,
    ctx: &OpCtx,
    workflow: Box<dyn Workflow>,
) -> Result<DocBuf> {
    let data = WorkflowData {
        env: ctx.env().clone(),
        internal: access.internal_collections(),
        maintenance: access.maintenance(),
        sharding: None,
        config_server: None,
    };
    let hands = CommandHands { replication, ctx, data, held: Mutex::default() };
    let killed = async {
        match ctx.interruptible(std::future::pending::<()>()).await {
            Err(why) => why,
            Ok(()) => Error::internal("nothing has come to an end"),
        }
    };
    let running = Running::new(workflow, Home::Command);
    match drive(ctx.env(), &hands, running, Box::pin(killed)).await {
        End::Result(result) => result,
        End::Abandoned(why) => Err(why),
    }
}

/// Carries out what a command's workflow orders.
struct CommandHands<'a> {
    replication: &'a Replication,
    data: WorkflowData,
    ctx: &'a OpCtx,
    held: Mutex<Held>,
}

impl CommandHands<'_> {
    async fn carry_out_one(&self, action: Action) -> Result<Outcome> {
        match action {
            Action::Write(writes) => {
                let mut last = None;
                for w in &writes {
                    last = self.data.write(w).await?.or(last);
                }
                return Ok(Outcome::Wrote(last));
            }
            Action::Read(query) => return Ok(Outcome::Found(self.data.read(&query))),
            // The client's last write is what is waited for; the workflow has reported it.
            Action::Await { concern, timeout_ms, .. } => self.wait(concern, timeout_ms).await?,
            Action::Lock(resource, level) => {
                let guard = self.data.lock(&resource, level).await?;
                self.held.lock().unwrap_or_else(poisoned).locked(resource, guard);
            }
            Action::Enter(section) => {
                let guard = self.data.enter(&section).await?;
                self.held.lock().unwrap_or_else(poisoned).entered(section, guard);
            }
            Action::Call { to: Target::Host(host), body } => {
                let limit = Duration::from_millis(limits::WORKFLOW_CALL_MS_MAX);
                return Ok(Outcome::Reply(
                    self.replication.peers.call(&host, &body, pando_rpc::Retry::Idempotent, limit).await?,
                ));
            }
            Action::Call {
                to: Target::Set(_) | Target::Shard(_) | Target::ConfigServers | Target::Own,
                ..
            } => {
                return Err(Error::internal("a command's workflow calls members of its set only"));
            }
            Action::Checkpoint(_) | Action::Forget | Action::AwaitNudge => {
                return Err(Error::internal(
                    "a command's workflow has no state document, and nobody nudges it",
                ));
            }
            // The driver's own.
            Action::Rest(_) | Action::Draw => {}
        }
        Ok(Outcome::Done)
    }

    async fn wait(&self, concern: Concern, timeout_ms: Millis) -> Result<()> {
        let asked = self.ctx.args.write_concern.as_ref().filter(|_| concern == Concern::AsAsked);
        let majority = || WriteConcern::of(W::Majority, Provenance::ClientSupplied);
        let mut wc = asked.cloned().unwrap_or_else(majority);
        wc.wtimeout_ms = timeout_ms;
        match self.replication.await_write_concern(self.ctx, &wc).await {
            None => Ok(()),
            Some(e) => Err(Error::new(e.code, e.message)),
        }
    }
}

impl Hands for CommandHands<'_> {
    fn carry_out(&self, action: Action) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(self.carry_out_one(action))
    }
    fn release(&self, resource: &Resource) {
        self.held.lock().unwrap_or_else(poisoned).release(resource);
    }
    fn leave(&self, section: &Section) {
        self.held.lock().unwrap_or_else(poisoned).leave(section);
    }
    fn report(&self, at: OpTime) {
        self.ctx.wrote(at);
    }
    fn note(&self, text: &str) {
        self.ctx.env().log.info(Component::Command, 9_100_061, "A command's workflow says", |a| {
            a.str("note", text);
        });
    }
    fn failed(&self, error: &Error) {
        self.ctx.env().log.warn(
            Component::Command,
            9_100_062,
            "An action of a command failed; it is tried again",
            |a| {
                a.data("error", &error);
            },
        );
    }
}
