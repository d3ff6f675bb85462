//! A user that builds and drops indexes on collections of its own while others change their documents. Many lives
//! end in the middle of a build.
//!
//! Which indexes there are is followed in the model, as rows of a collection that does not exist.

use super::client::{DB, Ended, Shared};
use super::model::{KeyName, Row};
use crate::client::Client;
use crate::executor::lock;
use pando_bson::{DocBuf, DocBuilder, doc};
use pando_env::Env;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// In the model, an index is a row of this collection.
pub(super) const INDEXES: &str = "indexes";
/// More than one step of a build's scan.
pub(super) const DOCS: u64 = 1100;
/// Documents of one insert.
const BATCH: u64 = 275;
const KINDS: i64 = 4;

/// The name of the `n`-th collection.
pub(super) fn name(n: i64) -> String {
    format!("big{n}")
}
/// The number of a collection that is one of these.
pub(super) fn number(coll: &str) -> Option<i64> {
    coll.strip_prefix("big")?.parse().ok()
}
/// The model's key of an index.
pub(super) fn index_id(coll: i64, index: &str) -> Option<i64> {
    let kind: i64 = index.strip_prefix("ix")?.parse().ok()?;
    Some(coll * 10 + kind)
}

fn key_of(kind: i64) -> DocBuf {
    match kind {
        0 => doc! { "v": 1 },
        1 => doc! { "tags": 1, "c": -1 },
        2 => doc! { "$**": 1 },
        _ => doc! { "n": 1 },
    }
    .to_raw()
}

pub(super) struct Builder {
    env: Env,
    shared: Shared,
    client: Client,
    coll: i64,
}

impl Builder {
    pub(super) async fn run(env: Env, shared: Shared) {
        while !shared.stop.load(Relaxed) {
            // What the last connection left is not known: a new collection.
            let coll = shared.big.fetch_add(1, Relaxed) + 1;
            if let Ok(client) = Client::connect(&env, &shared.addr).await {
                let mut builder = Builder { env: env.clone(), shared: shared.clone(), client, coll };
                let _ended: Result<(), Ended> = builder.work().await;
            }
            env.clock.sleep(Duration::from_millis(5)).await;
        }
    }

    async fn work(&mut self) -> Result<(), Ended> {
        self.fill().await?;
        while !self.shared.stop.load(Relaxed) {
            let pause = Duration::from_millis(self.env.rng.next_u64() % 150);
            self.env.clock.sleep(pause).await;
            self.act().await?;
        }
        Ok(())
    }

    async fn send(&mut self, mut b: DocBuilder) -> Result<(), Ended> {
        b.str("$db", DB);
        let body = b.finish();
        let reply = self.client.command(&body).await.map_err(|_| Ended)?;
        self.shared.judge(&reply, &body, &[])
    }

    async fn fill(&mut self) -> Result<(), Ended> {
        for from in (0..DOCS).step_by(BATCH as usize) {
            let mut b = DocBuilder::new();
            b.str("insert", &name(self.coll)).array("documents", |a| {
                for n in (from..DOCS.min(from + BATCH)).map(|n| n as i64) {
                    let doc = doc! { "_id": n, "n": n, "v": n % 7, "c": n % 5, "tags": [n % 3, n % 11] };
                    a.raw_doc(&doc.to_raw());
                }
            });
            self.send(b).await?;
        }
        Ok(())
    }

    /// Makes or drops one or two indexes; the kinds are drawn so that there is something to do.
    async fn act(&mut self) -> Result<(), Ended> {
        let first = (self.env.rng.next_u64() % KINDS as u64) as i64;
        let two = self.env.rng.next_u64().is_multiple_of(4);
        let kinds: Vec<i64> = if two { vec![first, (first + 1) % KINDS] } else { vec![first] };
        let ids: Vec<KeyName> = kinds.iter().map(|k| (INDEXES, self.coll * 10 + k)).collect();
        let there = |id: &KeyName| lock(&self.shared.model).get(*id).is_some();
        let drop = ids.iter().all(there);
        if !drop && ids.iter().any(there) {
            return Ok(());
        }
        let mut b = DocBuilder::new();
        if drop {
            b.str("dropIndexes", &name(self.coll)).array("index", |a| {
                for k in &kinds {
                    a.value(pando_bson::Value::String(&format!("ix{k}")));
                }
            });
        } else {
            b.str("createIndexes", &name(self.coll)).array("indexes", |a| {
                for k in &kinds {
                    a.doc(|i| {
                        i.raw_doc("key", &key_of(*k)).str("name", &format!("ix{k}"));
                        if *k == 3 {
                            i.bool("unique", true);
                        }
                    });
                }
            });
        }
        let durable = self.env.rng.next_u64().is_multiple_of(2);
        b.doc("writeConcern", |w| {
            w.i32("w", 1).bool("j", durable);
        });
        let after = if drop { None } else { Some(Row::default()) };
        let writes = ids.into_iter().map(|id| (id, after.clone())).collect();
        let pending = lock(&self.shared.model).begin(writes);
        self.shared.building.store(!drop, Relaxed);
        let sent = self.send(b).await;
        self.shared.building.store(false, Relaxed);
        sent?;
        lock(&self.shared.model).acknowledge(pending, durable);
        Ok(())
    }
}
