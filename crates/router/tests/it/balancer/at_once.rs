//! What goes on at the same time: migrations of disjoint pairs of shards, the balancer's and somebody else's, splits and merges (SYS-240,
//! SYS-241, SYS-257).

use super::*;
use pando_testserver::spawn;

/// A recipient still has to delete what it had of the range before, and waits for that first.
const DELETED_AFTER_SECS: i32 = 6;
const SMALL: i64 = 200;

async fn fill_with_small(c: &mut Client, coll: &str, n: i64) {
    let mut insert = doc! { "insert": coll };
    insert.push("documents", (0..n).map(|k| doc! { "_id": k, "k": k }.into()).collect::<Vec<Bson>>());
    c.ok(insert).await;
}
async fn split(c: &mut Client, at: i64) {
    let mut split = doc! { "split": "test.c", "$db": "admin" };
    split.push("middle", doc! { "k": at });
    c.ok(split).await;
}
/// Of the chunk that has the key.
fn move_chunk(k: i64, to: &str) -> Document {
    let mut command = doc! { "moveChunk": "test.c", "to": to, "$db": "admin" };
    command.push("find", doc! { "k": k });
    command
}
/// The chunk of the key goes to a shard and comes back; for some seconds it does not go there again.
async fn slow_down(cluster: &Cluster, c: &mut Client, k: i64, from: usize, to: usize) {
    let mut away = move_chunk(k, &format!("s{to}"));
    away.push("_waitForDelete", true);
    c.ok(away).await;
    let mut late = doc! { "setParameter": 1, "$db": "admin" };
    late.push("orphanCleanupDelaySecs", DELETED_AFTER_SECS);
    cluster.shard(to).await.ok(late).await;
    c.ok(move_chunk(k, &format!("s{from}"))).await;
}
async fn gives(cluster: &Cluster, shard: usize) -> bool {
    let find = doc! { "find": "migrationCoordinators", "$db": "config" };
    !cluster.shard(shard).await.all(find).await.is_empty()
}
async fn commits(c: &mut Client) -> usize {
    let mut find = doc! { "find": "changelog", "$db": "config" };
    find.push("filter", doc! { "what": "moveChunk.commit", "ns": "test.c" });
    c.all(find).await.len()
}

#[test]
fn disjoint_pairs_of_shards_move_ranges_at_the_same_time() {
    run(async {
        let (cluster, mut c) = cluster_of(4).await;
        forget_orphans_at_once(&cluster, 4).await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        split(&mut c, 100).await;
        fill_with_small(&mut c, "c", SMALL).await;
        let mut away = move_chunk(150, "s2");
        away.push("_waitForDelete", true);
        c.ok(away).await;
        slow_down(&cluster, &mut c, 50, 0, 1).await;
        slow_down(&cluster, &mut c, 150, 2, 3).await;
        let mut moving = Vec::new();
        for (k, to) in [(50, "s1"), (150, "s3")] {
            let mut own = cluster.router(0).await;
            moving.push(spawn(async move { own.run(move_chunk(k, to)).await }));
        }
        until("both donors give", async || gives(&cluster, 0).await && gives(&cluster, 2).await).await;
        for one in moving {
            let reply = one.await.unwrap();
            assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "{reply:?}");
        }
        assert_eq!(everything(&mut c, "c").await, SMALL as usize);
        let owners: Vec<String> = chunks(&mut c, "c").await.into_iter().map(|chunk| chunk.2).collect();
        assert_eq!(owners, ["s1", "s3"]);
        cluster.shut_down().await;
    });
}

