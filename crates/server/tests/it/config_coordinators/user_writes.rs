//! The writes of users are blocked in a whole cluster.

use super::{Bench, STEP, command, number, start};
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, pause, run, spawn};

fn block(on: bool) -> Document {
    command("_configsvrSetUserWriteBlockMode", 1, Some(on))
}
async fn section(c: &mut Client) -> Vec<Document> {
    c.all(doc! { "find": "user_writes_critical_sections", "$db": "config" }).await
}
fn as_section(on: bool) -> Vec<Document> {
    let all = || doc! { "_id": "", "blockNewUserShardedDDL": true, "blockUserWrites": true };
    if on { vec![all()] } else { Vec::new() }
}

impl Bench {
    /// Everybody says so.
    async fn check(&self, on: bool) {
        assert_eq!(section(&mut self.primary().await).await, as_section(on));
        for i in 0..self.shards.len() {
            let mut c = self.shard(i).await;
            assert_eq!(section(&mut c).await, as_section(on), "s{i}");
            let create = doc! { "create": format!("c{on}"), "$db": "test" };
            let reply = c.run(create).await;
            assert_eq!(number(&reply, "code"), if on { 371 } else { -1 }, "{reply:?}");
            c.run(doc! { "drop": format!("c{on}"), "$db": "test" }).await;
        }
    }
}

#[test]
fn all_shards_block_the_writes_of_users_whatever_the_config_servers_primary_does_before_each_step() {
    run(async {
        let mut b = Bench::of(2).await;
        b.every_step([block(true), block(false)], async |b, i| b.check(i == 0).await).await;
        b.shut_down().await;
    });
}

#[test]
fn who_asks_for_the_same_joins_who_asks_for_the_opposite_is_refused_and_a_shard_that_is_added_waits() {
    run(async {
        let mut b = Bench::of(1).await;
        let member = b.config.primary().await;
        // Behind its lock.
        b.config.hang_at(member, 3).await;
        let before = b.config.entered(member);
        let first = b.until_ok(block(true));
        assert!(b.config.hangs(member, before, &first).await);
        let same = b.until_ok(block(true));
        let other = b.primary().await.err(block(false)).await;
        let text = "Another ConfigsvrCoordinator with different arguments is already running";
        assert_eq!(other, (117, text.to_owned()));
        b.shards.push(start("s1").await);
        let host = format!("s1/127.0.0.1:{}", b.shards[1].1.port);
        let added = b.until_ok(command("_configsvrAddShard", host, None));
        pause(300).await;
        assert!(!first.is_finished() && !same.is_finished() && !added.is_finished());
        b.config.fail_point(member, STEP, false).await;
        for task in [first, same, added] {
            task.await.unwrap();
        }
        b.check(true).await;
        // Neither of one set, nor by a member of a cluster.
        let alone = "setUserWriteBlockMode cannot be run on shardsvrs nor configsvrs";
        let plain = || doc! { "setUserWriteBlockMode": 1, "global": false, "$db": "admin" };
        assert_eq!(b.shard(0).await.err(plain()).await, (20, alone.to_owned()));
        assert_eq!(b.primary().await.err(plain()).await, (20, alone.to_owned()));
        b.shut_down().await;
    });
}

/// What 6.0.5 says.
#[test]
fn arguments_of_a_phase_are_judged_and_one_that_comes_late_has_no_effect() {
    run(async {
        let b = Bench::of(1).await;
        let name = "_shardsvrSetUserWriteBlockMode";
        let told = |on: bool, phase: &str, at: Option<u32>| {
            let mut c = doc! { "_shardsvrSetUserWriteBlockMode": 1, "global": on, "phase": phase };
            at.into_iter().for_each(|at| c.push("timestamp", pando_base::Timestamp::new(at, 1)));
            c.push("writeConcern", doc! { "w": "majority" });
            c.push("$db", "admin");
            c
        };
        let mut c = b.shard(0).await;
        let unknown = format!("Enumeration value 'x' for field '{name}.phase' is not a valid value.");
        assert_eq!(c.err(told(true, "x", None)).await, (2, unknown));
        assert_eq!(c.err(command(name, 1, Some(true))).await.0, 40414);
        assert_eq!(c.err(command(name, 1, None)).await.0, 40414);
        let mut careless = doc! { "_shardsvrSetUserWriteBlockMode": 1, "global": true, "phase": "prepare" };
        careless.push("$db", "admin");
        assert_eq!(c.err(careless).await.0, 72);
        let newest = u32::MAX - 1;
        let phases =
            |on: bool| [told(on, "prepare", Some(newest - 1)), told(on, "complete", Some(newest - 1))];
        for phase in phases(true) {
            c.ok(phase).await;
        }
        assert_eq!(section(&mut c).await, as_section(true));
        c.ok(told(false, "complete", Some(newest))).await;
        for phase in phases(true) {
            assert_eq!(c.err(phase).await.0, 225);
        }
        assert_eq!(section(&mut c).await, as_section(false));
        // Config servers of 6.0.5 send it so.
        let mut numbered = told(false, "complete", None);
        numbered
            .push("lsid", doc! { "id": Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![7; 16] }) });
        numbered.push("txnNumber", 1i64);
        c.ok(numbered).await;
        let mut config = b.primary().await;
        assert_eq!(config.err(command("_configsvrSetUserWriteBlockMode", 1, None)).await.0, 40414);
        b.shut_down().await;
    });
}

/// One that was let in before is waited for, and an index build is given up.
#[test]
fn writes_that_were_let_in_before_are_over_when_blocking_is_answered() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let docs: Vec<Bson> = (0..10).map(|i| Bson::from(doc! { "a": i })).collect();
        let mut insert = doc! { "insert": "c" };
        insert.push("documents", docs);
        c.ok(insert).await;
        c.admin(doc! { "configureFailPoint": "hangAfterStartingIndexBuild", "mode": "alwaysOn" }).await;
        let port = server.port;
        let build = spawn(async move {
            let index = doc! { "key": { "a": 1 }, "name": "a" };
            let mut build = doc! { "createIndexes": "c" };
            build.push("indexes", vec![Bson::from(index)]);
            Client::connect(port).await.run(build).await
        });
        let lsid = Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![7; 16] });
        let part = |mut command: Document| {
            command.push("lsid", doc! { "id": lsid.clone() });
            command.push("txnNumber", 1i64);
            command.push("autocommit", false);
            command
        };
        let first = doc! { "insert": "d", "documents": vec![Bson::from(doc! { "x": 1 })] };
        c.ok(doc! { "create": "d" }).await;
        let mut first = part(first);
        first.push("startTransaction", true);
        c.ok(first).await;
        pause(300).await;
        let mut plain = doc! { "setUserWriteBlockMode": 1, "global": true };
        plain.push("$db", "admin");
        let blocked = spawn(async move { Client::connect(port).await.run(plain).await });
        pause(500).await;
        assert!(!blocked.is_finished(), "a transaction has written");
        let mut commit = part(doc! { "commitTransaction": 1 });
        commit.push("$db", "admin");
        c.ok(commit).await;
        c.admin(doc! { "configureFailPoint": "hangAfterStartingIndexBuild", "mode": "off" }).await;
        assert_eq!(number(&blocked.await.unwrap(), "ok"), 1);
        assert_eq!(number(&build.await.unwrap(), "code"), 276);
        assert_eq!(c.all(doc! { "find": "d" }).await.len(), 1);
        server.shut_down().await;
    });
}
