//! Tenants that come into being while a set is merged: each writes once, to either set, and nothing afterwards. Where they were let in they go wherever
//! the set's tenants go; no two sets have one.

use super::super::Home;
use super::super::agreement::text;
use super::super::users::caller::{PATIENCE, Place, code_of, majority};
use super::knowledge::Knowledge;
use crate::client::Client;
use crate::executor::lock;
use crate::set::asking::primary_within;
use crate::set::users::caller::{docs, is_done};
use pando_bson::{DocBuf, RawDoc, doc};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Each of them goes along with every merge from then on.
const MOST: usize = 12;
/// Mean time between two.
const BETWEEN_MS: u64 = 4000;

/// One that may be somewhere.
#[derive(Clone, Copy)]
struct Newcomer {
    /// Which set it has asked.
    home: Home,
    asked: Duration,
    /// When somebody has acknowledged it.
    acknowledged: Option<Duration>,
}

/// By number.
#[derive(Default)]
pub(super) struct Newcomers(BTreeMap<usize, Newcomer>);

impl Newcomers {
    /// One line for each, for whoever looks for a fault.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(number, Newcomer { home, asked, acknowledged })| {
            format!("{} has asked {home:?} at {asked:?}, acknowledged at {acknowledged:?}", database(*number))
        })
    }
    pub(super) fn let_in(&self) -> usize {
        self.0.values().filter(|n| n.acknowledged.is_some()).count()
    }
}

const PREFIX: &str = "new";

fn database(number: usize) -> String {
    format!("{PREFIX}{number}_db")
}

pub(super) async fn run(place: Place, knowledge: Arc<Mutex<Knowledge>>) {
    let below = |n: u64| place.env.rng.next_u64() % n;
    for number in 0..MOST {
        let ms = below(2 * BETWEEN_MS);
        place.env.clock.sleep(Duration::from_millis(ms)).await;
        if lock(&knowledge).calm || place.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return;
        }
        let home = Home::BOTH[below(2) as usize];
        let mut body = doc! { "insert": "c", "documents": [{ "_id": number as i64 }] };
        body.push("writeConcern", majority());
        body.push("$db", database(number));
        // Whatever becomes of it, it may be there.
        let newcomer = Newcomer { home, asked: place.env.clock.mono(), acknowledged: None };
        lock(&knowledge).newcomers.0.insert(number, newcomer);
        match ask(&place, home, &body.to_raw()).await {
            Some(reply) if is_done(&reply) => {
                let newcomer = Newcomer { acknowledged: Some(place.env.clock.mono()), ..newcomer };
                lock(&knowledge).newcomers.0.insert(number, newcomer);
            }
            // Not here, or not now.
            Some(reply) if matches!(code_of(&reply), 321 | 325) => {
                lock(&knowledge).newcomers.0.remove(&number);
            }
            _ => {}
        }
    }
}
async fn ask(place: &Place, home: Home, body: &DocBuf) -> Option<DocBuf> {
    let addrs = &place.addrs[home as usize];
    let at = primary_within(&place.env, addrs, PATIENCE).await?;
    let asking = async { Client::connect(&place.env, &addrs[at]).await.ok()?.command(body).await.ok() };
    place.env.timeout(PATIENCE, asking).await?
}

/// What is wrong with them, at the primaries of the two sets.
pub(super) async fn check(
    primaries: [&mut Client; 2],
    knowledge: &Mutex<Knowledge>,
) -> Result<Vec<String>, String> {
    let mut at: BTreeMap<String, Vec<Home>> = BTreeMap::new();
    let mut problems = Vec::new();
    for (home, c) in Home::BOTH.into_iter().zip(primaries) {
        let list = doc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" };
        let reply = c.command(&list.to_raw()).await.map_err(|e| e.to_string())?;
        let all = reply.get("databases").and_then(|v| v.as_array()).ok_or_else(|| reply.to_string())?;
        let names =
            all.iter().filter_map(|e| e.value().as_doc().map(|d: &RawDoc| text(d, "name").to_owned()));
        for db in names.filter(|db| db.starts_with(PREFIX)).collect::<Vec<_>>() {
            let find = doc! { "find": "c", "$db": db.as_str() };
            let reply = c.command(&find.to_raw()).await.map_err(|e| e.to_string())?;
            let found = docs(&reply).ok_or_else(|| reply.to_string())?;
            if found.len() != 1 {
                problems.push(format!("{db} at {home:?} has {found:?}"));
            }
            at.entry(db).or_default().push(home);
        }
    }
    let two = at.iter().filter(|(_, homes)| homes.len() > 1);
    problems.extend(two.map(|(db, _)| format!("{db} is at both sets")));
    let knowledge = lock(knowledge);
    for (number, newcomer) in &knowledge.newcomers.0 {
        if newcomer.acknowledged.is_some() && !at.contains_key(&database(*number)) {
            problems.push(format!("{} was acknowledged, and is nowhere", database(*number)));
        }
    }
    let known: Vec<String> = knowledge.newcomers.0.keys().map(|n| database(*n)).collect();
    let nobodys = at.keys().filter(|db| !known.contains(db));
    problems.extend(nobodys.map(|db| format!("{db} was refused, and is there")));
    Ok(problems)
}
