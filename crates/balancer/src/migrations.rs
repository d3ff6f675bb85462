//! Which ranges of one collection are moved in this round, and where to (SH-BAL-3, SH-BAL-4).

use crate::mutants::{Mutant, broken};
use crate::state::{Collection, Shard, Shards};
use crate::survey::Survey;
use pando_bson::DocBuf;
use pando_routing::{ChunkRef, ForceJumbo, ShardId};
use std::collections::BTreeSet;

/// For the sake of balance a range is moved where the one has more than the other by so many times of what one migration may move.
const DIFFERENCE: u64 = 3;

/// What a migration is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Why {
    Draining,
    ZoneViolation,
    Imbalance,
}

impl Why {
    /// As the log and `balancerCollectionStatus` name it.
    pub fn text(self) -> &'static str {
        match self {
            Why::Draining => "draining",
            Why::ZoneViolation => "zoneViolation",
            Why::Imbalance => "chunksImbalance",
        }
    }
}

/// Within `[min, max)`, a chunk, the donor takes as much as a migration may move, from the lower end.
#[derive(Clone, PartialEq, Debug)]
pub struct Migration {
    pub ns: String,
    pub from: ShardId,
    pub to: ShardId,
    pub min: DocBuf,
    pub max: DocBuf,
    pub why: Why,
    /// Whether it is moved also where it turns out to be too large.
    pub force: ForceJumbo,
}

/// What is moved of the collection now. The shards of each migration have something to do from here on.
pub fn migrations(collection: &Collection<'_>, shards: &mut Shards) -> Vec<Migration> {
    let survey = Survey::of(collection);
    let mut round = Round { collection, shards, survey, found: Vec::new() };
    round.drain();
    round.bring_home();
    round.even_out();
    round.found
}

struct Round<'r, 'c> {
    collection: &'r Collection<'c>,
    shards: &'r mut Shards,
    survey: Survey<'c>,
    found: Vec<Migration>,
}

impl<'c> Round<'_, 'c> {
    /// Everything leaves the shards that are to be removed.
    fn drain(&mut self) {
        let draining = |s: &&Shard| s.draining || broken(Mutant::NobodyStays);
        let from: Vec<_> = self.shards.iter().filter(draining).map(|s| s.id.clone()).collect();
        for from in from {
            let offers: Vec<_> = self.survey.of_shard(&from).collect();
            self.move_one_of(&from, offers, Why::Draining);
        }
    }
    /// What lies in a zone goes to shards of that zone.
    fn bring_home(&mut self) {
        let from: Vec<_> = self.shards.iter().filter(|s| !s.draining).cloned().collect();
        for from in from {
            let offers: Vec<_> =
                self.survey.of_shard(&from.id).filter(|(zone, _)| !from.may_have(*zone)).collect();
            self.move_one_of(&from.id, offers, Why::ZoneViolation);
        }
    }
    /// The first for which there is a recipient.
    fn move_one_of(&mut self, from: &ShardId, offers: Vec<(Option<&'c str>, ChunkRef<'c>)>, why: Why) {
        if !self.is_free(from) {
            return;
        }
        for (zone, chunk) in offers {
            if let Some(to) = self.least_loaded(zone, from) {
                return self.add(from, &to, chunk, why);
            }
        }
    }

    /// In each zone, and outside of all, from the shard that has most to the one that has least.
    fn even_out(&mut self) {
        let zones: BTreeSet<&str> = self.collection.zones.iter().map(|range| &*range.zone).collect();
        for zone in std::iter::once(None).chain(zones.into_iter().map(Some)) {
            let ideal = self.ideal(zone);
            // Each takes two shards.
            for _ in 0..self.shards.iter().count() {
                if !self.even_out_one(zone, ideal) {
                    break;
                }
            }
        }
    }
    /// What each of the shards would have that may have what lies there.
    fn ideal(&self, zone: Option<&str>) -> u64 {
        let bytes = self.shards.iter().filter(|s| !s.draining && s.may_have(zone));
        let (mut sum, mut count) = (0u128, 0u128);
        for shard in bytes {
            sum += u128::from(self.collection.bytes_of(&shard.id));
            count += 1;
        }
        sum.checked_div(count).unwrap_or_default().try_into().unwrap_or(u64::MAX)
    }
    fn even_out_one(&mut self, zone: Option<&str>, ideal: u64) -> bool {
        let gives = |s: &&Shard| !s.draining && s.may_have(zone) && self.is_free(&s.id);
        let offer = |s: &Shard| {
            Some((self.collection.bytes_of(&s.id), s.id.clone(), self.survey.in_zone(&s.id, zone)?))
        };
        let most =
            self.shards.iter().filter(gives).filter_map(offer).reduce(|a, b| if b.0 > a.0 { b } else { a });
        let Some((has, from, chunk)) = most else { return false };
        let Some(to) = self.least_loaded(zone, &from) else { return false };
        let lacks = self.collection.bytes_of(&to);
        let difference = if broken(Mutant::BackAndForth) { 0 } else { DIFFERENCE };
        let enough = self.collection.max_chunk_bytes.saturating_mul(difference);
        let is_apart = has > ideal && lacks < ideal && has - lacks >= enough;
        if is_apart {
            self.add(&from, &to, chunk, Why::Imbalance);
        }
        is_apart
    }

    fn is_free(&self, id: &ShardId) -> bool {
        self.shards.is_free(id) || broken(Mutant::ManyAtOnce)
    }
    /// Of those that may take what lies there.
    fn least_loaded(&self, zone: Option<&str>, from: &ShardId) -> Option<ShardId> {
        let takes = |s: &&Shard| {
            s.id != *from
                && (!s.draining || broken(Mutant::DrainingTakes))
                && (s.may_have(zone) || broken(Mutant::AnybodyTakes))
                && self.is_free(&s.id)
        };
        self.shards.iter().filter(takes).min_by_key(|s| self.collection.bytes_of(&s.id)).map(|s| s.id.clone())
    }
    fn add(&mut self, from: &ShardId, to: &ShardId, chunk: ChunkRef<'_>, why: Why) {
        self.shards.occupy(from);
        self.shards.occupy(to);
        let force = self.force(why);
        self.found.push(Migration {
            ns: self.collection.ns.to_owned(),
            from: from.clone(),
            to: to.clone(),
            min: chunk.min().to_buf(),
            max: chunk.max(),
            why,
            force,
        });
    }
    /// Nothing stays on a shard that is to be removed; elsewhere it is as the settings have it.
    fn force(&self, why: Why) -> ForceJumbo {
        let forced = why == Why::Draining || self.collection.forces_jumbo || broken(Mutant::AllIsForced);
        if forced { ForceJumbo::Balancer } else { ForceJumbo::No }
    }
}
