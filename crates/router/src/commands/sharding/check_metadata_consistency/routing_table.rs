//! Whether the chunks of a sharded collection are its whole range of keys, and each key is in one of them.

use super::ranges::{Meets, Range, Ranges, bound};
use super::registered::Registered;
use super::wrong::text;
use pando_bson::DocBuf;
use pando_routing::ShardId;
use std::collections::BTreeSet;

/// `chunks`: all documents of `config.chunks` with the collection's UUID, of one read.
pub(super) fn check(coll: &Registered, chunks: &[DocBuf]) -> Vec<DocBuf> {
    if chunks.is_empty() {
        let text = "A sharded collection has no chunks";
        return vec![coll.wrong("MissingRoutingTable", text, |_| {})];
    }
    let ranges = Ranges::of(&coll.key, chunks);
    let corrupted = |chunk: &&pando_bson::RawDoc| {
        let text = "A bound of a chunk does not fit the shard key";
        coll.wrong("CorruptedChunkShardKey", text, |d| {
            d.raw_doc("chunk", chunk).raw_doc("shardKeyPattern", coll.key.pattern());
        })
    };
    let mut found: Vec<DocBuf> = ranges.corrupted.iter().map(corrupted).collect();
    let of_two = |kind: &str, text: &str, a: &Range<'_>, b: &Range<'_>| {
        coll.wrong(kind, text, |d| _ = d.raw_doc("chunkA", a.doc).raw_doc("chunkB", b.doc))
    };
    let last = ranges.walk(|meets, a, b| match meets {
        Meets::Overlap => {
            let text = "Two chunks of a collection hold the same keys";
            found.push(of_two("RoutingTableRangeOverlap", text, a, b));
        }
        Meets::Gap if ranges.may_fill(&a.end, &b.start) => {}
        Meets::Gap => {
            let text = "Keys between two chunks of a collection are in none";
            found.push(of_two("RoutingTableRangeGap", text, a, b));
        }
    });
    if let (Some(first), Some(last)) = (ranges.sorted.first(), last) {
        found.extend(check_ends(coll, &ranges, first, last));
    }
    found
}

/// The first chunk begins with the least key that there is, and the last one ends with the greatest.
fn check_ends(coll: &Registered, ranges: &Ranges<'_>, first: &Range<'_>, last: &Range<'_>) -> Vec<DocBuf> {
    let (least, greatest) = (coll.key.least(), coll.key.greatest());
    let mut found = Vec::new();
    let bytes = |end: &DocBuf| coll.key.key_of_bound(end).unwrap_or_default();
    let is_missing = |from: &[u8], to: &[u8]| from != to && !ranges.may_fill(from, to);
    if is_missing(&bytes(&least), &first.start) {
        let text = "The first chunk of a collection does not begin with the least key";
        found.push(coll.wrong("RoutingTableMissingMinKey", text, |d| {
            d.raw_doc("minKeyObj", bound(first.doc, "min")).raw_doc("globalMin", &least);
        }));
    }
    if is_missing(&last.end, &bytes(&greatest)) {
        let text = "The last chunk of a collection does not end with the greatest key";
        found.push(coll.wrong("RoutingTableMissingMaxKey", text, |d| {
            d.raw_doc("maxKeyObj", bound(last.doc, "max")).raw_doc("globalMax", &greatest);
        }));
    }
    found
}

