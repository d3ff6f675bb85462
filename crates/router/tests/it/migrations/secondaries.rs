//! What secondaries answer when a range has moved: they judge by the ownership that their data has reached (SYS-214).

use super::*;
use pando_command::roles::ClusterRole;
use pando_testserver::Set;

fn move_by_router(to: &str) -> Document {
    let mut command = doc! { "moveRange": "test.c", "toShard": to };
    command.push("min", doc! { "k": 30 });
    command.push("max", doc! { "k": 60 });
    command.push("$db", "admin");
    command
}
async fn read(c: &mut Client) -> Vec<i64> {
    let mut find = doc! { "find": "c", "sort": { "k": 1 }, "batchSize": 1000 };
    find.push("$readPreference", doc! { "mode": "secondaryPreferred" });
    find.push("$db", "test");
    let reply = c.ok(find).await;
    let batch = reply.get("cursor").and_then(Bson::as_doc).and_then(|c| c.get("firstBatch")?.as_array());
    batch.unwrap().iter().filter_map(|d| d.as_doc()?.get("k")?.as_i64()).collect()
}

/// Beside a shard of one member the shard `s1` of three, all of which have the hundred documents of `test.c`.
async fn three_members_that_have_everything() -> (Cluster, Set, Client) {
    let cluster = Cluster::of(1, 1).await;
    let members = [doc! {}, doc! {}, doc! {}];
    let set = Set::configured_as(&members, |c| c.cluster_role = Some(ClusterRole::Shard)).await;
    let mut c = cluster.router(0).await;
    c.ok(doc! { "addShard": format!("rs/{}", set.host(0)), "name": "s1", "$db": "admin" }).await;
    c.ok(doc! { "enableSharding": "test", "primaryShard": "s1", "$db": "admin" }).await;
    c.ok(doc! { "balancerStop": 1, "$db": "admin" }).await;
    cluster.shard_collection("test.c", doc! { "k": 1 }).await;
    let docs = (0..100i64).map(|k| doc! { "_id": k, "k": k }.into()).collect::<Vec<Bson>>();
    let mut documents = doc! { "insert": "c" };
    documents.push("documents", docs);
    documents.push("writeConcern", doc! { "w": 3 });
    c.ok(documents).await;
    (cluster, set, c)
}

#[test]
fn secondaries_show_nothing_twice_whatever_has_moved_and_is_not_deleted_yet() {
    run(async {
        let (cluster, set, mut c) = three_members_that_have_everything().await;
        let all: Vec<i64> = (0..100).collect();
        // What moves away stays where it was, but no move waits for that.
        let reading = {
            let mut own = cluster.router(0).await;
            spawn(async move {
                let mut reads = 0;
                loop {
                    let seen = read(&mut own).await;
                    assert!(seen.windows(2).all(|two| two[0] < two[1]), "something is there twice: {seen:?}");
                    reads += 1;
                    // The last move is over, and everybody has what it has brought.
                    if own.ok(doc! { "count": "over" }).await.get("n").and_then(Bson::as_i64) == Some(1) {
                        return reads;
                    }
                }
            })
        };
        let no_delay = doc! { "setParameter": 1, "orphanCleanupDelaySecs": 0, "$db": "admin" };
        cluster.shard(0).await.ok(no_delay).await;
        for (to, delay) in [("s0", 1), ("s1", 0), ("s0", 900)] {
            // A range comes back only when nothing of it is left.
            set.until("ranges are deleted", async |set| {
                let tasks = || doc! { "find": "rangeDeletions", "$db": "config" };
                let at = set.primary().await;
                let there = set.connect(at).await.all(tasks()).await;
                there.is_empty() && cluster.shard(0).await.all(tasks()).await.is_empty()
            })
            .await;
            for i in 0..3 {
                let set_delay = doc! { "setParameter": 1, "orphanCleanupDelaySecs": delay, "$db": "admin" };
                set.connect(i).await.ok(set_delay).await;
            }
            c.ok(move_by_router(to)).await;
            for _ in 0..20 {
                let seen = read(&mut c).await;
                if to == "s0" {
                    // The recipient has one member; the donor's secondaries have to know what they do not own any more.
                    assert_eq!(seen, all, "behind the move to {to}");
                }
            }
        }
        let primary = set.primary().await;
        let left = set.connect(primary).await.all(doc! { "find": "c", "$db": "test" }).await.len();
        assert_eq!(left, 100, "the donor has deleted what secondaries were to pass over");
        let mut over = doc! { "insert": "over", "documents": [{ "_id": 1 }] };
        over.push("writeConcern", doc! { "w": 3 });
        c.ok(over).await;
        let reads = reading.await.unwrap();
        assert!(reads > 20, "{reads} reads");
        assert_eq!(read(&mut c).await, all);
        set.shut_down().await;
        cluster.shut_down().await;
    });
}

