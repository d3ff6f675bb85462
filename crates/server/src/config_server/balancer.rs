//! The balancer of a cluster, on the primary of its config servers: one round after the other (SYS-236).
//!
//! ```text
//!   settings ─► may it work? ─► sizes of collections, from every shard ─► plan ─► splits ─► migrations, all at once ─► pause
//!                                                                       what was too large: split, or marked (too_large) ◄┘
//! ```
//! Nothing is kept from round to round. What a round decides rests on what is stored when it decides; whoever is primary no more decides
//! nothing, and what he has begun ends by itself or is joined by his successor's.

use super::ConfigServer;
use super::shard_calls::RangeMove;
use super::too_large;
use crate::lifecycle::Lifecycle;
use pando_access::Uninterrupted;
use pando_base::{Error, Millis, Result, limits};
use pando_bson::{DocBuf, DocBuilder};
use pando_config_server::{Balanced, Move, Plan, Settings, Sizes, Why};
use pando_env::{Component, together};
use pando_routing::ShardId;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::time::Duration;

/// What `balancerStatus` tells.
#[derive(Default)]
pub(crate) struct Rounds {
    pub(crate) in_round: AtomicBool,
    /// Since this node became primary.
    pub(crate) done: AtomicI64,
}

/// What came of a round.
#[derive(Default)]
struct Done {
    /// Splits, migrations and merges that were to be.
    changes: usize,
    /// Migrations among them, and how many of these have moved a range.
    moves: usize,
    moved: usize,
}

pub(crate) async fn run(config_server: Arc<ConfigServer>, lifecycle: Arc<Lifecycle>) {
    let mut pause = 0;
    while lifecycle.pause(Duration::from_millis(pause)).await {
        let replication = &config_server.replication;
        pause = config_server.between_rounds();
        if !replication.member.accepts_writes() || !replication.member.is_replicated() {
            continue;
        }
        config_server.rounds.in_round.store(true, Relaxed);
        let clock = &replication.env().clock;
        let begun = clock.mono();
        let done = config_server.round().await;
        let ms = (clock.mono() - begun).as_millis() as Millis;
        match done {
            Ok(done) => {
                if done.changes > 0 {
                    pause = pause.min(limits::BALANCER_PAUSE_MS);
                }
                if done.moves > 0 {
                    config_server.manager.log_round(ms, Ok((done.moved, done.moves))).await;
                }
            }
            Err(e) => {
                config_server.manager.log_round(ms, Err(&e)).await;
                let text = "A round of the balancer failed; will try again";
                replication.env().log.warn(Component::Sharding, 9_100_092, text, |a| {
                    a.data("error", &e);
                });
            }
        }
        config_server.rounds.in_round.store(false, Relaxed);
        config_server.rounds.done.fetch_add(1, Relaxed);
    }
}