#[test]
fn what_the_balancer_moves_already_is_joined_by_who_asks_for_the_same() {
    run(async {
        let (cluster, mut c) = cluster().await;
        forget_orphans_at_once(&cluster, 2).await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        split(&mut c, 100).await;
        fill_with_small(&mut c, "c", SMALL).await;
        // The first pause is as long as ever.
        rounds(&mut c, 1).await;
        slow_down(&cluster, &mut c, 150, 0, 1).await;
        assert_eq!(commits(&mut c).await, 2);
        c.admin(doc! { "addShardToZone": "s1", "zone": "east" }).await;
        let mut range = doc! { "updateZoneKeyRange": "test.c", "zone": "east" };
        range.push("min", doc! { "k": 100_i64 });
        range.push("max", doc! { "k": Bson::MaxKey });
        c.admin(range).await;
        until("the balancer moves it", async || gives(&cluster, 0).await).await;
        // Anything else has to wait.
        let (code, text) = c.err(move_chunk(50, "s1")).await;
        assert!(code == 117 && text.contains("currently donating range"), "{code} {text}");
        c.ok(move_chunk(150, "s1")).await;
        assert_eq!(commits(&mut c).await, 3, "one migration for both");
        let last = (Bson::Int64(100), Bson::MaxKey, "s1".to_owned(), false);
        assert_eq!(chunks(&mut c, "c").await.pop(), Some(last));
        assert_eq!(everything(&mut c, "c").await, SMALL as usize);
        cluster.shut_down().await;
    });
}

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}
fn bounds(min: &Bson, max: &Bson) -> Vec<Bson> {
    let end = |v: &Bson| {
        let mut d = Document::new();
        d.push("k", v.clone());
        Bson::from(d)
    };
    vec![end(min), end(max)]
}
/// Something to do with the chunks as they were a moment ago.
fn something(chance: &mut Chance, kind: usize, all: &[(Bson, Bson, String, bool)]) -> Document {
    let i = chance.below(all.len());
    let (min, max, shard, _) = &all[i];
    let mut command = match kind {
        0 => {
            let mut split = doc! { "split": "test.c" };
            split.push("middle", doc! { "k": chance.below(SMALL as usize) as i64 });
            split
        }
        1 => {
            let mut merge = doc! { "mergeChunks": "test.c" };
            merge.push("bounds", bounds(min, &all[(i + 1).min(all.len() - 1)].1));
            merge
        }
        _ => {
            let to = if shard == "s0" { "s1" } else { "s0" };
            let mut away = doc! { "moveChunk": "test.c", "to": to, "_waitForDelete": true };
            away.push("bounds", bounds(min, max));
            away
        }
    };
    command.push("$db", "admin");
    command
}

#[test]
fn splits_merges_and_moves_at_once_leave_chunks_that_tile_all_keys() {
    run(async {
        let (cluster, mut c) = cluster().await;
        c.admin(doc! { "balancerStop": 1 }).await;
        forget_orphans_at_once(&cluster, 2).await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        fill_with_small(&mut c, "c", SMALL).await;
        for at in (10..SMALL).step_by(10) {
            split(&mut c, at).await;
        }
        let mut working = Vec::new();
        for kind in [0, 0, 1, 1, 2, 2] {
            let mut own = cluster.router(0).await;
            let mut chance = Chance(working.len() as u64);
            working.push(spawn(async move {
                let mut done = 0;
                // Moves meet each other, and chunks that are others by then: those that come to nothing are tried again.
                for round in 0..200 {
                    if round >= 25 && (kind != 2 || done >= 3) {
                        break;
                    }
                    let all = chunks(&mut own, "c").await;
                    let reply = own.run(something(&mut chance, kind, &all)).await;
                    done += usize::from(reply.get("ok").and_then(Bson::as_f64) == Some(1.0));
                }
                (kind, done)
            }));
        }
        let mut done = [0; 3];
        for one in working {
            let (kind, n) = one.await.unwrap();
            done[kind] += n;
        }
        println!("{done:?} splits, merges and moves");
        assert!(done.iter().all(|n| *n > 0), "{done:?}");
        let all = chunks(&mut c, "c").await;
        assert!(all.windows(2).all(|two| two[0].1 == two[1].0), "{all:?}");
        assert!(all[0].0 == Bson::MinKey && all[all.len() - 1].1 == Bson::MaxKey, "{all:?}");
        let wrong = c.all(doc! { "checkMetadataConsistency": 1, "cursor": doc! {} }).await;
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(everything(&mut c, "c").await, SMALL as usize);
        let there: usize = counts(&cluster, 2, "c").await.iter().sum();
        assert_eq!(there, SMALL as usize, "nothing is left where it is not owned");
        cluster.shut_down().await;
    });
}
