//! What those hear who look on: change streams of definitions, and `config.changelog` of ranges that move (SH-CAT-8).

use super::*;

/// The kinds of events of a stream over the database, until there is one of `last`.
async fn kinds(c: &mut Client, cursor: Bson, last: &str) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..60 {
        let mut more = doc! { "getMore": cursor.clone(), "collection": "$cmd.aggregate", "maxTimeMS": 500 };
        more.push("$db", "test");
        let reply = c.ok(more).await;
        let batch = reply.get("cursor").and_then(|cursor| cursor.as_doc()?.get("nextBatch")?.as_array());
        let kind = |e: &Bson| e.as_doc()?.get("operationType")?.as_str().map(str::to_owned);
        found.extend(batch.unwrap_or_default().iter().filter_map(kind));
        if found.iter().any(|kind| kind == last) {
            break;
        }
    }
    found
}

#[test]
fn streams_hear_of_definitions_of_sharded_collections_once() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        cluster.shard(0).await.ok(move_range("c", "s1", 50, Bson::MaxKey)).await;
        let mut open = doc! { "aggregate": 1, "cursor": {} };
        open.push("pipeline", vec![Bson::from(doc! { "$changeStream": { "showExpandedEvents": true } })]);
        let reply = c.ok(open).await;
        let cursor = reply.get("cursor").and_then(|cursor| cursor.as_doc()?.get("id")).cloned().unwrap();
        c.ok(doc! { "renameCollection": "test.c", "to": "test.d", "$db": "admin" }).await;
        cluster.shard_collection("test.e", doc! { "k": "hashed" }).await;
        c.ok(doc! { "dropDatabase": 1, "$db": "test" }).await;
        let found = kinds(&mut c, cursor, "invalidate").await;
        for (kind, n) in [("rename", 1), ("create", 1), ("drop", 2), ("dropDatabase", 1), ("invalidate", 1)] {
            assert_eq!(found.iter().filter(|found| *found == kind).count(), n, "{kind} of {found:?}");
        }
        cluster.shut_down().await;
    });
}

/// A database without any collection has gone as well.
#[test]
fn streams_hear_that_an_empty_database_is_dropped() {
    run(async {
        let (cluster, mut c) = cluster("c", 1).await;
        c.ok(doc! { "drop": "c" }).await;
        let mut open = doc! { "aggregate": 1, "cursor": {} };
        open.push("pipeline", vec![Bson::from(doc! { "$changeStream": {} })]);
        let reply = c.ok(open).await;
        let cursor = reply.get("cursor").and_then(|cursor| cursor.as_doc()?.get("id")).cloned().unwrap();
        c.ok(doc! { "dropDatabase": 1, "$db": "test" }).await;
        assert_eq!(kinds(&mut c, cursor, "invalidate").await, ["dropDatabase", "invalidate"]);
        cluster.shut_down().await;
    });
}

/// `what`, and its note.
async fn changes(c: &mut Client) -> Vec<(String, String)> {
    let mut find = doc! { "find": "changelog", "$db": "config" };
    find.push("filter", doc! { "ns": "test.c" });
    let of = |d: &Document| {
        let details = d.get("details").and_then(Bson::as_doc).cloned().unwrap_or_default();
        let text = |d: &Document, name: &str| d.get(name).and_then(Bson::as_str).unwrap_or("").to_owned();
        (text(d, "what"), text(&details, "note"))
    };
    let all: Vec<_> = c.all(find).await.iter().map(of).collect();
    all.into_iter().filter(|(what, _)| what.starts_with("moveChunk.")).collect()
}
async fn until_told(c: &mut Client, wanted: &[(&str, &str)]) {
    let mut found = Vec::new();
    for _ in 0..200 {
        found = changes(c).await;
        if wanted.iter().all(|(what, note)| found.iter().any(|(w, n)| w == what && n == note)) {
            return;
        }
        pause(50).await;
    }
    panic!("{found:?} are not {wanted:?}");
}

#[test]
fn the_changelog_hears_of_a_move_from_both_shards() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        let mut shard = cluster.shard(0).await;
        shard.ok(move_range("c", "s1", 50, Bson::MaxKey)).await;
        let all = [("start", ""), ("commit", ""), ("from", "success"), ("to", "success")];
        let all = all.map(|(what, note)| (format!("moveChunk.{what}"), note));
        until_told(&mut c, &all.each_ref().map(|(what, note)| (what.as_str(), *note))).await;
        assert_eq!(changes(&mut c).await.len(), 4, "each once");
        // No chunk of that shard.
        shard.err(move_range("c", "s1", 60, 70)).await;
        until_told(&mut c, &[("moveChunk.from", "aborted")]).await;
        cluster.shut_down().await;
    });
}

/// Another router has the range moved: what this one knows of the time is of before.
#[test]
fn a_moment_that_a_router_chose_is_chosen_anew_when_a_range_has_moved_since() {
    run(async {
        let cluster = Cluster::of(2, 2).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        insert(&mut c, "c", (0..100).map(|i| doc! { "_id": i, "k": i }.into()).collect()).await;
        let mut snapshot = doc! { "find": "c" };
        snapshot.push("readConcern", doc! { "level": "snapshot" });
        let mut other = cluster.router(1).await;
        // It hears of the shards' time.
        assert_eq!(other.all(doc! { "find": "c" }).await.len(), 100);
        for n in 0..2 {
            let mut shard = cluster.shard(n).await;
            shard.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 0, "$db": "admin" }).await;
        }
        for _ in 0..5 {
            for (from, to) in [(0, "s1"), (1, "s0")] {
                cluster.shard(from).await.ok(move_range("c", to, 20, 60)).await;
                assert_eq!(other.all(snapshot.clone()).await.len(), 100);
                let distinct = doc! { "distinct": "c", "key": "k", "readConcern": { "level": "snapshot" } };
                let reply = other.ok(distinct).await;
                assert_eq!(reply.get("values").and_then(Bson::as_array).map(<[Bson]>::len), Some(100));
            }
        }
        cluster.shut_down().await;
    });
}
