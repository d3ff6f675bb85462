//! Which ranges of one collection are moved in this round, and where to (SH-BAL-3, SH-BAL-4).

use crate::mutants::{Mutant, broken};
use crate::recipients::Recipients;
use crate::state::{Collection, Shard, Shards};
use crate::survey::Survey;
use pando_bson::DocBuf;
use pando_routing::{ChunkRef, ForceJumbo, ShardId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// For the sake of balance a range is moved where the one has more than the other by so many times of what one migration may move.
const DIFFERENCE: u64 = 3;

/// What a migration is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Why {
    Draining,
    ZoneViolation,
    Imbalance,
    /// It is small, and goes where its neighbour is.
    Defragmentation,
}

impl Why {
    /// As the log and `balancerCollectionStatus` name it.
    pub fn text(self) -> &'static str {
        match self {
            Why::Draining => "draining",
            Why::ZoneViolation => "zoneViolation",
            Why::Imbalance => "chunksImbalance",
            Why::Defragmentation => "defragmentation",
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
    let all: Vec<Shard> = shards.iter().cloned().collect();
    let recipients = Recipients::new(collection, &all);
    let mut round = Round { collection, shards, survey, recipients, found: Vec::new() };
    round.drain(&all);
    round.bring_home(&all);
    if collection.evens_out {
        round.even_out(&all);
    }
    round.found
}

struct Round<'r, 'c> {
    collection: &'r Collection<'c>,
    shards: &'r mut Shards,
    survey: Survey<'c>,
    recipients: Recipients<'r, 'c>,
    found: Vec<Migration>,
}

impl<'c> Round<'_, 'c> {
    /// Everything leaves the shards that are to be removed.
    fn drain(&mut self, all: &[Shard]) {
        for from in all.iter().filter(|s| s.draining || broken(Mutant::NobodyStays)) {
            let offers: Vec<_> = self.survey.of_shard(&from.id).collect();
            self.move_one_of(&from.id, offers, Why::Draining);
        }
    }
    /// What lies in a zone goes to shards of that zone.
    fn bring_home(&mut self, all: &[Shard]) {
        for from in all.iter().filter(|s| !s.draining) {
            let offers: Vec<_> =
                self.survey.of_shard(&from.id).filter(|(zone, _)| !from.may_have(*zone)).collect();
            self.move_one_of(&from.id, offers, Why::ZoneViolation);
        }
    }
    /// The first for which there is a recipient.
    fn move_one_of(&mut self, from: &ShardId, offers: Vec<(Option<&'c str>, ChunkRef<'c>)>, why: Why) {
        if !self.shards.may_act(from) {
            return;
        }
        for (zone, chunk) in offers {
            if let Some(to) = self.recipients.least_loaded(zone, from, self.shards) {
                return self.add(from, &to, chunk, why);
            }
        }
    }

    /// In each zone, and outside of all, from the shard that has most to the one that has least.
    fn even_out(&mut self, all: &[Shard]) {
        let staying = || all.iter().filter(|s| !s.draining);
        self.even_out_among(None, staying().collect());
        let mut of_zones: BTreeMap<&'c str, Vec<&Shard>> =
            self.collection.zones.iter().map(|range| (&*range.zone, Vec::new())).collect();
        for shard in staying() {
            for zone in &shard.zones {
                if let Some(of_zone) = of_zones.get_mut(&**zone) {
                    of_zone.push(shard);
                }
            }
        }
        for (zone, shards) in of_zones {
            self.even_out_among(Some(zone), shards);
        }
    }
    /// Each migration takes two of these shards, which are all that may have what lies there.
    fn even_out_among(&mut self, zone: Option<&'c str>, mut shards: Vec<&Shard>) {
        let bytes_of = |s: &Shard| self.collection.bytes_of(&s.id);
        let sum: u128 = shards.iter().map(|s| u128::from(bytes_of(s))).sum();
        let ideal = sum.checked_div(shards.len() as u128).unwrap_or_default();
        let ideal = u64::try_from(ideal).unwrap_or(u64::MAX);
        shards.sort_by_cached_key(|s| Reverse(bytes_of(s)));
        for from in shards {
            // Who has just been given something gives nothing.
            let Some(chunk) = self.survey.in_zone(&from.id, zone).filter(|_| self.shards.may_act(&from.id))
            else {
                continue;
            };
            let Some(to) = self.recipients.least_loaded(zone, &from.id, self.shards) else { return };
            let (has, lacks) = (self.collection.bytes_of(&from.id), self.collection.bytes_of(&to));
            let difference = if broken(Mutant::BackAndForth) { 0 } else { DIFFERENCE };
            let enough = self.collection.max_chunk_bytes.saturating_mul(difference);
            let is_apart = has > ideal && lacks < ideal && has - lacks >= enough;
            if !is_apart {
                return;
            }
            self.add(&from.id, &to, chunk, Why::Imbalance);
        }
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
