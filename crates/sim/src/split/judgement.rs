//! What must hold once everything has healed: each of the two sets has all its members, one primary and one content; every tenant's
//! promises are kept by its owner; and splits have left nothing but what they should.

use super::knowledge::{Knowledge, Said};
use super::operator::{Operator, block_of, documents};
use super::shape::{DONOR, MEMBERS, STAY, TENANTS, name};
use super::users::Users;
use crate::client::Client;
use crate::executor::lock;
use crate::set::agreement;
use crate::set::asking::{connected, hello, primary_of};
use crate::set::users::caller::is_done;
use pando_base::Timestamp;
use pando_bson::{DocBuf, RawDoc, Value, doc};
use pando_env::Env;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(200);

/// What is asked, and who is.
pub(super) struct Parts {
    pub(super) env: Env,
    pub(super) addrs: Vec<String>,
    pub(super) knowledge: Arc<Mutex<Knowledge>>,
    pub(super) users: Users,
    /// How far it is, for whoever looks for what holds it up.
    pub(super) stage: Arc<Mutex<String>>,
}

/// What is wrong.
pub(super) async fn run(parts: Parts) -> Vec<String> {
    match parts.all().await {
        Ok(problems) => problems,
        Err(why) => vec![why],
    }
}

fn text<'a>(doc: &'a RawDoc, name: &str) -> &'a str {
    doc.get(name).and_then(|v| v.as_str()).unwrap_or_default()
}

impl Parts {
    fn at(&self, stage: String) {
        *lock(&self.stage) = stage;
    }
    /// The sets that there are, with their members; their primary first.
    async fn sets(&self) -> Vec<(&'static str, Vec<String>)> {
        let made = lock(&self.knowledge).committed().map(|split| split.set);
        let all = match made {
            Some(set) => vec![(DONOR, 0..STAY), (set, STAY..MEMBERS)],
            None => vec![(DONOR, 0..MEMBERS)],
        };
        let mut sets = Vec::new();
        for (name, who) in all {
            self.at(format!("a primary of {name}"));
            let mut addrs = self.addrs[who].to_vec();
            let at = primary_of(&self.env, &addrs).await;
            addrs.swap(0, at);
            sets.push((name, addrs));
        }
        sets
    }
    async fn all(&self) -> Result<Vec<String>, String> {
        let sets = self.sets().await;
        let mut problems = Vec::new();
        for (name, addrs) in &sets {
            self.members(name, addrs).await;
            problems.extend(self.primaries(name, addrs).await);
        }
        for tenant in 0..TENANTS {
            let moved = lock(&self.knowledge).has_moved(tenant);
            let owner = &sets[usize::from(moved)].1[0];
            self.at(format!("tenant {tenant} at {owner}"));
            let mut c = connected(&self.env, owner).await;
            problems.extend(self.users.check(&mut c, tenant).await?);
        }
        problems.extend(self.log(&sets[0].1[0]).await?);
        self.forget_all(&sets[0].1).await;
        if let Some((_, addrs)) = sets.get(1) {
            self.nothing_left(addrs).await;
        }
        for (name, addrs) in sets {
            self.at(format!("the data of {name}"));
            let agreed = agreement::run(self.env.clone(), addrs, self.stage.clone()).await;
            problems.extend(agreed.err().into_iter().flatten().map(|p| format!("{name}: {p}")));
        }
        Ok(problems)
    }

