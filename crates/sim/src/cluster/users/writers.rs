//! Who writes into collections that others define and drop meanwhile: each document is sent once, under an `_id` of its own, alone
//! or with others in a transaction. What a transaction writes is not seen before its commit, so a collection that is empty to
//! whoever defines it may hold documents behind his back.

use super::definitions::Spaces;
use super::pages::lsid;
use crate::cluster::shape::KEYS;
use crate::executor::lock;
use crate::set::users::caller::{Caller, Place, is_done, majority, operation_time};
use crate::set::users::session::{Ended, Session};
use pando_bson::{Bson, doc};
use std::sync::{Arc, Mutex};

/// Statements of a transaction.
const STATEMENTS_MAX: u64 = 4;
/// Of so many writes one is a transaction.
const TRANSACTION_ONE_IN: u64 = 4;
/// Of so many pauses within a transaction one is a long one, and how long that is.
const LONG_ONE_IN: u64 = 4;
const LONG_PAUSES: u64 = 6;

pub(crate) async fn run(place: Place, spaces: Arc<Mutex<Spaces>>) {
    let user = place.user;
    let mut c = Caller::new(place);
    let mut session = Session::new(user, 15);
    let mut n = 0;
    while !c.stopped() {
        n += 1;
        if c.below(TRANSACTION_ONE_IN) == 0 {
            transaction(&mut c, &mut session, &mut n, &spaces).await;
        } else {
            write(&mut c, user, n, &spaces).await;
        }
        c.pause().await;
    }
}

/// Documents in one collection, and a while between them.
async fn transaction(c: &mut Caller, session: &mut Session, n: &mut i64, spaces: &Mutex<Spaces>) {
    let Some((ns, mark)) = lock(spaces).somewhere(c.below(u64::MAX)) else { return };
    let Some((db, coll)) = ns.split_once('.') else { return };
    let sent = c.now();
    let mut ids = Vec::new();
    session.number += 1;
    for statement in 0..1 + c.below(STATEMENTS_MAX) {
        *n += 1;
        let (id, k) = (session.user << 32 | *n, c.below(KEYS as u64) as i64);
        let mut body = doc! { "insert": coll };
        body.push("documents", vec![Bson::from(doc! { "_id": id, "k": k })]);
        let start = (statement == 0).then(|| doc! { "level": "majority" });
        match c.ask_primary(&session.within(body, db, start)).await {
            Some(reply) if is_done(&reply) => ids.push(id),
            Some(reply) => {
                lock(spaces).refused(&reply);
                let abort = session.within(doc! { "abortTransaction": 1 }, "admin", None);
                c.ask_primary(&abort).await;
                return;
            }
            None => return,
        }
        // Some stay open long enough for whole definitions to pass.
        let pauses = if c.below(LONG_ONE_IN) == 0 { LONG_PAUSES } else { 1 };
        for _ in 0..pauses {
            c.pause().await;
        }
    }
    if let Ended::Committed(at) = session.commit(c).await {
        let mut spaces = lock(spaces);
        spaces.counts.transactions += 1;
        ids.into_iter().for_each(|id| spaces.written(&ns, mark, id, at, sent));
    }
}

async fn write(c: &mut Caller, user: i64, n: i64, spaces: &Mutex<Spaces>) {
    let Some((ns, mark)) = lock(spaces).somewhere(c.below(u64::MAX)) else { return };
    let Some((db, coll)) = ns.split_once('.') else { return };
    let (id, k) = (user << 32 | n, c.below(KEYS as u64) as i64);
    let mut body = doc! { "insert": coll };
    body.push("documents", vec![Bson::from(doc! { "_id": id, "k": k })]);
    body.push("writeConcern", majority());
    if c.below(2) == 0 {
        body.push("lsid", lsid(user, 14));
        body.push("txnNumber", n);
    }
    body.push("$db", db);
    let sent = c.now();
    let at = c.anyone();
    match c.ask(at, &body.to_raw()).await {
        Some(reply) if is_done(&reply) => {
            lock(spaces).written(&ns, mark, id, operation_time(&reply), sent);
        }
        Some(reply) => lock(spaces).refused(&reply),
        None => {}
    }
}
