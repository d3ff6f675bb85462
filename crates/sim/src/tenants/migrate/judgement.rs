//! What must hold once everything has healed: each set has all its members, one primary and one content; every tenant's promises are kept
//! by its owner, the other set has nothing of it, and migrations have left nothing but what they should.

use super::super::Home;
use super::super::agreement::{Parts, text};
use super::super::board::Board;
use super::super::name;
use super::definitions::{self, Definitions};
use super::knowledge::{Knowledge, Plant};
use super::newcomers;
use super::nobodys;
use super::operator::plant_db;
use super::{RECIPIENTS, SETS, TENANTS};
use crate::client::Client;
use crate::executor::lock;
use crate::set::asking::connected;
use pando_bson::{RawDoc, doc};
use std::sync::{Arc, Mutex};

/// What is asked, and what is known.
pub(super) struct Judge {
    pub(super) parts: Parts,
    pub(super) knowledge: Arc<Mutex<Knowledge>>,
    pub(super) board: Arc<Mutex<Board>>,
    pub(super) definitions: Arc<Mutex<Definitions>>,
    pub(super) merges: bool,
}

impl Judge {
    /// What is wrong.
    pub(super) async fn run(self) -> Result<Vec<String>, String> {
        let mut problems = Vec::new();
        let mut sets = Vec::new();
        for home in Home::BOTH {
            let set = SETS[home as usize];
            let addrs = self.parts.set(set, home.machines()).await;
            self.parts.members(set, &addrs).await;
            problems.extend(self.parts.primaries(set, &addrs).await);
            sets.push(addrs);
        }
        for tenant in 0..TENANTS {
            problems.extend(self.tenant(tenant, &sets).await?);
        }
        if self.merges {
            problems.extend(self.beside(&sets).await?);
        }
        for (home, addrs) in Home::BOTH.into_iter().zip(sets) {
            for coll in ["tenantMigrationDonors", RECIPIENTS, "tenantMigrationProgress"] {
                self.parts.nothing_left(coll, &addrs).await;
            }
            problems.extend(self.parts.same(SETS[home as usize], addrs).await);
        }
        Ok(problems)
    }
    /// Who came into being meanwhile, and what is no tenant's.
    async fn beside(&self, sets: &[Vec<String>]) -> Result<Vec<String>, String> {
        self.parts.at("newcomers, and what is no tenant's".to_owned());
        let mut first = connected(&self.parts.env, &sets[0][0]).await;
        let mut second = connected(&self.parts.env, &sets[1][0]).await;
        let mut problems = newcomers::check([&mut first, &mut second], &self.knowledge).await?;
        problems.extend(nobodys::check(&mut first, Home::First, &self.knowledge).await?);
        problems.extend(nobodys::check(&mut second, Home::Second, &self.knowledge).await?);
        Ok(problems)
    }
    async fn tenant(&self, tenant: usize, sets: &[Vec<String>]) -> Result<Vec<String>, String> {
        let home = lock(&self.board).announced(tenant).home;
        let owner = &sets[home as usize][0];
        self.parts.at(format!("tenant {tenant} at {owner}"));
        let mut c = connected(&self.parts.env, owner).await;
        let mut problems = self.parts.users.check(&mut c, tenant).await?;
        problems.extend(definitions::check(&mut c, tenant, &self.definitions).await?);
        let elsewhere = &sets[home.other() as usize][0];
        let mut c = connected(&self.parts.env, elsewhere).await;
        let plant = lock(&self.knowledge).plants.get(&tenant).copied();
        for db in databases(&mut c, tenant).await? {
            if db != plant_db(tenant) || plant.is_none() {
                problems.push(format!("tenant {tenant} is at {home:?}, and {db} at the other set"));
            }
        }
        if let Some(Plant::There(at, number)) = plant {
            let mut c = connected(&self.parts.env, &sets[at as usize][0]).await;
            let find = doc! { "find": "c", "filter": { "_id": number }, "$db": plant_db(tenant) };
            let reply = c.command(&find.to_raw()).await.map_err(|e| e.to_string())?;
            if crate::set::users::caller::docs(&reply).is_none_or(|found| found.is_empty()) {
                problems.push(format!("tenant {tenant}: {at:?} had taken {number:x} and has lost it"));
            }
        }
        Ok(problems)
    }
}

/// Of a tenant, at a primary.
async fn databases(c: &mut Client, tenant: usize) -> Result<Vec<String>, String> {
    let list = doc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" };
    let reply = c.command(&list.to_raw()).await.map_err(|e| e.to_string())?;
    let all = reply.get("databases").and_then(|v| v.as_array()).ok_or_else(|| reply.to_string())?;
    let names = all.iter().filter_map(|e| e.value().as_doc().map(|d: &RawDoc| text(d, "name").to_owned()));
    Ok(names.filter(|db| db.starts_with(&format!("{}_", name(tenant)))).collect())
}
