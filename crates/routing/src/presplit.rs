//! `presplitHashedZones`: each zone of an empty collection is cut at values of the hashed field, and its pieces are dealt to the shards of
//! the zone (SH-KEY-3).
//!
//! ```text
//!   key {x: 1, h: "hashed"}, zone [{x: "a", h: MinKey}, {x: "b", h: MinKey}) of two shards, two pieces for each
//!     ─► {x: "a", h: MinKey} ─ {x: "a", h: -2^62} ─ {x: "a", h: 0} ─ {x: "a", h: 2^62} ─ {x: "b", h: MinKey}
//! ```

use crate::initial::Beginning;
use crate::shard_id::ShardId;
use crate::split;
use crate::zones::ZoneRange;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::compare::cmp_docs;
use pando_bson::{DocBuf, DocBuilder, ElementType, RawDoc, Value};
use std::collections::BTreeMap;

/// Where chunks begin, and whose they are; nobody's are those between zones.
pub(crate) type Pieces = Vec<(DocBuf, Option<ShardId>)>;

fn not_so(code: i32, text: String) -> Error {
    let text =
        format!("One or more zones are not defined in a manner that supports hashed pre-splitting. {text}");
    Error::location(code, text)
}

/// The values of a bound before the hashed field, and from it on.
fn parts(b: &Beginning<'_>, bound: &RawDoc) -> (DocBuf, DocBuf) {
    let at = b.key.fields().iter().position(|f| f.hashed).unwrap_or(0);
    let (mut before, mut behind) = (DocBuilder::new(), DocBuilder::new());
    for (i, e) in bound.iter().enumerate() {
        if i < at {
            before.elem(e)
        } else {
            behind.elem(e)
        };
    }
    (before.finish(), behind.finish())
}

/// Whether the zones can be cut so.
///
/// # Errors
/// 31387 where nothing can be: documents, no zones, no hashed field. 31412 where a key that begins hashed has more than the one zone of
/// everything. 31390, 31391 for a zone that is within one value of the fields before the hashed one, or begins at some hash.
pub(crate) fn check(b: &Beginning<'_>) -> Result<()> {
    if !b.is_empty || b.zones.is_empty() || !b.key.is_hashed() {
        let text = "'presplitHashedZones' is only supported when the collection is empty, zones are set up and shard key \
                    pattern has a hashed field";
        return Err(Error::location(31387, text));
    }
    let is_all = |z: &ZoneRange| z.min == b.key.least() && z.max == b.key.greatest();
    if b.key.begins_hashed() {
        return match b.zones.iter().all(is_all) {
            true => Ok(()),
            false => {
                let text =
                    "For hashed prefix shard keys, expected a single zone which ranges from MinKey to MaxKey";
                Err(Error::location(31412, text))
            }
        };
    }
    for zone in b.zones.iter() {
        let ((min, hashed), (max, _)) = (parts(b, &zone.min), parts(b, &zone.max));
        if cmp_docs(&min, &max).is_eq() {
            let text = format!(
                "A zone has to span several values of the fields before the hashed one: {}",
                zone.to_doc()
            );
            return Err(not_so(31390, text));
        }
        if hashed.iter().any(|e| e.value().element_type() != ElementType::MinKey) {
            let text = format!(
                "The hashed field value for lower bound must be MinKey. Failed at zone: {}",
                zone.to_doc()
            );
            return Err(not_so(31391, text));
        }
    }
    Ok(())
}

/// In the order of their keys, from the least one on.
pub(crate) fn pieces(b: &Beginning<'_>) -> Result<Pieces> {
    let mut zones_of: BTreeMap<&ShardId, usize> = BTreeMap::new();
    let of = |zone: &ZoneRange| b.of_zone.get(&zone.zone).map(Vec::as_slice).unwrap_or_default();
    for shard in b.zones.iter().flat_map(of) {
        *zones_of.entry(shard).or_default() += 1;
    }
    let wanted = b.chunks.unwrap_or(2 * zones_of.len());
    let for_each = wanted.div_ceil(zones_of.len().max(1));
    let mut out = Pieces::new();
    let mut end = b.key.least();
    for zone in b.zones.iter() {
        if of(zone).is_empty() {
            let text = format!("no shard belongs to zone {}", zone.zone);
            return Err(Error::new(ErrorCode::CannotCreateCollection, text));
        }
        if zone.min != end {
            out.push((end, None));
        }
        let share = |shard: &ShardId| (for_each / zones_of.get(shard).copied().unwrap_or(1)).max(1);
        let owners = of(zone).iter().flat_map(|shard| std::iter::repeat_n(shard, share(shard)));
        let owners: Vec<&ShardId> =
            owners.take(limits::INITIAL_CHUNKS_MAX * b.shards.len().max(1) + 1).collect();
        if out.len() + owners.len() > limits::INITIAL_CHUNKS_MAX * b.shards.len().max(1) {
            let text = format!("more than {} chunks for each shard", limits::INITIAL_CHUNKS_MAX);
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        let hashes = split::hashed_values(owners.len());
        let mins =
            [zone.min.clone()].into_iter().chain(hashes.into_iter().map(|at| within(b, &zone.min, at)));
        out.extend(mins.zip(owners.into_iter().cloned().map(Some)));
        end = zone.max.clone();
    }
    if end != b.key.greatest() {
        out.push((end, None));
    }
    Ok(out)
}

/// A bound at a hash, with a zone's least values of the fields before it.
fn within(b: &Beginning<'_>, min: &RawDoc, hash: i64) -> DocBuf {
    let mut d = DocBuilder::new();
    let mut is_before = true;
    for (f, e) in b.key.fields().iter().zip(min.iter()) {
        match (is_before, f.hashed) {
            (true, true) => _ = d.i64(&f.path, hash),
            (true, false) => _ = d.elem(e),
            (false, _) => _ = d.value(&*f.path, Value::MinKey),
        }
        is_before &= !f.hashed;
    }
    d.finish()
}
