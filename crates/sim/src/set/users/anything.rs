//! Random writers. What becomes of a single write does not matter here, only that all members agree on it.

use crate::client::Client;
use crate::set::asking::primary_of;
use crate::set::users::is_not_primary;
use pando_bson::{DocBuf, Document, doc};
use pando_env::Env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const COLLECTIONS: [&str; 4] = ["a", "b", "c", "cap"];
const KEYS: u64 = 40;

/// One user, who writes wherever the primary is.
pub(crate) async fn write(env: Env, addrs: Vec<String>, (user, pause_ms): (u64, u64), stop: Arc<AtomicBool>) {
    let mut txn = 0i64;
    while !stop.load(Relaxed) {
        let at = primary_of(&env, &addrs).await;
        if let Ok(mut client) = Client::connect(&env, &addrs[at]).await {
            while !stop.load(Relaxed) {
                txn += 1;
                let body = command(&env, user, txn);
                match client.command(&body).await {
                    Ok(reply) if !is_not_primary(&reply) => {}
                    _ => break,
                }
                env.clock.sleep(Duration::from_millis(below(&env, pause_ms * 2))).await;
            }
        }
        env.clock.sleep(Duration::from_millis(20)).await;
    }
}

fn below(env: &Env, n: u64) -> u64 {
    env.rng.next_u64() % n
}

fn command(env: &Env, user: u64, txn: i64) -> DocBuf {
    let mut body = match below(env, 40) {
        0..=33 => a_write(env),
        _ => definition(env),
    };
    if body.get("insert").is_some() || body.get("update").is_some() || body.get("delete").is_some() {
        let id = pando_bson::Binary { subtype: 4, bytes: vec![user as u8 + 1; 16] };
        let mut lsid = Document::new();
        lsid.push("id", pando_bson::Bson::Binary(id));
        if body.get("multi").is_none() {
            body.push("lsid", lsid);
            body.push("txnNumber", txn);
        }
        body.remove("multi");
    }
    if body.get("$db").is_none() {
        body.push("$db", if below(env, 4) == 0 { "e" } else { "d" });
    }
    body.to_raw()
}

fn a_write(env: &Env) -> Document {
    let coll = COLLECTIONS[below(env, 4) as usize];
    let key = |env: &Env| below(env, KEYS) as i32;
    let n = |env: &Env| below(env, 9) as i32;
    match below(env, 10) {
        0..=2 => {
            let docs: Vec<pando_bson::Bson> = (0..1 + below(env, 6))
                .map(|_| {
                    let filler = "x".repeat(below(env, 60) as usize);
                    doc! { "_id": key(env), "k": n(env), "v": key(env), "tags": [n(env), n(env)], "s": filler }.into()
                })
                .collect();
            let mut d = doc! { "insert": coll };
            d.push("documents", docs);
            d.push("ordered", false);
            d
        }
        3 | 4 => doc! { "update": coll, "updates": [
        { "q": { "_id": key(env) }, "u": { "$inc": { "k": 1 }, "$push": { "tags": n(env) } } }] },
        5 => doc! { "update": coll, "updates": [
        { "q": { "_id": key(env) }, "u": { "k": n(env), "v": key(env) }, "upsert": true }] },
        6 => doc! { "update": coll, "multi": true, "updates": [
        { "q": { "k": n(env) }, "u": { "$set": { "v": key(env), "sub.x": n(env) }, "$unset": { "s": 1 } },
          "multi": true }] },
        7 | 8 => doc! { "delete": coll, "deletes": [{ "q": { "_id": key(env) }, "limit": 1 }] },
        _ => doc! { "delete": coll, "multi": true, "deletes": [{ "q": { "k": n(env) }, "limit": 0 }] },
    }
}

fn definition(env: &Env) -> Document {
    let coll = COLLECTIONS[below(env, 3) as usize];
    match below(env, 9) {
        0 => doc! { "createIndexes": coll, "indexes": [{ "key": { "k": 1, "v": 1 }, "name": "kv" }] },
        1 => doc! { "createIndexes": coll, "indexes": [{ "key": { "tags": 1 }, "name": "tags" }] },
        2 => doc! { "createIndexes": coll, "indexes": [{ "key": { "v": 1 }, "name": "v", "unique": true }] },
        3 => doc! { "dropIndexes": coll, "index": "*" },
        4 if below(env, 2) == 0 => doc! { "drop": coll },
        5 => {
            let names = [COLLECTIONS[below(env, 3) as usize], "other"];
            let (from, to) = if below(env, 2) == 0 { (names[0], names[1]) } else { (names[1], names[0]) };
            doc! { "renameCollection": format!("d.{from}"), "to": format!("d.{to}"),
            "dropTarget": below(env, 2) == 0, "$db": "admin" }
        }
        6 => doc! { "create": "cap", "capped": true, "size": 4096 },
        7 => doc! { "collMod": coll, "validationLevel": "moderate" },
        8 if below(env, 6) == 0 => doc! { "dropDatabase": 1, "$db": "e" },
        _ => doc! { "create": coll },
    }
}
