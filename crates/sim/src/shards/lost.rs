//! One shard of many is gone: what needs it fails soon and says why, everything else goes on; then it is back.

use super::caller::{at, batch, expect, number, short};
use super::machines::{Run, shard_name};
use super::writes::{in_d, on};
use pando_bson::{Bson, Document, doc};
use std::time::Duration;

/// What needs the shard fails within this time: a call waits 20 seconds for a primary.
const FAILS_WITHIN: Duration = Duration::from_secs(40);
/// What does not need it is answered within this.
const GOES_ON_WITHIN: Duration = Duration::from_secs(1);
/// Once it is back everything is answered within this time.
const BACK_WITHIN: Duration = Duration::from_secs(60);
/// The client's own limit for what needs a machine without power.
const MAX_TIME_MS: i64 = 3000;

/// Documents of other shards that are looked for.
const ELSEWHERE: usize = 20;

/// Of a shard that is not there, and of a time limit.
const GONE: [i64; 4] = [6, 7, 89, 133];
const TIME_LIMIT: i64 = 50;

impl Run {
    fn find_all(&self, more: Document) -> Document {
        let mut body = on("find", "ranged");
        body.push("filter", doc! { "v": { "$gte": 0 } });
        body.push("batchSize", 100_000);
        more.iter().for_each(|(k, v)| body.push(k, v.clone()));
        in_d(body)
    }
    /// A shard that is not the database's primary, by what its documents say of themselves.
    pub(super) fn lose_a_shard(&mut self) -> Result<(), String> {
        let (lost, owners) = (self.shards.len() / 2, self.owners()?);
        let name = shard_name(lost);
        let id = owners.iter().position(|o| *o == name).ok_or("a shard without a part")? as i64;
        let others = owners.iter().enumerate().filter(|(_, o)| **o != name).map(|(id, _)| id as i64);
        let there: Vec<i64> = others.step_by(owners.len().div_ceil(ELSEWHERE)).collect();
        self.shards[lost].kill();
        self.step("one shard is dead: find over all", 1, |run| {
            run.fails(&run.find_all(Document::new()), FAILS_WITHIN, &GONE)
        })?;
        self.step("one shard is dead: the same once more", 1, |run| {
            run.fails(&run.find_all(Document::new()), FAILS_WITHIN, &GONE)
        })?;
        self.step("one shard is dead: what is there of it", 1, |run| run.some_is_there(lost))?;
        self.others_go_on("one shard is dead: find by the key elsewhere", &there)?;
        self.shards[lost].boot();
        self.step("the shard is back: until find over all has everything", 1, Run::until_everything)?;
        self.find_by_key(0, id)?;
        self.shards[lost].lose_power();
        let limited = self.find_all(doc! { "maxTimeMS": MAX_TIME_MS });
        let within = Duration::from_millis(MAX_TIME_MS as u64) + GOES_ON_WITHIN;
        self.step("one machine is dark: find over all with a limit of 3 s", 1, |run| {
            run.fails(&limited, within, &[TIME_LIMIT])
        })?;
        self.others_go_on("one machine is dark: find by the key elsewhere", &there)?;
        self.shards[lost].boot();
        self.step("the machine is back: until find over all has everything", 1, Run::until_everything)?;
        self.find_by_key(0, id)
    }
    /// Who owns which document, by their numbers, as the config servers know.
    fn owners(&mut self) -> Result<Vec<String>, String> {
        let mut filter = Document::new();
        filter.push("uuid", self.uuid_of("d.ranged")?);
        let mut body = on("find", "chunks");
        body.push("filter", filter);
        body.push("sort", doc! { "min": 1 });
        body.push("$db", "config");
        let chunks = self.all(&body)?;
        let shards = chunks.iter().filter_map(|c| at(c, "shard")?.as_str().map(str::to_owned));
        // In the first one, below all keys, and in the last one there is nothing.
        Ok(shards.skip(1).take(self.chunks() as usize).collect())
    }
    fn fails(&mut self, body: &Document, within: Duration, codes: &[i64]) -> Result<(), String> {
        let begun = self.world.sim.now();
        let reply = self.ask(body)?;
        let took = self.world.sim.now() - begun;
        if codes.contains(&number(&reply, "code")) && took <= within {
            return Ok(());
        }
        Err(format!("after {took:?}: {}", short(&reply)))
    }
    fn some_is_there(&mut self, lost: usize) -> Result<(), String> {
        let reply = self.ok(&self.find_all(doc! { "allowPartialResults": true }))?;
        expect("partial", at(&reply, "cursor.partialResultsReturned").is_some_and(Bson::is_truthy), true)?;
        let found = batch(&reply, "firstBatch").len() as i64;
        let (all, name) = (self.ranged(), shard_name(lost));
        let few = all - all / self.n() - 4;
        if found < all && found >= few { Ok(()) } else { Err(format!("{found} of {all} without {name}")) }
    }
    /// Documents of other shards are found one by one, soon.
    fn others_go_on(&mut self, name: &'static str, there: &[i64]) -> Result<(), String> {
        self.step(name, there.len() as u64, |run| {
            there.iter().try_for_each(|id| {
                let begun = run.world.sim.now();
                run.find_by_key(0, *id)?;
                expect("soon", run.world.sim.now() - begun < GOES_ON_WITHIN, true)
            })
        })
    }
    fn until_everything(&mut self) -> Result<(), String> {
        let end = self.world.sim.now() + BACK_WITHIN;
        loop {
            let reply = self.ask(&self.find_all(Document::new()))?;
            if batch(&reply, "firstBatch").len() as i64 == self.ranged() {
                return Ok(());
            }
            if self.world.sim.now() > end {
                return Err(format!("not back: {}", short(&reply)));
            }
            self.wait(GOES_ON_WITHIN / 5);
        }
    }
}