    /// Returns when every member of a set follows or leads, and the configuration has these members and no other.
    async fn members(&self, set: &str, addrs: &[String]) {
        for addr in addrs {
            loop {
                let said = hello(&self.env, addr).await;
                let here = |h: &DocBuf| {
                    let is = |field: &str| h.get(field).is_some_and(|v| v.is_truthy());
                    (is("isWritablePrimary") || is("secondary")) && text(h, "setName") == set
                };
                let count = self.count(addr).await;
                if said.as_ref().is_some_and(here) && count == Some(addrs.len()) {
                    break;
                }
                self.at(format!("{addr} is no member of {set} with {} members: {said:?}", addrs.len()));
                self.env.clock.sleep(PAUSE).await;
            }
        }
    }
    /// How many members the configuration of a member has.
    async fn count(&self, addr: &str) -> Option<usize> {
        let mut c = Client::connect(&self.env, addr).await.ok()?;
        let reply = c.command(&doc! { "replSetGetConfig": 1, "$db": "admin" }.to_raw()).await.ok()?;
        Some(reply.get_path("config.members")?.as_array()?.iter().count())
    }
    async fn primaries(&self, set: &str, addrs: &[String]) -> Option<String> {
        let mut found = Vec::new();
        for addr in addrs {
            let said = hello(&self.env, addr).await;
            if said.is_some_and(|h| h.get("isWritablePrimary").is_some_and(|v| v.is_truthy())) {
                found.push(addr);
            }
        }
        (found.len() > 1).then(|| format!("{set} has the primaries {found:?}"))
    }

    /// Nothing of a tenant that has moved is in the donor's log behind its `blockTimestamp`, until the split was forgotten.
    async fn log(&self, addr: &str) -> Result<Vec<String>, String> {
        self.at("the donor's log".to_owned());
        let mut c = connected(&self.env, addr).await;
        let find = doc! { "find": "oplog.rs", "batchSize": 200_000, "$db": "local" };
        let reply = c.command(&find.to_raw()).await.map_err(|e| e.to_string())?;
        if !is_done(&reply) {
            return Err(reply.to_string());
        }
        let splits = lock(&self.knowledge).splits.clone();
        let blocks: Vec<Option<Timestamp>> = (0..TENANTS).map(|t| block_of(&splits, t)).collect();
        let batch = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        let mut problems = Vec::new();
        for entry in batch.iter().filter_map(|e| e.value().as_doc()) {
            // From there on it is the caller's business.
            if text(entry, "op") == "d" && text(entry, "ns") == "config.tenantSplitDonors" {
                break;
            }
            let Some(Value::Timestamp(at)) = entry.get("ts") else { continue };
            let late = |t: &usize| blocks[*t].is_some_and(|block| at > block) && is_of(entry, *t);
            if let Some(tenant) = (0..TENANTS).find(late) {
                problems.push(format!("behind blockTimestamp tenant {tenant} has {entry}"));
            }
        }
        problems.truncate(5);
        Ok(problems)
    }

    /// All splits are forgotten, and their documents go.
    async fn forget_all(&self, addrs: &[String]) {
        let operator = Operator {
            env: self.env.clone(),
            addrs: self.addrs[..STAY].to_vec(),
            knowledge: self.knowledge.clone(),
        };
        let open: Vec<u8> = {
            let knowledge = lock(&self.knowledge);
            let begun =
                |s: &&super::knowledge::Split| !matches!(s.said, Some(Said::Refused(_))) || s.called_off;
            knowledge.splits.iter().filter(begun).map(|s| s.id).collect()
        };
        for id in open {
            self.at(format!("split {id} is not forgotten"));
            operator.forget(id).await;
        }
        self.nothing_left(addrs).await;
    }
    /// Returns when no member has a state document.
    async fn nothing_left(&self, addrs: &[String]) {
        for addr in addrs {
            loop {
                let found = documents(&self.env, addr).await;
                if found.as_ref().is_some_and(Vec::is_empty) {
                    break;
                }
                self.at(format!("{addr} has state documents: {found:?}"));
                self.env.clock.sleep(PAUSE).await;
            }
        }
    }
}

/// Whether an entry of a log writes into a tenant's database.
fn is_of(entry: &RawDoc, tenant: usize) -> bool {
    let begins = format!("{}_", name(tenant));
    let within = || {
        let all = entry.get_path("o.applyOps")?.as_array()?;
        Some(all.iter().any(|e| e.value().as_doc().is_some_and(|op| text(op, "ns").starts_with(&begins))))
    };
    text(entry, "op") != "n" && (text(entry, "ns").starts_with(&begins) || within().unwrap_or(false))
}
