//! Collections that are defined anew while, or before, ranges of them move: every shard has them as they are (SYS-247).

use super::*;

fn index(name: &str, field: &str, unique: bool) -> Document {
    let mut key = Document::new();
    key.push(field, 1);
    let mut spec = doc! { "name": name, "unique": unique };
    spec.push("key", key);
    let mut create = doc! { "createIndexes": "c" };
    create.push("indexes", vec![Bson::from(spec)]);
    create
}
async fn indexes(cluster: &Cluster, n: usize) -> Vec<String> {
    let all = cluster.shard(n).await.all(doc! { "listIndexes": "c" }).await;
    let mut names: Vec<String> =
        all.iter().filter_map(|d| d.get("name").and_then(Bson::as_str).map(str::to_owned)).collect();
    names.sort();
    names
}

#[test]
fn a_shard_that_owned_nothing_is_told_what_has_become_of_the_collection() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        c.ok(index("gone", "g", false)).await;
        let mut donor = cluster.shard(0).await;
        let mut other = cluster.shard(1).await;
        donor.ok(move_range("c", "s1", Bson::MinKey, Bson::MaxKey)).await;
        // The first shard owns nothing now; it may still have documents of others.
        donor.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 900, "$db": "admin" }).await;
        c.ok(doc! { "dropIndexes": "c", "index": "gone" }).await;
        c.ok(index("new", "x", false)).await;
        let mut validate = doc! { "collMod": "c" };
        validate.push("validator", doc! { "n": doc! { "$lt": 100 } });
        c.ok(validate).await;
        other.ok(move_range("c", "s0", Bson::MinKey, 50)).await;
        let wanted = vec!["_id_".to_owned(), "k_1".to_owned(), "new".to_owned()];
        assert_eq!((indexes(&cluster, 0).await, indexes(&cluster, 1).await), (wanted.clone(), wanted));
        for k in [10, 90] {
            let mut wrong = doc! { "insert": "c" };
            wrong.push("documents", vec![doc! { "_id": 1000 + k, "k": k, "n": 500 }.into()]);
            let reply = c.run(wrong).await;
            assert!(reply.get("writeErrors").is_some(), "{reply:?}");
        }
        assert_eq!(keys(&mut c, "c").await, (0..100).collect::<Vec<i64>>());
        cluster.shut_down().await;
    });
}

/// A migration that has copied the definition already is given up, or has copied the new one.
#[test]
fn an_index_that_is_made_or_dropped_while_a_range_moves_is_on_both_shards_or_on_none() {
    run(async {
        let (cluster, mut c) = cluster("c", 2000).await;
        for round in 0..6 {
            let mut shard = cluster.shard(round % 2).await;
            let to = if round % 2 == 0 { "s1" } else { "s0" };
            let moving =
                spawn(async move { shard.run(move_range("c", to, Bson::MinKey, Bson::MaxKey)).await });
            pause(20 * round as u64).await;
            c.ok(index("x_1", "x", false)).await;
            let moved = moving.await.unwrap();
            let (owner, _) = if moved.get("ok").and_then(Bson::as_f64) == Some(1.0) {
                ((round + 1) % 2, ())
            } else {
                (round % 2, ())
            };
            assert!(indexes(&cluster, owner).await.contains(&"x_1".to_owned()), "round {round}: {moved:?}");
            c.ok(doc! { "dropIndexes": "c", "index": "x_1" }).await;
            assert!(!indexes(&cluster, owner).await.contains(&"x_1".to_owned()), "round {round}");
            if owner != (round + 1) % 2 {
                let mut shard = cluster.shard(round % 2).await;
                shard.ok(move_range("c", to, Bson::MinKey, Bson::MaxKey)).await;
            }
        }
        assert_eq!(keys(&mut c, "c").await.len(), 2000);
        cluster.shut_down().await;
    });
}

/// Before, while and after the range gets another owner: whoever owns it has been told, or has copied it as it is.
#[test]
fn what_is_modified_while_a_range_moves_is_modified_wherever_the_range_is_then() {
    run(async {
        let (cluster, mut c) = cluster("c", 2000).await;
        let (mut owner, mut moves, mut meanwhile) = (0, 0, 0);
        for round in 0..12_i32 {
            let (mut shard, to) = (cluster.shard(owner).await, ["s1", "s0"][owner]);
            let moving =
                spawn(async move { shard.run(move_range("c", to, Bson::MinKey, Bson::MaxKey)).await });
            pause(15 * round as u64).await;
            meanwhile += i32::from(!moving.is_finished());
            let wanted = doc! { "n": doc! { "$lt": 100_000 + round } };
            let mut validate = doc! { "collMod": "c" };
            validate.push("validator", wanted.clone());
            c.ok(validate).await;
            let moved = moving.await.unwrap();
            if moved.get("ok").and_then(Bson::as_f64) == Some(1.0) {
                owner = 1 - owner;
                moves += 1;
            }
            let mut list = doc! { "listCollections": 1 };
            list.push("filter", doc! { "name": "c" });
            let listed = cluster.shard(owner).await.all(list).await;
            let options = listed[0].get("options").and_then(Bson::as_doc).unwrap();
            assert_eq!(options.get("validator"), Some(&wanted.into()), "round {round}: {moved:?}");
        }
        assert!(moves > 0 && meanwhile > 0, "{moves} moves, {meanwhile} modifications while one was made");
        assert_eq!(keys(&mut c, "c").await.len(), 2000);
        cluster.shut_down().await;
    });
}
