//! Somebody who has chunks move from shard to shard all the time.

use crate::generated::chance::Chance;
use crate::generated::places;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Cluster, JoinHandle, pause, spawn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

#[derive(Default)]
struct State {
    stopped: AtomicBool,
    /// Who wants that nothing moves.
    paused: AtomicBool,
    moving: AtomicBool,
    moved: AtomicU64,
}

pub(crate) struct Mover {
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl Mover {
    /// The balancer does not take anything back.
    pub(crate) async fn start(cluster: &Cluster) -> Mover {
        for n in 0..3 {
            let mut shard = cluster.shard(n).await;
            shard.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 0, "$db": "admin" }).await;
        }
        let mut c = cluster.router(0).await;
        c.admin(doc! { "balancerStop": 1 }).await;
        let state = Arc::new(State::default());
        let own = state.clone();
        let task = spawn(async move {
            let mut chance = Chance::new(77);
            while !own.stopped.load(SeqCst) {
                own.moving.store(true, SeqCst);
                if own.paused.load(SeqCst) {
                    own.moving.store(false, SeqCst);
                    pause(1).await;
                    continue;
                }
                let moved = one(&mut c, &mut chance).await;
                own.moving.store(false, SeqCst);
                own.moved.fetch_add(u64::from(moved), SeqCst);
            }
        });
        Mover { state, task }
    }
    /// Returns when nothing moves.
    pub(crate) async fn pause(&self) {
        self.state.paused.store(true, SeqCst);
        while self.state.moving.load(SeqCst) {
            pause(1).await;
        }
    }
    pub(crate) fn go_on(&self) {
        self.state.paused.store(false, SeqCst);
    }
    /// How many have moved.
    pub(crate) async fn end(self) -> u64 {
        self.state.stopped.store(true, SeqCst);
        self.task.await.unwrap();
        self.state.moved.load(SeqCst)
    }
}

/// Some chunk of some collection goes to another shard, if it is still there when it is asked for.
async fn one(c: &mut Client, chance: &mut Chance) -> bool {
    let ns = format!("test.{}", places::some_sharded(chance));
    let mut entry = doc! { "find": "collections", "$db": "config" };
    entry.push("filter", doc! { "_id": ns.as_str() });
    let Some(uuid) = c.all(entry).await.first().and_then(|d| d.get("uuid")).cloned() else { return false };
    let mut find = doc! { "find": "chunks", "$db": "config" };
    let mut filter = doc! {};
    filter.push("uuid", uuid);
    find.push("filter", filter);
    let chunks = c.all(find).await;
    if chunks.is_empty() {
        return false;
    }
    let chunk = &chunks[chance.below(chunks.len() as u64) as usize];
    let owner = chunk.get("shard").and_then(Bson::as_str).unwrap_or_default().to_owned();
    let others: Vec<&str> = ["s0", "s1", "s2"].into_iter().filter(|id| *id != owner).collect();
    let mut command = doc! { "moveChunk": ns };
    command.push("bounds", vec![chunk.get("min").cloned().unwrap(), chunk.get("max").cloned().unwrap()]);
    command.push("to", others[chance.below(2) as usize]);
    command.push("$db", "admin");
    c.run(command).await.get("ok").and_then(Bson::as_f64) == Some(1.0)
}

/// Whether a write names no shard: it is of many, or has a part of the key only.
pub(crate) fn meets_all_shards(command: &Document) -> bool {
    let lists = ["updates", "deletes", "ops"].into_iter().filter_map(|name| command.get(name)?.as_array());
    lists.flatten().filter_map(Bson::as_doc).any(|statement| {
        let is = |name: &str| statement.get(name) == Some(&Bson::Boolean(true));
        let is_of_many = is("multi") || statement.get("limit").and_then(Bson::as_i64) == Some(0);
        let by = statement.get("q").or(statement.get("filter")).and_then(Bson::as_doc);
        is_of_many || by.is_some_and(|q| q.get("k").is_none())
    })
}
