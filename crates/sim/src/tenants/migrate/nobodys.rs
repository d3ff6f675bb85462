//! What belongs to no tenant, at each of the two sets: it is written and read whatever becomes of the set's tenants, and stays.

use super::super::Home;
use super::super::users::caller::{PATIENCE, Place, code_of, majority};
use super::knowledge::Knowledge;
use crate::client::Client;
use crate::executor::lock;
use crate::set::asking::primary_within;
use crate::set::users::caller::{docs, is_done};
use pando_bson::doc;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DB: &str = "plain";
/// Of this and all later ones are the second set's.
const OF_SECOND: i64 = 1 << 32;

/// What either set has acknowledged.
#[derive(Default)]
pub(super) struct Nobodys([BTreeSet<i64>; 2]);

impl Nobodys {
    pub(super) fn acknowledged(&self) -> usize {
        self.0.iter().map(BTreeSet::len).sum()
    }
}

fn is_of(home: Home, id: i64) -> bool {
    (id >= OF_SECOND) == (home == Home::Second)
}

/// Writes to one set.
pub(super) async fn run(place: Place, home: Home, knowledge: Arc<Mutex<Knowledge>>) {
    let addrs = &place.addrs[home as usize];
    let mut id = if home == Home::Second { OF_SECOND } else { 0 };
    while !place.stop.load(Relaxed) {
        let ms = place.env.rng.next_u64() % (2 * place.pause_ms);
        place.env.clock.sleep(Duration::from_millis(ms)).await;
        id += 1;
        let mut body = doc! { "insert": "c", "documents": [{ "_id": id }] };
        body.push("writeConcern", majority());
        body.push("$db", DB);
        let body = body.to_raw();
        let asking = async {
            let at = primary_within(&place.env, addrs, PATIENCE).await?;
            Client::connect(&place.env, &addrs[at]).await.ok()?.command(&body).await.ok()
        };
        match place.env.timeout(PATIENCE, asking).await.flatten() {
            Some(reply) if is_done(&reply) => _ = lock(&knowledge).nobodys.0[home as usize].insert(id),
            Some(reply) if matches!(code_of(&reply), 20 | 239 | 320 | 321 | 325) => {
                let text = format!("{DB} of {home:?} is no tenant's: {reply}");
                lock(&place.board).problems.push(text);
            }
            _ => {}
        }
    }
}

/// What is wrong with it at a set's primary.
pub(super) async fn check(
    c: &mut Client,
    home: Home,
    knowledge: &Mutex<Knowledge>,
) -> Result<Vec<String>, String> {
    let find = doc! { "find": "c", "batchSize": 100_000, "$db": DB };
    let reply = c.command(&find.to_raw()).await.map_err(|e| e.to_string())?;
    let found = docs(&reply).ok_or_else(|| reply.to_string())?;
    let there: BTreeSet<i64> = found.iter().filter_map(|d| d.get("_id")?.as_i64()).collect();
    let knowledge = lock(knowledge);
    let lost: Vec<&i64> = knowledge.nobodys.0[home as usize].difference(&there).collect();
    let strange: Vec<&i64> = there.iter().filter(|id| !is_of(home, **id)).collect();
    let mut problems = Vec::new();
    if !lost.is_empty() {
        problems.push(format!("{DB} of {home:?} has lost {lost:?}"));
    }
    if !strange.is_empty() {
        problems.push(format!("{DB} of {home:?} has {strange:?}, of the other set"));
    }
    Ok(problems)
}
