//! What must hold once everything has healed: each of the two sets has all its members, one primary and one content; every tenant's
//! promises are kept by its owner; and splits have left nothing but what they should.

use super::super::agreement::{Parts, text};
use super::super::board::Board;
use super::super::name;
use super::MEMBERS;
use super::knowledge::{Knowledge, Said, Split};
use super::operator::{Operator, block_of};
use super::shape::{DONOR, STAY, TENANTS};
use crate::executor::lock;
use crate::set::asking::connected;
use crate::set::users::caller::is_done;
use pando_base::Timestamp;
use pando_bson::{RawDoc, Value, doc};
use std::sync::{Arc, Mutex};

const DOCUMENTS: &str = "tenantSplitDonors";

/// What is asked, and what is known.
pub(super) struct Judge {
    pub(super) parts: Parts,
    pub(super) knowledge: Arc<Mutex<Knowledge>>,
    pub(super) board: Arc<Mutex<Board>>,
}

/// What is wrong.
pub(super) async fn run(judge: Judge) -> Result<Vec<String>, String> {
    judge.all().await
}

impl Judge {
    /// The sets that there are, with their members; their primary first.
    async fn sets(&self) -> Vec<(&'static str, Vec<String>)> {
        let made = lock(&self.knowledge).committed().map(|split| split.set);
        let all = match made {
            Some(set) => vec![(DONOR, 0..STAY), (set, STAY..MEMBERS)],
            None => vec![(DONOR, 0..MEMBERS)],
        };
        let mut sets = Vec::new();
        for (name, who) in all {
            sets.push((name, self.parts.set(name, who).await));
        }
        sets
    }
    async fn all(&self) -> Result<Vec<String>, String> {
        let sets = self.sets().await;
        let mut problems = Vec::new();
        for (name, addrs) in &sets {
            self.parts.members(name, addrs).await;
            problems.extend(self.parts.primaries(name, addrs).await);
        }
        for tenant in 0..TENANTS {
            let moved = lock(&self.knowledge).has_moved(tenant);
            let owner = &sets[usize::from(moved)].1[0];
            self.parts.at(format!("tenant {tenant} at {owner}"));
            let mut c = connected(&self.parts.env, owner).await;
            problems.extend(self.parts.users.check(&mut c, tenant).await?);
        }
        problems.extend(self.log(&sets[0].1[0]).await?);
        self.forget_all(&sets[0].1).await;
        if let Some((_, addrs)) = sets.get(1) {
            self.parts.nothing_left(DOCUMENTS, addrs).await;
        }
        for (name, addrs) in sets {
            problems.extend(self.parts.same(name, addrs).await);
        }
        Ok(problems)
    }

    /// Nothing of a tenant that has moved is in the donor's log behind its `blockTimestamp`, until the split was forgotten.
    async fn log(&self, addr: &str) -> Result<Vec<String>, String> {
        self.parts.at("the donor's log".to_owned());
        let mut c = connected(&self.parts.env, addr).await;
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
            env: self.parts.env.clone(),
            addrs: self.parts.addrs[..STAY].to_vec(),
            knowledge: self.knowledge.clone(),
            board: self.board.clone(),
        };
        let open: Vec<u8> = {
            let knowledge = lock(&self.knowledge);
            let begun = |s: &&Split| !matches!(s.said, Some(Said::Refused(_))) || s.called_off;
            knowledge.splits.iter().filter(begun).map(|s| s.id).collect()
        };
        for id in open {
            self.parts.at(format!("split {id} is not forgotten"));
            operator.forget(id).await;
        }
        self.parts.nothing_left(DOCUMENTS, addrs).await;
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
