//! Who writes into collections that others define and drop meanwhile: each document is sent once, under an `_id` of its own.

use super::definitions::Spaces;
use super::pages::lsid;
use crate::cluster::shape::KEYS;
use crate::executor::lock;
use crate::set::users::caller::{Caller, Place, is_done, majority, operation_time};
use pando_bson::{Bson, doc};
use std::sync::{Arc, Mutex};

pub(crate) async fn run(place: Place, spaces: Arc<Mutex<Spaces>>) {
    let user = place.user;
    let mut c = Caller::new(place);
    let mut n = 0;
    while !c.stopped() {
        n += 1;
        write(&mut c, user, n, &spaces).await;
        c.pause().await;
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
