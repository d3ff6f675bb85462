//! What is asked for at the wrong time, or of the wrong command.

use super::*;

async fn refused(c: &mut Client, command: Document) -> i32 {
    c.err(command).await.0
}

#[test]
fn each_command_can_be_asked_for_again_and_none_takes_the_last_shard() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let mut c = cluster.router(0).await;
        quick(&cluster, &mut c).await;
        let (code, words) = c.err(command(TO)).await;
        assert_eq!((code, words.as_str()), (70, "Shard config not found"));
        let config = format!("c/127.0.0.1:{}", cluster.config_port());
        let add = |name: Option<&str>| {
            let mut add = doc! { "addShard": config.clone() };
            name.iter().for_each(|name| add.push("name", *name));
            add.push("$db", "admin");
            add
        };
        assert_eq!(refused(&mut c, add(None)).await, 96);
        let own_name = doc! { "addShard": cluster.shard_host(0), "name": "config", "$db": "admin" };
        assert_eq!(refused(&mut c, own_name.clone()).await, 20, "it is another shard already");
        for _ in 0..2 {
            c.ok(command(FROM)).await;
        }
        assert_eq!(ids(&shards(&mut c).await), ["config", "s0"]);
        // It is one by that name only.
        assert_eq!(refused(&mut c, add(Some("x"))).await, 20);
        assert_eq!(text(&c.ok(add(None)).await, "shardAdded"), "config");
        for which in ["config", config.as_str()] {
            assert_eq!(refused(&mut c, doc! { "removeShard": which, "$db": "admin" }).await, 20);
        }
        until_removed(&mut c, "s0").await;
        let (code, words) = c.err(command(TO)).await;
        let last = "Operation not allowed because it would remove the last shard";
        assert_eq!((code, words.as_str()), (20, last));
        // Not on another database, nor past a router.
        let elsewhere = doc! { "transitionFromDedicatedConfigServer": 1, "$db": "test" };
        assert_eq!(refused(&mut c, elsewhere).await, 13);
        let mut past = cluster.shard(0).await;
        assert_eq!(past.err(command(FROM)).await.0, 59);
        let own = doc! { "_configsvrTransitionToDedicatedConfigServer": 1, "$db": "admin" };
        assert_eq!(past.err(own.clone()).await.0, 20);
        assert_eq!(cluster.config_server().await.err(own).await.0, 72, "without a majority");
        cluster.shut_down().await;
    });
}

#[test]
fn nothing_goes_to_config_servers_that_are_no_shard_before_or_after() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        quick(&cluster, &mut c).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        insert(&mut c, "c", 0..10).await;
        insert(&mut c, "plain", 0..10).await;
        for was_one in [false, true] {
            if was_one {
                c.ok(command(FROM)).await;
                until_dedicated(&mut c).await;
            }
            let to = doc! { "enableSharding": "other", "primaryShard": "config", "$db": "admin" };
            assert_eq!(refused(&mut c, to).await, 70);
            assert_eq!(refused(&mut c, move_primary("config")).await, 70, "was one: {was_one}");
            assert_eq!(refused(&mut c, move_range("c", "config", 0, 5)).await, 70);
            let mut config = cluster.config_server().await;
            let (code, words) = config.err(doc! { "create": "c" }).await;
            let no = "Can't create user databases on a --configsvr instance test.c";
            assert_eq!((code, words.as_str()), (73, no));
            assert_eq!((keys(&mut c, "c").await.len(), keys(&mut c, "plain").await.len()), (10, 10));
        }
        cluster.shut_down().await;
    });
}

/// What has moved away is deleted first, so that whoever still reads it may end.
#[test]
fn ranges_that_wait_to_be_deleted_are_waited_for() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let (mut c, mut config) = (cluster.router(0).await, cluster.config_server().await);
        quick(&cluster, &mut c).await;
        c.ok(command(FROM)).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        insert(&mut c, "c", 0..10).await;
        c.ok(move_range("c", "config", 0, 5)).await;
        config.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 900, "$db": "admin" }).await;
        let mut back = move_range("c", "s0", 0, 5);
        back.remove("waitForDelete");
        c.ok(back).await;
        assert_eq!(text(&c.ok(command(TO)).await, "state"), "started");
        for _ in 0..2 {
            let waits = c.ok(command(TO)).await;
            assert_eq!(text(&waits, "msg"), "waiting for pending range deletions");
            assert_eq!(text(&waits, "state"), "pendingRangeDeletions");
            assert_eq!(waits.get("pendingRangeDeletions").and_then(Bson::as_i64), Some(1));
        }
        assert_eq!(keys(&mut config, "c").await.len(), 5);
        cluster.shut_down().await;
    });
}