impl ConfigServer {
    /// Tests make it shorter (`{intervalMs}`).
    fn between_rounds(&self) -> u64 {
        let (points, rng) = (self.replication.fail_points(), &self.replication.env().rng);
        let told = points.get("overrideBalanceRoundInterval").and_then(|point| point.check(&**rng, |_| true));
        let ms = told.and_then(|data| data.get("intervalMs").and_then(|v| v.as_i64()));
        ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(limits::BALANCER_ROUND_MS)
    }
    pub(super) fn minute_of_day(&self) -> u32 {
        self.replication.env().clock.wall_ms().div_euclid(60_000).rem_euclid(24 * 60) as u32
    }
    async fn round(&self) -> Result<Done> {
        let settings = self.manager.balancer_settings()?;
        if !settings.may_balance_at(self.minute_of_day()) {
            return Ok(Done::default());
        }
        let collections = self.manager.balanced_collections()?;
        if collections.is_empty() {
            return Ok(Done::default());
        }
        let sizes = self.sizes(&collections).await?;
        let measured = self.defragmenter.known_of(&collections);
        let plan = self.manager.plan_round(&settings, &collections, &sizes, &measured)?;
        let Plan { splits, moves, defragmentations } = plan;
        for split in &splits {
            if let Err(e) = self.manager.split(&Uninterrupted, "", split).await {
                self.failed("A chunk was not split at the end of a zone", &split.ns, &e);
            }
        }
        let moving = moves.iter().map(|one| self.carry_out(one, &settings)).collect();
        let moved = together(moving).await.into_iter().filter(|moved| *moved).count();
        let mut done = Done { changes: splits.len() + moves.len(), moves: moves.len(), moved };
        for one in &defragmentations {
            done.changes += self.defragment(one).await;
        }
        Ok(done)
    }
    /// Of all shards, or of none: a shard that does not answer is not taken for an empty one.
    async fn sizes(&self, collections: &[Balanced]) -> Result<Sizes> {
        let mut b = DocBuilder::new();
        b.i32("_shardsvrGetStatsForBalancing", 1);
        b.array("collections", |list| {
            for one in collections {
                list.doc(|d| _ = d.str("ns", &one.ns).uuid("UUID", &one.uuid.0));
            }
        });
        b.i64("scaleFactor", 1).str("$db", "admin");
        let body = b.finish();
        let asked = self.manager.balancer_shards()?;
        let asking = asked.iter().map(|shard| self.on_shard(&shard.id, &body));
        let replies = together(asking.collect()).await;
        let mut sizes = Sizes::new();
        for (shard, reply) in asked.iter().zip(replies) {
            note_sizes(&mut sizes, &shard.id, &reply?)?;
        }
        Ok(sizes)
    }
    /// Whether it has moved.
    async fn carry_out(&self, one: &Move, settings: &Settings) -> bool {
        let m = &one.migration;
        let why = m.why.text();
        self.replication.env().log.info(Component::Sharding, 21872, "Migration of a range begins", |a| {
            a.str("namespace", &m.ns)
                .str("from", m.from.as_str())
                .str("to", m.to.as_str())
                .str("reason", why);
        });
        // As much of the chunk as may move at once.
        let (from, to, min, max) = (&m.from, &m.to, Some(&*m.min), None);
        let (epoch, max_bytes, force) = (one.epoch, one.max_bytes, m.force);
        let range = RangeMove { ns: &m.ns, from, to, min, max, epoch, max_bytes, force };
        let how = |b: &mut DocBuilder| {
            b.bool("waitForDelete", settings.waits_for_delete);
            settings.throttle.iter().for_each(|concern| _ = b.raw_doc("secondaryThrottle", concern));
        };
        let Err(e) = self.shards.move_range(&self.manager.metadata(), &range, how).await else { return true };
        self.failed("A range was not moved", &m.ns, &e);
        if m.why == Why::Defragmentation {
            self.note_stuck(one);
        } else if too_large::says_so(&e)
            && let Err(e) = self.split_or_mark(one).await
        {
            self.failed("A chunk that is too large was neither split nor marked", &m.ns, &e);
        }
        false
    }
    pub(super) fn failed(&self, text: &'static str, ns: &str, e: &Error) {
        self.replication.env().log.warn(Component::Sharding, 21871, text, |a| {
            a.str("namespace", ns).data("error", e);
        });
    }
}

fn note_sizes(sizes: &mut Sizes, shard: &ShardId, reply: &DocBuf) -> Result<()> {
    let stats = reply.get("stats").and_then(|v| v.as_array());
    let stats = stats.ok_or_else(|| Error::internal(format!("shard {shard} tells no sizes: {reply}")))?;
    for one in stats.iter().filter_map(|e| e.value().as_doc()) {
        let ns = one.get("namespace").and_then(|v| v.as_str()).unwrap_or_default();
        let bytes = one.get("collSize").and_then(|v| v.as_i64()).and_then(|n| u64::try_from(n).ok());
        sizes.entry(ns.to_owned()).or_default().insert(shard.clone(), bytes.unwrap_or(0));
    }
    Ok(())
}
