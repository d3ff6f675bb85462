//! A member's disk is lost and the operator puts a new machine in its place: out of the configuration, then a new
//! member at the same address, which has to copy everything.
//!
//! An operator who wipes the disk of a member that is still counted breaks the set's promises; so each step waits until
//! a majority has the configuration of the one before.

use super::{Run, is_growing, primary_within};
use crate::client::Client;
use crate::executor::lock;
use pando_bson::{Bson, Document, RawDoc, doc};
use pando_env::Env;
use pando_repl::MemberState;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// For one step, or it is tried again.
const PATIENCE: Duration = Duration::from_secs(20);
/// Before it is tried again.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Until a majority has a configuration without the member.
    TakingOut,
    /// Until one has a configuration with the new one.
    PuttingIn,
    /// Until it has the data.
    Copying,
}

/// One replacement under way.
pub(super) struct Replacement {
    who: usize,
    step: Step,
    /// The operator has carried out the step.
    done: Arc<Mutex<bool>>,
}

impl Run {
    pub(super) fn replace(&mut self, who: usize) {
        if self.replacement.is_some() || self.nodes.len() < 3 {
            return;
        }
        self.broken.count("new machine");
        self.order_step(who, Step::TakingOut);
    }

    fn order_step(&mut self, who: usize, step: Step) {
        let done: Arc<Mutex<bool>> = Arc::default();
        self.replacement = Some(Replacement { who, step, done: done.clone() });
        let (env, addrs) = (self.env(self.operator), self.addrs());
        let host = addrs[who].clone();
        let id = (step == Step::PuttingIn).then_some(self.next_member_id);
        let giving = async move {
            while env.timeout(PATIENCE, give(&env, &addrs, &host, id)).await.flatten().is_none() {
                env.clock.sleep(PAUSE).await;
            }
            *lock(&done) = true;
        };
        self.world.sim.spawn(self.operator, "operator", giving);
    }

    /// The next step, when this one is done.
    pub(super) fn go_on_replacing(&mut self) {
        let Some(Replacement { who, step, done }) = &self.replacement else { return };
        let (who, step, done) = (*who, *step, *lock(done));
        match step {
            Step::TakingOut if done => {
                self.nodes[who].lose_disk();
                self.watch.forget(who);
                self.rules.iter_mut().for_each(|rule| rule.forget(who));
                self.broken.boots_now(who);
                self.nodes[who].boot();
                self.next_member_id += 1;
                self.order_step(who, Step::PuttingIn);
            }
            Step::PuttingIn if done => {
                self.replacement = Some(Replacement { who, step: Step::Copying, done: Arc::default() });
            }
            Step::Copying if self.has_data(who) => self.replacement = None,
            _ => {}
        }
    }
    fn has_data(&self, who: usize) -> bool {
        self.watch.state(who).is_some_and(|s| matches!(s, MemberState::Primary | MemberState::Secondary))
    }
    /// What is still to be done.
    pub(super) fn replacing(&self) -> Option<String> {
        self.replacement.as_ref().map(|r| format!("member {}: {:?}", r.who, r.step))
    }
}

/// Has a majority take a configuration in which `host` is the member `id`, or no member at all.
async fn give(env: &Env, addrs: &[String], host: &str, id: Option<i32>) -> Option<()> {
    let at = primary_within(env, addrs, PATIENCE).await?;
    let mut c = Client::connect(env, &addrs[at]).await.ok()?;
    if addrs[at] == host && id.is_none() {
        let leave = doc! { "replSetStepDown": 30, "secondaryCatchUpPeriodSecs": 5, "$db": "admin" };
        c.command(&leave.to_raw()).await.ok()?;
        return None;
    }
    // With two voters and a third that does not count yet, one that is taken out leaves a majority of one.
    if id.is_none() && is_growing(&mut c).await? {
        return None;
    }
    let ask = doc! { "replSetGetConfig": 1, "$db": "admin" }.to_raw();
    let next = next_config(&*c.command(&ask).await.ok()?, host, id)?;
    let mut body = Document::new();
    body.push("replSetReconfig", next);
    body.push("maxTimeMS", 15_000);
    body.push("$db", "admin");
    let reply = c.command(&body.to_raw()).await.ok()?;
    reply.get("ok").is_some_and(|v| v.is_truthy()).then_some(())
}

fn next_config(reply: &RawDoc, host: &str, id: Option<i32>) -> Option<Document> {
    let config = reply.get("config").and_then(|v| v.as_doc())?;
    let version = config.get("version").and_then(|v| v.as_i64())?;
    let mut members = Vec::new();
    for m in config.get("members").and_then(|v| v.as_array())? {
        let m = m.value().as_doc()?;
        let (its, at) = (m.get("_id")?.as_i64()? as i32, m.get("host")?.as_str()?);
        if at == host && id != Some(its) {
            continue;
        }
        let priority = m.get("priority")?.as_f64()?;
        members.push(doc! { "_id": its, "host": at, "priority": priority });
    }
    let new =
        id.filter(|id| members.iter().all(|m| m.get("_id").and_then(Bson::as_i64) != Some(i64::from(*id))));
    members.extend(new.map(|id| doc! { "_id": id, "host": host }));
    let mut next = doc! { "_id": "rs0", "version": version + 1 };
    next.push("members", members.into_iter().map(Bson::from).collect::<Vec<Bson>>());
    Some(next)
}
