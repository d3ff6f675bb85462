//! Which chunks a collection begins with (SH-KEY-3).

use crate::chunk::{Chunk, Owner};
use crate::presplit;
use crate::shard_id::ShardId;
use crate::shard_key::ShardKey;
use crate::split;
use crate::version::Placement;
use crate::zones::Zones;
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_bson::{DocBuf, ObjectId, RawDoc};
use std::collections::BTreeMap;

/// What the choice depends on.
pub struct Beginning<'a> {
    pub key: &'a ShardKey,
    /// In the order in which they are dealt to.
    pub shards: &'a [ShardId],
    pub primary: &'a ShardId,
    /// Documents may be spread before there are any.
    pub is_empty: bool,
    /// How many chunks a hashed collection is cut into; two for each shard where nobody says.
    pub chunks: Option<usize>,
    /// Each zone is cut at hashes (`presplitHashedZones`).
    pub presplit: bool,
    pub zones: &'a Zones,
    /// Shards of each zone.
    pub of_zone: &'a BTreeMap<String, Vec<ShardId>>,
    /// From when on they are owned.
    pub at: Timestamp,
}

impl Beginning<'_> {
    /// Whether it can begin so.
    ///
    /// # Errors
    /// 72 where chunks are counted of a key without a hash to cut at, or of documents that are there; those of [`presplit::check`].
    pub fn check(&self) -> Result<()> {
        if self.chunks.is_some() && !(self.key.is_hashed() && self.is_empty) {
            let text = "numInitialChunks is only supported when the collection is empty and has a hashed field in the \
                        shard key pattern";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        if self.chunks.is_some() && !self.key.begins_hashed() && !self.presplit {
            let text = "When the prefix of the hashed shard key is a range field, 'numInitialChunks' can only be used when \
                        the 'presplitHashedZones' is true";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        if self.presplit { presplit::check(self) } else { Ok(()) }
    }
    /// The chunks, in the order of their keys, from `1|0` on.
    pub fn chunks(&self) -> Result<Vec<Chunk>> {
        self.check()?;
        if self.presplit {
            return self.presplit();
        }
        let may_spread = self.is_empty && !self.shards.is_empty();
        if may_spread && !self.zones.is_empty() {
            return self.by_zones();
        }
        if !may_spread || !self.key.begins_hashed() {
            return self.deal(&[], |_, _, _| Ok(self.primary.clone()));
        }
        let n = self.chunks.unwrap_or(2 * self.shards.len()).clamp(1, limits::INITIAL_CHUNKS_MAX);
        let points = split::hashed_points(self.key, n);
        // Neighbours together, as many for each as there are.
        let n = points.len() + 1;
        self.deal(&points, |i, _, _| Ok(self.shards[i * self.shards.len() / n].clone()))
    }

    /// One for each zone on a shard of it, and those between on any.
    fn by_zones(&self) -> Result<Vec<Chunk>> {
        let (least, greatest) = (self.key.least(), self.key.greatest());
        let (start, end) = (self.key.key_of_bound(&least)?, self.key.key_of_bound(&greatest)?);
        let points: Vec<DocBuf> =
            self.zones.bounds_within(&start, &end).into_iter().map(RawDoc::to_buf).collect();
        let mut turns: BTreeMap<Option<String>, usize> = BTreeMap::new();
        self.deal(&points, |_, min, max| {
            let (start, end) = (self.key.key_of_bound(min)?, self.key.key_of_bound(max)?);
            let zone = self.zones.of(&start, &end);
            let shards = match zone {
                None => self.shards,
                Some(zone) => self.of_zone.get(zone).map(Vec::as_slice).unwrap_or_default(),
            };
            let turn = turns.entry(zone.map(str::to_owned)).or_default();
            *turn += 1;
            let shard = shards.get((*turn - 1) % shards.len().max(1)).cloned();
            shard.ok_or_else(|| {
                let text = format!("no shard belongs to zone {}", zone.unwrap_or_default());
                Error::new(ErrorCode::CannotCreateCollection, text)
            })
        })
    }

    fn presplit(&self) -> Result<Vec<Chunk>> {
        let pieces = presplit::pieces(self)?;
        let points: Vec<DocBuf> = pieces.iter().skip(1).map(|(min, _)| min.clone()).collect();
        let mut of_nobody = self.shards.iter().cycle();
        self.deal(&points, |i, _, _| {
            let owner = pieces.get(i).and_then(|(_, owner)| owner.as_ref()).or_else(|| of_nobody.next());
            owner.cloned().ok_or_else(|| Error::internal("a piece of nobody"))
        })
    }

    fn deal(
        &self,
        points: &[DocBuf],
        mut owner: impl FnMut(usize, &RawDoc, &RawDoc) -> Result<ShardId>,
    ) -> Result<Vec<Chunk>> {
        let (least, greatest) = (self.key.least(), self.key.greatest());
        let mut placement = Placement::FIRST;
        let mut out = Vec::with_capacity(points.len() + 1);
        let mut min = &least;
        for (i, max) in points.iter().chain([&greatest]).enumerate() {
            let shard = owner(i, min, max)?;
            let history = vec![Owner { valid_after: self.at, shard: shard.clone() }];
            let (id, jumbo) = (ObjectId([0; 12]), false);
            out.push(Chunk { id, min: min.clone(), max: max.clone(), shard, placement, history, jumbo });
            (placement, min) = (placement.after_change()?, max);
        }
        Ok(out)
    }
}
