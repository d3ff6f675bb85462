//! A member is taken out of the set and comes back: as it was, or as a new machine with an empty disk that has to copy
//! everything, by documents or by files.
//!
//! An operator who wipes the disk of a member that is still counted breaks the set's promises; so each step waits until
//! a majority has the configuration of the one before.

use super::Run;
use super::asking::{is_growing, primary_within};
use super::orders::{config_of, electable, install, may_be_elected, members, next, number, voting};
use crate::client::Client;
use crate::executor::lock;
use pando_bson::{Bson, Document, doc};
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
    /// Until one has a configuration with it.
    PuttingIn,
    /// Until it has the data.
    Copying,
}

/// What comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Back {
    AsItWas,
    AsNewMachine,
}

#[derive(Clone, Default)]
struct Progress {
    /// The operator has carried out the step.
    done: bool,
    /// Why not yet.
    why: String,
}

/// One replacement under way.
pub(super) struct Replacement {
    who: usize,
    back: Back,
    step: Step,
    progress: Arc<Mutex<Progress>>,
}

impl Run {
    pub(super) fn replace(&mut self, who: usize, back: Back) {
        if self.replacement.is_some() || self.nodes.len() < 3 || self.is_forcing() {
            return;
        }
        self.broken.count(match back {
            Back::AsItWas => "out and in again",
            Back::AsNewMachine => "new machine",
        });
        self.order_step(who, back, Step::TakingOut, Duration::ZERO);
    }

    fn order_step(&mut self, who: usize, back: Back, step: Step, after: Duration) {
        let progress: Arc<Mutex<Progress>> = Arc::default();
        self.replacement = Some(Replacement { who, back, step, progress: progress.clone() });
        let (env, addrs) = (self.env(self.operator), self.addrs());
        let host = addrs[who].clone();
        let new = (step == Step::PuttingIn).then(|| self.shape.member(who, self.next_member_id, &host));
        let giving = async move {
            env.clock.sleep(after).await;
            loop {
                let given = env.timeout(PATIENCE, give(&env, &addrs, &host, new.as_ref())).await;
                match given.unwrap_or_else(|| Err("nobody answers".to_owned())) {
                    Ok(()) => break,
                    Err(why) => lock(&progress).why = why,
                }
                env.clock.sleep(PAUSE).await;
            }
            lock(&progress).done = true;
        };
        self.world.sim.spawn(self.operator, "operator", giving);
    }

    /// The next step, when this one is done.
    pub(super) fn go_on_replacing(&mut self) {
        let Some(Replacement { who, back, step, progress }) = &self.replacement else { return };
        let (who, back, step, done) = (*who, *back, *step, lock(progress).done);
        match step {
            Step::TakingOut if done => {
                if back == Back::AsNewMachine {
                    self.nodes[who].lose_disk();
                    // An empty folder is where encryption begins or ends.
                    self.nodes[who].encrypted ^= self.shape.encryption;
                    self.forget(who);
                    self.boots_now(who);
                    self.nodes[who].copies_files = !self.shape.lsm && self.world.sim.below(3) == 0;
                    self.nodes[who].boot();
                }
                self.next_member_id += 1;
                let after = match back {
                    Back::AsItWas => self.world.sim.below(self.options.longest_ms),
                    Back::AsNewMachine => 0,
                };
                self.order_step(who, back, Step::PuttingIn, Duration::from_millis(after));
            }
            Step::PuttingIn if done => {
                let (step, progress) = (Step::Copying, Arc::default());
                self.replacement = Some(Replacement { who, back, step, progress });
            }
            Step::Copying if self.is_in_its_place(who) => self.replacement = None,
            _ => {}
        }
    }
    fn is_in_its_place(&self, who: usize) -> bool {
        let settled = |s| matches!(s, MemberState::Primary | MemberState::Secondary | MemberState::Arbiter);
        self.watch.state(who).is_some_and(settled)
    }
    /// What is still to be done.
    pub(super) fn replacing(&self) -> Option<String> {
        let told = |r: &Replacement| format!("member {}: {:?} {}", r.who, r.step, lock(&r.progress).why);
        self.replacement.as_ref().map(told)
    }
}

