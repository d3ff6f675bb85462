//! A second router starts and knows nothing: what its first operations cost, and what it takes to keep one. It adds a shard, of
//! which the first router hears from others.

use super::caller::expect;
use super::machines::{Run, shard_name};
use pando_bson::doc;

impl Run {
    pub(super) fn start_a_router(&mut self) -> Result<(), String> {
        let before = (self.options.outside.resident)();
        let router = self.add_router();
        let last = self.ranged() - 1;
        // It serves while it still meets the shards: no line can be drawn between the two.
        self.step_at(router, "another router starts, and its first find by the key", 1, |run| {
            run.until_it_serves(router)?;
            run.find_by_key(router, last)
        })?;
        self.step_at(router, "its first find without the key", 1, |run| run.find_anywhere(router, 1))?;
        self.step_at(router, "its second find without the key", 1, |run| run.find_anywhere(router, 2))?;
        let reply = self.ok_at(router, &doc! { "count": "hashed", "query": { "v": 1 }, "$db": "d" })?;
        expect("documents", super::caller::number(&reply, "n"), self.hashed())?;
        self.router_bytes = (self.options.outside.resident)().saturating_sub(before);
        self.add_one_more(router)
    }
    /// A command to all shards finds the list of shards old, as many times as there are shards: it is read once.
    fn add_one_more(&mut self, router: usize) -> Result<(), String> {
        let name = shard_name(self.shards.len());
        let host = format!("{name}/{}", self.spare.addr());
        let add = doc! { "addShard": host.as_str(), "name": name.as_str(), "$db": "admin" };
        self.step_at(router, "another router adds a shard", 1, |run| run.ok_at(router, &add).map(drop))?;
        // Its requests tell the shards, and their replies the first router.
        self.find_anywhere(router, 3)?;
        let n = self.n() as u64;
        let sent = |run: &Run| run.world.net.sent_by_and_to(run.routers[0].machine()).messages;
        let before = sent(self);
        self.step("find without the key after that", 2, |run| {
            run.find_anywhere(0, 4)?;
            run.find_anywhere(0, 5)
        })?;
        let messages = sent(self) - before;
        expect("the list of shards is read once", messages <= 5 * n + 40, true)
    }
}