/// The donor waits for its primary's readers only; a primary that is none any more has readers, too.
#[test]
fn who_reads_on_a_secondary_what_is_being_deleted_is_told_and_misses_nothing() {
    run(async {
        let (cluster, set, mut c) = three_members_that_have_everything().await;
        let deleted = |to: &str| {
            let mut command = move_by_router(to);
            command.push("waitForDelete", true);
            command
        };
        for mode in ["secondary", "primary"] {
            let mut find = doc! { "find": "c", "sort": { "k": -1 }, "batchSize": 5, "$db": "test" };
            find.push("$readPreference", doc! { "mode": mode });
            let reply = c.ok(find).await;
            let id = reply.get("cursor").and_then(Bson::as_doc).and_then(|c| c.get("id")?.as_i64()).unwrap();
            if mode == "primary" {
                let former = set.primary().await;
                set.connect(former).await.admin(doc! { "replSetStepDown": 60, "force": true }).await;
                set.settled().await;
            }
            c.ok(deleted("s0")).await;
            // By then everybody has applied what tells of it.
            let mut wrote = doc! { "insert": "later", "documents": [{ "k": 1 }] };
            wrote.push("writeConcern", doc! { "w": 3 });
            c.ok(wrote).await;
            let told =
                c.err(doc! { "getMore": id, "collection": "c", "batchSize": 1000, "$db": "test" }).await;
            assert_eq!(
                told,
                (175, "Read has been terminated due to orphan range cleanup".to_owned()),
                "{mode}"
            );
            if mode == "secondary" {
                c.ok(deleted("s1")).await;
            }
        }
        assert_eq!(read(&mut c).await, (0..100).collect::<Vec<i64>>());
        set.shut_down().await;
        cluster.shut_down().await;
    });
}

/// A copy waits for as many members of the recipient as somebody wants to have it.
#[test]
fn secondaries_set_the_pace_of_a_move_that_wants_it() {
    run(async {
        let (cluster, mut set, mut c) = three_members_that_have_everything().await;
        let mut away = move_by_router("s0");
        away.push("waitForDelete", true);
        c.ok(away).await;
        let back = |concern: Document| {
            let mut command = move_by_router("s1");
            command.push("secondaryThrottle", true);
            command.push("waitForDelete", true);
            command.push("writeConcern", concern);
            command
        };
        let (_, text) = c.err(back(doc! { "w": 4 })).await;
        assert!(text.contains("Not enough data-bearing nodes"), "{text}");
        let gone = set.secondaries().await[0];
        set.stop(gone).await;
        let (_, text) = c.err(back(doc! { "w": 3, "wtimeout": 300 })).await;
        assert!(text.contains("waiting for replication timed out"), "{text}");
        assert_eq!(keys(&mut c, "c").await, (0..100).collect::<Vec<i64>>());
        // Two have it, and who does not want anybody to wait is not asked how long.
        c.ok(back(doc! { "w": 2 })).await;
        let mut away = move_by_router("s0");
        away.push("writeConcern", doc! { "w": 3, "wtimeout": 300 });
        c.ok(away).await;
        assert_eq!(keys(&mut c, "c").await, (0..100).collect::<Vec<i64>>());
        let chunk = doc! { "moveChunk": "test.c", "to": "s1", "find": { "k": 40 }, "writeConcern": { "w": 2 }, "$db": "admin" };
        let refused = (12, "Cannot specify write concern when secondaryThrottle is not set".to_owned());
        assert_eq!(c.err(chunk).await, refused);
        set.restart(gone).await;
        cluster.shut_down().await;
        set.shut_down().await;
    });
}