/// Has a majority take a configuration in which `host` is this member, or no member at all.
async fn give(env: &Env, addrs: &[String], host: &str, new: Option<&Document>) -> Result<(), String> {
    let at = primary_within(env, addrs, PATIENCE).await.ok_or("no primary")?;
    let mut c = Client::connect(env, &addrs[at]).await.map_err(|e| e.to_string())?;
    if addrs[at] == host && new.is_none() {
        let leave = doc! { "replSetStepDown": 30, "secondaryCatchUpPeriodSecs": 5, "$db": "admin" };
        let reply = c.command(&leave.to_raw()).await.map_err(|e| e.to_string())?;
        return Err(format!("it leads: {reply}"));
    }
    // With two voters and a third that does not count yet, one that is taken out leaves a majority of one.
    if new.is_none() && is_growing(&mut c).await.unwrap_or(true) {
        return Err("a member is newly added".to_owned());
    }
    let config = config_of(&mut c).await.ok_or("no configuration")?;
    let id = |m: &Document| m.get("_id").and_then(Bson::as_i64);
    let mut kept = members(&config);
    kept.retain(|m| {
        m.get("host").and_then(Bson::as_str) != Some(host) || new.is_some_and(|n| id(n) == id(m))
    });
    let Some(new) = new else { return install(&mut c, next(&config, kept)).await };
    let wanted = joining(&kept, new);
    match kept.iter().position(|m| id(m) == id(new)) {
        // It has come, and may lead once it has what was committed without it.
        Some(at) if number(&kept[at], "priority") < number(&wanted, "priority") && votes(&kept[at]) => {
            kept[at].set("priority", number(&wanted, "priority"));
            install(&mut c, next(&config, kept)).await
        }
        Some(_) => Ok(()),
        None if arbiters_could_elect(&kept, &wanted) => {
            let mut silent = wanted;
            silent.set("priority", 0);
            kept.push(silent);
            install(&mut c, next(&config, kept)).await?;
            Err("it may not lead yet".to_owned())
        }
        None => {
            kept.push(wanted);
            install(&mut c, next(&config, kept)).await
        }
    }
}

fn votes(member: &Document) -> bool {
    number(member, "votes") > 0.0
}

/// Whether the set is a member with data and an arbiter, which a newcomer could lead by the arbiter's vote, without any data.
fn arbiters_could_elect(members: &[Document], new: &Document) -> bool {
    let is_arbiter = |m: &&Document| m.get("arbiterOnly").is_some_and(Bson::is_truthy);
    let voters: Vec<&Document> = members.iter().filter(|m| votes(m)).collect();
    let arbiters = voters.iter().copied().filter(is_arbiter).count();
    voters.len() == 2 && arbiters == 1 && votes(new) && number(new, "priority") > 0.0
}

/// Votes have turned since the member left: the set must not be left with one that can lead, which could then never be replaced.
fn joining(members: &[Document], new: &Document) -> Document {
    match electable(members) < 2 && may_be_elected(new) {
        true => voting(new.clone()),
        false => new.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_back_without_a_vote_gets_one_where_one_alone_can_lead() {
        let silent = |id: i32| doc! { "_id": id, "host": "h", "votes": 0, "priority": 0 };
        let (leader, hidden) =
            (doc! { "_id": 1, "host": "a" }, doc! { "_id": 2, "host": "b", "hidden": true });
        let alone = [leader.clone(), hidden.clone(), silent(3)];
        assert_eq!(joining(&alone, &silent(4)).get("votes").and_then(Bson::as_i64), Some(1));
        let two = [leader, doc! { "_id": 5, "host": "c" }];
        assert_eq!(joining(&two, &silent(4)).get("votes").and_then(Bson::as_i64), Some(0));
        let mut late = hidden;
        late.push("votes", 0);
        assert_eq!(joining(&alone, &late).get("votes").and_then(Bson::as_i64), Some(0));
    }
}
