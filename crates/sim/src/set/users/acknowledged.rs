//! Checker: what was acknowledged with `w: "majority"` is never lost.

use crate::client::Client;
use crate::executor::lock;
use crate::set::asking::primary_of;
use pando_bson::doc;
use pando_env::Env;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Ids whose insert was acknowledged.
pub(crate) type Acknowledged = BTreeSet<i64>;

/// One user: inserts one document after another, each acknowledged by a majority.
pub(crate) async fn write(
    env: Env,
    addrs: Vec<String>,
    (user, pause_ms): (i64, u64),
    acknowledged: Arc<Mutex<Acknowledged>>,
    stop: Arc<AtomicBool>,
) {
    let mut id = user << 32;
    while !stop.load(Relaxed) {
        let at = primary_of(&env, &addrs).await;
        let Ok(mut c) = Client::connect(&env, &addrs[at]).await else { continue };
        while !stop.load(Relaxed) {
            id += 1;
            let body = doc! {
                "insert": "acked", "documents": [{ "_id": id, "user": user }],
                "writeConcern": { "w": "majority", "wtimeout": 5000 }, "$db": "d"
            };
            let Ok(reply) = c.command(&body.to_raw()).await else { break };
            let fine = reply.get("ok").is_some_and(|v| v.is_truthy())
                && reply.get("writeConcernError").is_none()
                && reply.get("writeErrors").is_none();
            if !fine {
                break;
            }
            lock(&acknowledged).insert(id);
            env.clock.sleep(Duration::from_millis(env.rng.next_u64() % (pause_ms * 2))).await;
        }
        env.clock.sleep(Duration::from_millis(20)).await;
    }
}

/// What is missing at a primary.
pub(crate) async fn check(c: &mut Client, acknowledged: &Mutex<Acknowledged>) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut body = doc! { "find": "acked", "batchSize": 5000, "$db": "d" }.to_raw();
    loop {
        let reply = match c.command(&body).await {
            Ok(reply) => reply,
            Err(e) => return vec![format!("reading what was acknowledged: {e}")],
        };
        let cursor = reply.get("cursor").and_then(|v| v.as_doc());
        let batch =
            cursor.and_then(|c| c.get("firstBatch").or(c.get("nextBatch"))).and_then(|v| v.as_array());
        let docs = batch.into_iter().flatten();
        found.extend(docs.filter_map(|e| e.value().as_doc()?.get("_id")?.as_i64()));
        match cursor.and_then(|c| c.get("id")).and_then(|v| v.as_i64()) {
            Some(0) => break,
            Some(id) => body = doc! { "getMore": id, "collection": "acked", "$db": "d" }.to_raw(),
            None => return vec![format!("reading what was acknowledged: {reply}")],
        }
    }
    let lost = lock(acknowledged).iter().filter(|id| !found.contains(id)).copied().collect::<Vec<_>>();
    lost.iter()
        .take(10)
        .map(|id| format!("acknowledged write {id:x} is lost ({} in all)", lost.len()))
        .collect()
}
