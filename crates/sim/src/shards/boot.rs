//! The sets are initiated, the first router starts, and one shard after the other is added.

use super::caller::{PATIENCE, at, expect, short};
use super::machines::{Run, set_config, shard_name};
use crate::Node;
use crate::client::Client;
use crate::executor::lock;
use crate::set::asking::{connected, primary_of};
use pando_bson::{Bson, Document, doc};
use pando_env::Env;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Before it is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// Sets that are initiated at a time.
const AT_ONCE: usize = 50;

impl Run {
    pub(super) fn boot(&mut self) -> Result<(), String> {
        self.wait(PAUSE);
        let sets: Vec<&[Node]> = std::iter::once(&self.config[..])
            .chain(self.shards.chunks(1))
            .chain([std::slice::from_ref(&self.spare)])
            .collect();
        let sets: Vec<(Vec<String>, Document)> =
            sets.into_iter().map(|set| (set.iter().map(Node::addr).collect(), set_config(set))).collect();
        for some in sets.chunks(AT_ONCE) {
            self.initiate(some.to_vec())?;
        }
        self.add_router();
        self.until_it_serves(0)?;
        self.add_shards()
    }
    fn initiate(&mut self, sets: Vec<(Vec<String>, Document)>) -> Result<(), String> {
        let env = self.env.clone();
        let failed: Arc<Mutex<Vec<String>>> = Arc::default();
        let done: Arc<Mutex<usize>> = Arc::default();
        let (n, end) = (sets.len(), self.world.sim.now() + PATIENCE);
        for (addrs, config) in sets {
            let (env, failed, done) = (env.clone(), failed.clone(), done.clone());
            self.world.sim.spawn(self.outside, "initiating", async move {
                if let Err(why) = initiated(&env, &addrs, config).await {
                    lock(&failed).push(why);
                }
                *lock(&done) += 1;
            });
        }
        while *lock(&done) < n {
            if self.world.sim.now() > end || !self.world.sim.step() {
                return Err("the sets are not initiated".to_owned());
            }
        }
        let failed = lock(&failed);
        failed.first().map_or(Ok(()), |why| Err(why.clone()))
    }
    /// Until a router that was started answers.
    pub(super) fn until_it_serves(&mut self, router: usize) -> Result<(), String> {
        let end = self.world.sim.now() + PATIENCE;
        let hello = doc! { "hello": 1, "$db": "admin" };
        while self.ask_router(router, &hello).is_err() {
            if self.world.sim.now() > end {
                return Err(format!("router {router} does not serve"));
            }
            self.wait(PAUSE / 10);
        }
        Ok(())
    }

    /// The last tenth has a row of its own: it tells whether one shard more costs what the first one did.
    fn add_shards(&mut self) -> Result<(), String> {
        let n = self.shards.len();
        let last = n - n.div_ceil(10);
        self.step("addShard, the first nine tenths", last as u64, |run| run.add_some(0..last))?;
        self.step("addShard, the last tenth", (n - last) as u64, |run| run.add_some(last..n))?;
        let listed = self.step("listShards", 1, |run| run.admin(doc! { "listShards": 1 }))?;
        let listed = at(&listed, "shards").and_then(Bson::as_array).map_or(0, <[Bson]>::len);
        expect("shards", listed, n)
    }
    fn add_some(&mut self, which: std::ops::Range<usize>) -> Result<(), String> {
        for i in which {
            let (name, host) = (shard_name(i), format!("{}/{}", shard_name(i), self.shards[i].addr()));
            self.admin(doc! { "addShard": host.as_str(), "name": name.as_str() })?;
        }
        Ok(())
    }
}

async fn initiated(env: &Env, addrs: &[String], config: Document) -> Result<(), String> {
    let mut c: Client = connected(env, &addrs[0]).await;
    let mut body = Document::new();
    body.push("replSetInitiate", config);
    body.push("$db", "admin");
    let reply = c.command(&body.to_raw()).await.map_err(|e| format!("{}: {e}", short(&body)))?;
    if !reply.get("ok").is_some_and(|v| v.is_truthy()) {
        return Err(format!("{}: {reply}", short(&body)));
    }
    primary_of(env, addrs).await;
    Ok(())
}
