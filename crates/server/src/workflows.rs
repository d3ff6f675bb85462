//! What workflows do with this server's data, be it for a command or for the host of a primary; and workflows that run
//! inside a command.

use crate::Server;
use pando_access::Uninterrupted;
use pando_base::panics::poisoned;
use pando_base::{Error, Millis, Namespace, OpTime, Result, limits};
use pando_bson::DocBuf;
use pando_command::concern::Provenance;
use pando_command::{Node, OpCtx, W, WriteConcern};
use pando_env::{BoxFuture, Component};
use pando_repl::services::{End, Guard, Hands, Held, drive};
use pando_workflows::{
    Action, Concern, Home, Level, LocalWrite, Outcome, Query, Resource, Running, Section, Target, Workflow,
};
use std::sync::Mutex;
use std::time::Duration;

impl Server {
    pub(crate) async fn write_for_workflow(&self, write: &LocalWrite) -> Result<Option<OpTime>> {
        match write {
            LocalWrite::Put { ns, doc } => self.internal.put(&Uninterrupted, ns, doc).await.map(Some),
            LocalWrite::Remove { ns, id } => self.internal.remove(&Uninterrupted, ns, id).await,
            LocalWrite::AbortIndexBuilds { ns, why } => {
                self.maintenance.abort_builds(ns, why).await.map(|()| None)
            }
            LocalWrite::DropCollection { ns } => self.maintenance.drop_in_locked_database(ns).await,
            LocalWrite::DropDatabase { db } => self.maintenance.log_dropped_database(db).map(Some),
        }
    }
    pub(crate) fn read_for_workflow(&self, query: &Query) -> Vec<Namespace> {
        let Query::Collections { db } = query;
        self.maintenance.names_in_database(db)
    }
    pub(crate) async fn lock_for_workflow(&self, resource: &Resource, level: Level) -> Guard {
        let Resource::Database(db) = resource;
        Box::new(match level {
            Level::Shared => self.maintenance.share_database(db).await,
            Level::Exclusive => self.maintenance.lock_database(db).await,
        })
    }
    pub(crate) async fn enter_for_workflow(&self, section: &Section) -> Result<Guard> {
        let Section::DropPending { db } = section;
        Ok(Box::new(self.maintenance.begin_drop_database(db).await?))
    }

    /// Runs a workflow inside a command: a kill or a deadline is told to it, and it decides.
    pub(crate) async fn run_workflow(&self, ctx: &OpCtx, workflow: Box<dyn Workflow>) -> Result<DocBuf> {
        let hands = CommandHands { server: self, ctx, held: Mutex::default() };
        let killed = async {
            match ctx.interruptible(std::future::pending::<()>()).await {
                Err(why) => why,
                Ok(()) => Error::internal("nothing has come to an end"),
            }
        };
        let running = Running::new(workflow, Home::Command);
        match drive(&self.env, &hands, running, Box::pin(killed)).await {
            End::Result(result) => result,
            End::Abandoned(why) => Err(why),
        }
    }
}

/// Carries out what a command's workflow orders.
struct CommandHands<'a> {
    server: &'a Server,
    ctx: &'a OpCtx,
    held: Mutex<Held>,
}

impl CommandHands<'_> {
    async fn carry_out_one(&self, action: Action) -> Result<Outcome> {
        match action {
            Action::Write(writes) => {
                let mut last = None;
                for w in &writes {
                    last = self.server.write_for_workflow(w).await?.or(last);
                }
                return Ok(Outcome::Wrote(last));
            }
            Action::Read(query) => return Ok(Outcome::Found(self.server.read_for_workflow(&query))),
            // The client's last write is what is waited for; the workflow has reported it.
            Action::Await { concern, timeout_ms, .. } => self.wait(concern, timeout_ms).await?,
            Action::Lock(resource, level) => {
                let guard = self.server.lock_for_workflow(&resource, level).await;
                self.held.lock().unwrap_or_else(poisoned).locked(resource, guard);
            }
            Action::Enter(section) => {
                let guard = self.server.enter_for_workflow(&section).await?;
                self.held.lock().unwrap_or_else(poisoned).entered(section, guard);
            }
            Action::Call { to: Target::Host(host), body } => {
                let limit = Duration::from_millis(limits::WORKFLOW_CALL_MS_MAX);
                return Ok(Outcome::Reply(self.server.replication.peers.call(&host, &body, limit).await?));
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
        match self.server.await_write_concern(self.ctx, &wc).await {
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
        self.server.env.log.info(Component::Command, 9_100_061, "A command's workflow says", |a| {
            a.str("note", text);
        });
    }
    fn failed(&self, error: &Error) {
        self.server.env.log.warn(
            Component::Command,
            9_100_062,
            "An action of a command failed; it is tried again",
            |a| {
                a.str("error", &error.message);
            },
        );
    }
}
