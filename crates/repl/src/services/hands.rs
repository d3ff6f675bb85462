//! Carries out what the workflows of a primary order, on the node's own data.

use super::drive::Hands;
use super::host::{Instance, Service};
use super::store::{Held, Store};
use crate::data::Stop;
use pando_base::codes::class;
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, OpTime, Result, limits};
use pando_bson::RawDoc;
use pando_env::{BoxFuture, Component, Env};
use pando_workflows::{Action, LocalWrite, Outcome, Resource, Section, Target};
use std::sync::Mutex;
use std::time::Duration;

fn office_lost(e: &Error) -> bool {
    e.code.is(class::NOT_PRIMARY | class::SHUTDOWN)
}

pub(super) struct InstanceHands<'a> {
    pub(super) env: &'a Env,
    pub(super) store: &'a dyn Store,
    pub(super) service: &'a Service,
    pub(super) instance: &'a Instance,
    pub(super) stop: &'a Stop,
    pub(super) held: Mutex<Held>,
}

impl InstanceHands<'_> {
    async fn carry_out_one(&self, action: Action) -> Result<Outcome> {
        // A workflow that never has to wait would not notice a step-down otherwise.
        if self.stop.is_asked() {
            return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
        }
        self.store.before_action().await;
        match action {
            Action::Checkpoint(doc) => {
                let put = LocalWrite::Put { ns: self.service.ns.clone(), doc: doc.clone() };
                let at = self.store.write(&put).await?;
                self.store.await_majority(at).await?;
                self.instance.checkpointed(doc);
            }
            Action::Forget => {
                let (ns, id) = (self.service.ns.clone(), self.instance.id().to_buf());
                let at = self.store.write(&LocalWrite::Remove { ns, id }).await?;
                // An earlier try may have removed it without a majority: then everything so far is waited for.
                self.store.await_majority(at).await?;
            }
            Action::Write(writes) => {
                let mut last = None;
                for w in &writes {
                    last = self.store.write(w).await?.or(last);
                }
                return Ok(Outcome::Wrote(last));
            }
            Action::Read(query) => return self.store.read(&query).map(Outcome::Found),
            // There is no client who could ask for more.
            Action::Await { upto, timeout_ms, .. } => {
                let wait = self.store.await_majority(Some(upto).filter(|at| !at.is_null()));
                let limit = (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms as u64));
                let late = || Error::new(ErrorCode::WriteConcernFailed, "waiting for replication timed out");
                match limit {
                    Some(limit) => self.env.timeout(limit, wait).await.unwrap_or_else(|| Err(late()))?,
                    None => wait.await?,
                }
            }
            Action::Call { to: Target::Own, body } => {
                let said = self.store.call(self.service.name, &Target::Own, &body).await;
                let said = said.and_then(|reply| check_size(&reply).map(|()| reply));
                return said.map(Outcome::Reply).map_err(|e| self.of_others(e));
            }
            Action::Call { to, body } => {
                return self.store.call(self.service.name, &to, &body).await.map(Outcome::Reply);
            }
            Action::Lock(resource, level) => {
                // A new primary has taken it before anybody else came in.
                if self.held.lock().unwrap_or_else(poisoned).has(&resource) {
                    return Ok(Outcome::Done);
                }
                let guard = self.store.lock(&resource, level).await?;
                self.held.lock().unwrap_or_else(poisoned).locked(resource, guard);
            }
            Action::Enter(section) => {
                let guard = self.store.enter(&section).await?;
                self.held.lock().unwrap_or_else(poisoned).entered(section, guard);
            }
            Action::AwaitNudge => self.instance.nudged().await,
            // The driver's own.
            Action::Rest(_) | Action::Draw => {}
        }
        Ok(Outcome::Done)
    }
}

/// What is too large to be kept is an error of the step: that of a checkpoint would be met again for ever.
pub(super) fn check_size(doc: &RawDoc) -> Result<()> {
    if doc.byte_len() <= limits::WORKFLOW_STATE_BYTES_MAX {
        return Ok(());
    }
    let text = format!("{} bytes are too many for the state of an operation", doc.byte_len());
    Err(Error::new(ErrorCode::BSONObjectTooLarge, text))
}

impl InstanceHands<'_> {
    /// An attempt to step down shuts the write gate, and opens it again where it fails; of the end of its office this node is told by
    /// `stop`, which ends whatever is under way. So what cannot be done now is tried again until the one or the other has happened: an
    /// instance that left would have no primary to go on with.
    async fn carry_out_in_office(&self, action: Action) -> Result<Outcome> {
        let of_this_node = !matches!(action, Action::Call { .. });
        loop {
            match self.carry_out_one(action.clone()).await {
                Err(e) if of_this_node && office_lost(&e) && !self.stop.is_asked() => {
                    self.failed(&e);
                    self.env.clock.sleep(Duration::from_millis(limits::WORKFLOW_RETRY_MS)).await;
                }
                said => return said,
            }
        }
    }
    /// What a step of this node heard of another one that is primary no more, or is about to end, says nothing of this one: that it has
    /// lost its own office it is told otherwise.
    fn of_others(&self, e: Error) -> Error {
        match office_lost(&e) && !self.stop.is_asked() {
            true => Error::new(ErrorCode::HostUnreachable, format!("a step cannot be made now: {e}")),
            false => e,
        }
    }
}

impl Hands for InstanceHands<'_> {
    fn carry_out(&self, action: Action) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(self.carry_out_in_office(action))
    }
    fn release(&self, resource: &Resource) {
        self.held.lock().unwrap_or_else(poisoned).release(resource);
    }
    fn leave(&self, section: &Section) {
        self.held.lock().unwrap_or_else(poisoned).leave(section);
    }
    /// There is no client.
    fn report(&self, _: OpTime) {}
    fn note(&self, text: &str) {
        self.env.log.info(Component::Repl, 9_100_060, "A workflow says", |a| {
            a.str("service", self.service.name).data("id", self.instance.id()).str("note", text);
        });
    }
    fn failed(&self, error: &Error) {
        self.env.log.warn(
            Component::Repl,
            9100010,
            "An action of a workflow failed; it is tried again",
            |a| {
                a.str("service", self.service.name).data("id", self.instance.id()).data("error", &error);
            },
        );
    }
}
