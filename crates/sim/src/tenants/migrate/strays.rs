//! Users who ask the set that does not have a tenant, on purpose: nobody shows them half of what is being copied, and nobody takes what
//! they write but a set that has nothing to do with the tenant. What that one has taken is there until they take it away.

use super::super::users::caller::{Answer, Caller, Place, majority};
use super::super::users::writers::{Written, look_elsewhere};
use super::knowledge::{Knowledge, Plant};
use super::operator::{plant_db, put_plant};
use crate::executor::lock;
use crate::set::users::caller::{docs, is_done, operation_time};
use pando_bson::doc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long something stays in a tenant's way, at most.
const STAYS_MS: u64 = 4000;
/// Of a command that nobody has answered nothing comes any more.
const GHOSTS: Duration = Duration::from_secs(16);

/// `merges`: whole sets move.
pub(super) async fn run(
    place: Place,
    written: Arc<Mutex<Written>>,
    knowledge: Arc<Mutex<Knowledge>>,
    merges: bool,
) {
    let mut c = Caller::new(place, 6);
    let mut n = c.place.user << 32;
    while !c.stopped() {
        let tenant = some_tenant(&c, &knowledge);
        look_elsewhere(&mut c, tenant, &written).await;
        let (is_moving, calm) = {
            let knowledge = lock(&knowledge);
            (knowledge.is_moving(tenant), knowledge.calm)
        };
        // One of them is enough to keep a whole set where it is.
        let seldom = if merges { 30 } else { 1 };
        if !calm && c.below(seldom * if is_moving { 2 } else { 40 }) == 0 {
            n += 1;
            write(&mut c, tenant, n, &knowledge).await;
        }
        c.pause().await;
    }
}
/// Rather one that moves.
fn some_tenant(c: &Caller, knowledge: &Mutex<Knowledge>) -> usize {
    let moving: Vec<usize> = lock(knowledge).under_way().flat_map(|m| m.tenants.clone()).collect();
    match c.below(3) {
        0 | 1 if !moving.is_empty() => moving[c.below(moving.len() as u64) as usize],
        _ => c.some_tenant(),
    }
}

async fn write(c: &mut Caller, tenant: usize, number: i64, knowledge: &Mutex<Knowledge>) {
    if lock(knowledge).plants.contains_key(&tenant) {
        return;
    }
    lock(knowledge).plants.insert(tenant, Plant::Unsure);
    let (view, begun) = (c.view(tenant).next(), c.now());
    match c.ask_primary(tenant, view, &put_plant(tenant, number)).await {
        Answer::Reply(_, reply) if is_done(&reply) => {
            if lock(&c.place.board).has_left(tenant, view.home, begun) {
                c.problem(format!("tenant {tenant} had left {:?}, where a stray write was taken", view.home));
            }
            lock(knowledge).plants.insert(tenant, Plant::There(view.home, number));
            let at = operation_time(&reply);
            let ms = c.below(STAYS_MS);
            c.place.env.clock.sleep(Duration::from_millis(ms)).await;
            look(c, tenant, (view, number), at, knowledge).await;
        }
        Answer::Again => {
            lock(knowledge).plants.remove(&tenant);
            lock(knowledge).turned_away += 1;
            return;
        }
        // It lets nobody in, or is a part of what it said that it cannot do.
        Answer::Reply(_, reply) if matches!(super::super::users::caller::code_of(&reply), 20 | 239) => {
            lock(knowledge).plants.remove(&tenant);
            lock(knowledge).turned_away += 1;
            return;
        }
        Answer::Reply(..) | Answer::Nothing => c.place.env.clock.sleep(GHOSTS).await,
    }
    remove(c, tenant, view, knowledge).await;
}
/// It is there; or the set shows nobody anything of the tenant.
async fn look(
    c: &mut Caller,
    tenant: usize,
    (view, number): (super::super::board::View, i64),
    at: Option<pando_base::Timestamp>,
    knowledge: &Mutex<Knowledge>,
) {
    let mut find =
        doc! { "find": "c", "filter": { "_id": number }, "maxTimeMS": 8000, "$db": plant_db(tenant) };
    let mut concern = doc! { "level": "majority" };
    if let Some(at) = at {
        concern.push("afterClusterTime", at);
    }
    find.push("readConcern", concern);
    let Answer::Reply(_, reply) = c.ask_primary(tenant, view, &find).await else { return };
    match docs(&reply).filter(|_| is_done(&reply)) {
        Some(found) if found.is_empty() => {
            c.problem(format!("tenant {tenant}: {:?} had taken {number:x} and has lost it", view.home));
        }
        Some(_) => lock(knowledge).plants_kept += 1,
        None => {}
    }
}
/// Wherever it is by now.
async fn remove(
    c: &mut Caller,
    tenant: usize,
    view: super::super::board::View,
    knowledge: &Mutex<Knowledge>,
) {
    lock(knowledge).plants.insert(tenant, Plant::Unsure);
    let mut drop = doc! { "dropDatabase": 1, "$db": plant_db(tenant) };
    drop.push("writeConcern", majority());
    let (mut done, mut at) = ([false; 2], view);
    while !c.stopped() && done != [true; 2] {
        match c.ask_primary(tenant, at, &drop).await {
            Answer::Reply(_, reply) if is_done(&reply) => done[at.home as usize] = true,
            _ => {}
        }
        at = at.next();
        c.pause().await;
    }
    if done == [true; 2] {
        lock(knowledge).plants.remove(&tenant);
    }
}
