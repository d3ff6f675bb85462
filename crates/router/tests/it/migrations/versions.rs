//! What a move makes of the versions of chunks (SYS-227).

use super::*;

async fn chunks(c: &mut Client) -> Vec<Document> {
    c.all(doc! { "find": "chunks", "filter": {}, "sort": { "min": 1 }, "$db": "config" }).await
}
/// Shard, major and minor version.
fn of(chunk: &Document) -> (String, u32, u32) {
    let shard = chunk.get("shard").and_then(Bson::as_str).unwrap().to_owned();
    match chunk.get("lastmod") {
        Some(Bson::Timestamp(at)) => (shard, at.secs(), at.inc()),
        other => panic!("no version: {other:?}"),
    }
}

#[test]
fn the_shards_on_both_sides_of_a_move_have_a_new_version() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        c.admin(doc! { "balancerStop": 1 }).await;
        for middle in [25, 50, 75] {
            c.ok(doc! { "split": "test.c", "middle": { "k": middle }, "$db": "admin" }).await;
        }
        let before: Vec<_> = chunks(&mut c).await.iter().map(of).collect();
        let major = before.iter().map(|(_, major, _)| *major).max().unwrap();
        cluster.shard(0).await.ok(move_range("c", "s1", 50, 75)).await;
        let after: Vec<_> = chunks(&mut c).await.iter().map(of).collect();
        // What moved, and one that the donor has still: whoever has an older view of either side is corrected.
        assert_eq!(after[2], ("s1".to_owned(), major + 1, 0), "{before:?} {after:?}");
        let raised: Vec<_> =
            after.iter().filter(|(shard, at, _)| shard == "s0" && *at == major + 1).collect();
        assert_eq!(raised, [&("s0".to_owned(), major + 1, 1)], "{after:?}");
        let untouched = before.iter().filter(|chunk| after.contains(chunk)).count();
        assert_eq!(untouched, 2, "{before:?} {after:?}");
        // The last one of a donor leaves nothing that could be raised.
        for (min, max) in [(Bson::MinKey, 25.into()), (25.into(), 50.into()), (75.into(), Bson::MaxKey)] {
            cluster.shard(0).await.ok(move_range("c", "s1", min, max)).await;
        }
        let last: Vec<_> = chunks(&mut c).await.iter().map(of).collect();
        assert!(last.iter().all(|(shard, ..)| shard == "s1"), "{last:?}");
        let newest = last.iter().max_by_key(|(_, major, minor)| (*major, *minor)).unwrap();
        assert_eq!((newest.1, newest.2), (major + 4, 0), "{last:?}");
        cluster.shut_down().await;
    });
}