/// The shards that own chunks.
pub(super) fn owners(chunks: &[DocBuf]) -> BTreeSet<ShardId> {
    let names: BTreeSet<&str> = chunks.iter().map(|chunk| text(chunk, "shard")).collect();
    names.into_iter().map(ShardId::new).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{doc, fields, registered, told};
    use super::*;

    const LEAST: &str = r#"{"$minKey": 1}"#;
    const GREATEST: &str = r#"{"$maxKey": 1}"#;

    /// A chunk of `{k: 1}`.
    fn chunk(min: &str, max: &str) -> DocBuf {
        doc(&format!(r#"{{"min": {{"k": {min}}}, "max": {{"k": {max}}}, "shard": "a"}}"#))
    }
    fn check_k(chunks: &[DocBuf]) -> Vec<String> {
        told(&check(&registered(r#"{"k": 1}"#), chunks))
    }

    #[test]
    fn chunks_in_any_order_that_are_all_keys_once_are_sound() {
        let chunks = [chunk("7", GREATEST), chunk(LEAST, "0"), chunk("0", "7.0")];
        assert_eq!(check_k(&chunks), [""; 0]);
        assert_eq!(check_k(&[chunk(LEAST, GREATEST)]), [""; 0]);
    }

    #[test]
    fn a_collection_without_chunks_has_no_routing_table() {
        let found = check(&registered(r#"{"k": 1}"#), &[]);
        assert_eq!(told(&found), ["MissingRoutingTable {}"]);
        assert_eq!(fields(&found[0]), ["namespace", "collectionUUID"]);
    }

    #[test]
    fn keys_in_no_chunk_are_told_with_their_neighbours() {
        let (a, b, c) = (chunk(LEAST, "0"), chunk("3", "7"), chunk("7", GREATEST));
        let found = check(&registered(r#"{"k": 1}"#), &[c, b.clone(), a.clone()]);
        assert_eq!(told(&found), [format!("RoutingTableRangeGap {{ chunkA: {a}, chunkB: {b} }}")]);
        assert_eq!(fields(&found[0]), ["namespace", "collectionUUID", "chunkA", "chunkB"]);
    }

    #[test]
    fn keys_in_two_chunks_are_told_with_the_chunk_that_reaches_furthest() {
        // The second lies within the first, and so does half of the third.
        let (a, b) = (chunk(LEAST, "9"), chunk("1", "2"));
        let (c, d) = (chunk("5", "12"), chunk("12", GREATEST));
        let of_two =
            |x: &DocBuf, y: &DocBuf| format!("RoutingTableRangeOverlap {{ chunkA: {x}, chunkB: {y} }}");
        assert_eq!(check_k(&[d, b.clone(), c.clone(), a.clone()]), [of_two(&a, &b), of_two(&a, &c)]);
        // Twice the same, and a chunk of nothing.
        let (a, b) = (chunk(LEAST, "9"), chunk("9", GREATEST));
        assert_eq!(check_k(&[a.clone(), b.clone(), b.clone()]), [of_two(&b, &b)]);
        let nothing = chunk("9", "9");
        assert_eq!(check_k(&[a, b.clone(), nothing.clone()]), [of_two(&nothing, &b)]);
    }

    #[test]
    fn both_ends_of_all_keys_are_in_a_chunk() {
        assert_eq!(
            check_k(&[chunk("0", "5")]),
            [
                "RoutingTableMissingMinKey { minKeyObj: { k: 0 }, globalMin: { k: MinKey } }",
                "RoutingTableMissingMaxKey { maxKeyObj: { k: 5 }, globalMax: { k: MaxKey } }",
            ]
        );
        // The one that begins last is not the one that ends last.
        let (a, b) = (chunk(LEAST, GREATEST), chunk("1", "2"));
        assert_eq!(check_k(&[a, b]).len(), 1);
    }

    #[test]
    fn a_bound_that_is_none_of_the_key_is_told_alone() {
        let good = chunk(LEAST, "0");
        for bad in [
            r#"{"min": {"y": 0}, "max": {"k": {"$maxKey": 1}}, "shard": "a"}"#,
            r#"{"min": {"k": 0}, "max": {"k": {"$maxKey": 1}, "l": 1}, "shard": "a"}"#,
            r#"{"min": {"k": 0}, "shard": "a"}"#,
        ] {
            let bad = doc(bad);
            let found = check(&registered(r#"{"k": 1}"#), &[good.clone(), bad.clone()]);
            let told_of = format!("CorruptedChunkShardKey {{ chunk: {bad}, shardKeyPattern: {{ k: 1 }} }}");
            assert_eq!(told(&found), [told_of]);
            assert_eq!(fields(&found[0]), ["namespace", "collectionUUID", "chunk", "shardKeyPattern"]);
        }
        // What is missing elsewhere is told all the same.
        let bad = doc(r#"{"min": {"k": 5}, "max": {"y": 1}, "shard": "a"}"#);
        assert_eq!(check_k(&[good, bad, chunk("7", GREATEST)]).len(), 2);
        let hashed = doc(r#"{"min": {"k": "x"}, "max": {"k": {"$maxKey": 1}}}"#);
        assert!(told(&check(&registered(r#"{"k": "hashed"}"#), &[hashed]))[0].starts_with("CorruptedChunk"));
    }

    #[test]
    fn owners_are_told_once() {
        let of_b = doc(r#"{"shard": "b"}"#);
        let owners = owners(&[of_b.clone(), chunk("0", "1"), of_b]);
        assert_eq!(owners.iter().map(ShardId::as_str).collect::<Vec<_>>(), ["a", "b"]);
    }
}
