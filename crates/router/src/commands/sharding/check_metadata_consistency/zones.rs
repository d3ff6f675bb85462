//! Whether the zones of a sharded collection are ranges of its key that have nothing in common.

use super::ranges::{Meets, Ranges};
use super::registered::Registered;
use pando_bson::{DocBuf, DocBuilder, RawDoc};

/// `tags`: all documents of `config.tags` with the collection's name.
pub(super) fn check(coll: &Registered, tags: &[DocBuf]) -> Vec<DocBuf> {
    let ranges = Ranges::of(&coll.key, tags);
    let corrupted = |zone: &&RawDoc| {
        let text = "A bound of a zone does not fit the shard key";
        coll.wrong("CorruptedZoneShardKey", text, |d| {
            d.raw_doc("zone", &shown(zone)).raw_doc("shardKeyPattern", coll.key.pattern());
        })
    };
    let mut found: Vec<DocBuf> = ranges.corrupted.iter().map(corrupted).collect();
    // Keys between zones are in none, and may be anywhere.
    ranges.walk(|meets, a, b| {
        if meets == Meets::Overlap {
            let text = "Two zones of a collection hold the same keys";
            found.push(coll.wrong("ZonesRangeOverlap", text, |d| {
                d.raw_doc("zoneA", &shown(a.doc)).raw_doc("zoneB", &shown(b.doc));
            }));
        }
    });
    found
}

/// Without its `_id`, which repeats the rest.
fn shown(zone: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    ["ns", "tag", "min", "max"].iter().filter_map(|name| zone.elem(*name)).for_each(|e| _ = b.elem(e));
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{doc, fields, registered, told};
    use super::*;

    fn zone(tag: &str, min: &str, max: &str) -> DocBuf {
        doc(&format!(
            r#"{{"_id": {{"ns": "db.c.d", "min": {min}}}, "ns": "db.c.d", "min": {min}, "max": {max}, "tag": "{tag}"}}"#
        ))
    }

    #[test]
    fn zones_with_keys_of_none_between_them_are_sound() {
        let zones =
            [zone("b", r#"{"k": 9}"#, r#"{"k": {"$maxKey": 1}}"#), zone("a", r#"{"k": 0}"#, r#"{"k": 5}"#)];
        assert_eq!(told(&check(&registered(r#"{"k": 1}"#), &zones)), [""; 0]);
        assert_eq!(told(&check(&registered(r#"{"k": 1}"#), &[])), [""; 0]);
    }

    #[test]
    fn zones_with_the_same_keys_are_told_as_they_are_shown() {
        let zones = [zone("b", r#"{"k": 3}"#, r#"{"k": 9}"#), zone("a", r#"{"k": 0}"#, r#"{"k": 5}"#)];
        let found = check(&registered(r#"{"k": 1}"#), &zones);
        let (a, b) = ("tag: \"a\", min: { k: 0 }, max: { k: 5 }", "tag: \"b\", min: { k: 3 }, max: { k: 9 }");
        let of_two = |z: &str| format!("{{ ns: \"db.c.d\", {z} }}");
        assert_eq!(
            told(&found),
            [format!("ZonesRangeOverlap {{ zoneA: {}, zoneB: {} }}", of_two(a), of_two(b))]
        );
        assert_eq!(fields(&found[0]), ["namespace", "collectionUUID", "zoneA", "zoneB"]);
    }

    #[test]
    fn a_zone_with_a_bound_that_is_none_of_the_key_is_told() {
        let zones = [zone("a", r#"{"k": 0}"#, r#"{"y": 5}"#), zone("b", r#"{"k": 3}"#, r#"{"k": 9}"#)];
        let found = check(&registered(r#"{"k": 1}"#), &zones);
        assert_eq!(found.len(), 1);
        let told_of = "CorruptedZoneShardKey { zone: { ns: \"db.c.d\", tag: \"a\", min: { k: 0 }, max: { y: 5 } }, shardKeyPattern: { k: 1 } }";
        assert_eq!(told(&found), [told_of]);
        assert_eq!(fields(&found[0]), ["namespace", "collectionUUID", "zone", "shardKeyPattern"]);
    }
}
