//! Definitions of a cluster, while the primary of the shard that coordinates them ends, or loses its office, before each of its steps.

#![allow(clippy::unwrap_used)]

mod another_kind;
mod coll_mod;

use pando_bson::{Bson, Document, doc};
use pando_command::roles::ClusterRole;
use pando_testserver::{Client, Cluster, JoinHandle, STEP, Set, pause, run, spawn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// More than any definition has.
const STEPS_MAX: usize = 60;

/// A cluster of a set of three, which is the primary shard of `test`, and a shard of one.
struct Bench {
    cluster: Cluster,
    set: Set,
}

async fn bench() -> Bench {
    let set = Set::configured(3, |c| c.cluster_role = Some(ClusterRole::Shard)).await;
    // Elections are quick, and a member that stepped down may stand again soon.
    let mut config = set.current(0).await;
    let version = config.remove("version").and_then(|v| v.as_i64()).unwrap();
    config.push("version", (version + 1) as i32);
    config.remove("settings");
    config.push("settings", doc! { "heartbeatIntervalMillis": 100, "electionTimeoutMillis": 1500 });
    assert_eq!(number(&set.reconfig(config, false).await, "ok"), 1);
    let cluster = Cluster::of(1, 1).await;
    cluster.add(&set).await;
    let mut c = cluster.router(0).await;
    c.ok(doc! { "enableSharding": "test", "primaryShard": "rs", "$db": "admin" }).await;
    // A collection that was not empty begins on one shard, and would be moved to its zones in the middle of a check.
    c.admin(doc! { "balancerStop": 1 }).await;
    Bench { cluster, set }
}

fn number(reply: &Document, field: &str) -> i64 {
    reply.get(field).and_then(Bson::as_i64).unwrap_or(-1)
}
fn id_of(d: &Document) -> i64 {
    number(d, "_id")
}
/// Documents of a collection, past everybody who knows of owners.
async fn ids(c: &mut Client, coll: &str) -> Vec<i64> {
    let mut found: Vec<i64> =
        c.all(doc! { "find": coll, "batchSize": 10_000 }).await.iter().map(id_of).collect();
    found.sort_unstable();
    found
}
async fn of_config(c: &mut Client, coll: &str) -> Vec<Document> {
    c.all(doc! { "find": coll, "$db": "config" }).await
}

const ZONES: [(&str, &str, Bson, Bson); 2] =
    [("rs", "low", Bson::MinKey, Bson::Int32(1000)), ("s0", "high", Bson::Int32(1000), Bson::MaxKey)];

/// Two zones, so that an empty collection by `_id` begins on both shards.
async fn zones(c: &mut Client, ns: &str) {
    for (shard, zone, _, _) in ZONES {
        c.ok(doc! { "addShardToZone": shard, "zone": zone, "$db": "admin" }).await;
    }
    give_ranges(c, ns, true).await;
}
/// Ranges in zones, or in none: no collection can be renamed to the place of one that has any.
async fn give_ranges(c: &mut Client, ns: &str, zoned: bool) {
    for (_, zone, min, max) in ZONES {
        let mut range = doc! { "updateZoneKeyRange": ns };
        range.push("min", doc! { "_id": min });
        range.push("max", doc! { "_id": max });
        range.push("zone", if zoned { Bson::from(zone) } else { Bson::Null });
        range.push("$db", "admin");
        c.ok(range).await;
    }
}

impl Bench {
    async fn router(&self) -> Client {
        self.cluster.router(0).await
    }
    async fn shard_primary(&self) -> Client {
        self.set.connect(self.set.primary().await).await
    }
    /// The primary, and its term.
    async fn office(&self) -> (usize, i64) {
        let primary = self.set.primary().await;
        let status = self.set.connect(primary).await.admin(doc! { "replSetGetStatus": 1 }).await;
        (primary, number(&status, "term"))
    }
    /// What a definition keeps while it goes on.
    async fn left_behind(&self) -> Vec<Document> {
        let mut c = self.shard_primary().await;
        let mut all = of_config(&mut c, "collection_critical_sections").await;
        all.extend(of_config(&mut c, "system.sharding_ddl_coordinators").await);
        all
    }
    /// It ends by itself, whoever is primary.
    async fn until_nothing_is_left(&self) {
        for _ in 0..2000 {
            if self.left_behind().await.is_empty() {
                return;
            }
            pause(10).await;
        }
        panic!("it does not end: {:?}", self.left_behind().await);
    }
    /// Sends a command to a router until it is done.
    fn until_ok(&self, command: Document) -> JoinHandle<Document> {
        let port = self.cluster.router_port(0);
        spawn(async move {
            let mut last = Document::new();
            for _ in 0..30 {
                last = Client::connect(port).await.run(command.clone()).await;
                if number(&last, "ok") == 1 {
                    return last;
                }
                pause(100).await;
            }
            panic!("{command:?}: {last:?}")
        })
    }
}

/// Inserts documents one by one through a router, on both sides of where parts begin; knows which were acknowledged by a majority.
struct Writer {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Vec<i64>>,
}

impl Writer {
    fn start(port: u16, coll: &str) -> Writer {
        let (stop, coll) = (Arc::new(AtomicBool::new(false)), coll.to_owned());
        let stopped = stop.clone();
        let task = spawn(async move {
            let (mut c, mut acknowledged) = (Client::connect(port).await, Vec::new());
            for i in 1.. {
                if stopped.load(SeqCst) {
                    break;
                }
                let id = if i % 2 == 0 { i } else { 1000 + i };
                let mut insert = doc! { "insert": coll.as_str() };
                insert.push("documents", vec![Bson::from(doc! { "_id": id })]);
                insert.push("writeConcern", doc! { "w": "majority", "wtimeout": 20_000 });
                insert.push("$db", "test");
                let reply = c.run(insert).await;
                let plain = reply.get("writeErrors").is_none() && reply.get("writeConcernError").is_none();
                if number(&reply, "n") == 1 && plain {
                    acknowledged.push(i64::from(id));
                }
                pause(2).await;
            }
            acknowledged
        });
        Writer { stop, task }
    }
    async fn end(self) -> Vec<i64> {
        self.stop.store(true, SeqCst);
        let mut all = self.task.await.unwrap();
        all.sort_unstable();
        all
    }
}

/// Every document is where the config servers say, and none that was acknowledged is missing.
async fn check_places(b: &Bench, coll: &str, acknowledged: &[i64]) {
    let mut c = b.router().await;
    let ns = format!("test.{coll}");
    let entries = of_config(&mut c, "collections").await;
    let entry = entries.iter().find(|d| d.get("_id").and_then(Bson::as_str) == Some(&ns)).unwrap();
    let uuid = entry.get("uuid").unwrap().clone();
    let chunks = of_config(&mut c, "chunks").await;
    let chunks: Vec<_> = chunks.iter().filter(|d| d.get("uuid") == Some(&uuid)).collect();
    let split = chunks.len() == 2;
    let on_rs = ids(&mut b.shard_primary().await, coll).await;
    let on_s0 = ids(&mut b.cluster.shard(0).await, coll).await;
    assert!(on_rs.iter().all(|id| !split || *id < 1000), "{ns}: {on_rs:?}");
    assert!(on_s0.iter().all(|id| split && *id >= 1000), "{ns}: {on_s0:?}");
    let routed = ids(&mut c, coll).await;
    let lost: Vec<_> = acknowledged.iter().filter(|id| !routed.contains(id)).collect();
    assert!(lost.is_empty(), "{ns}: acknowledged, and nowhere: {lost:?}");
    let mut stored = [on_rs, on_s0].concat();
    stored.sort_unstable();
    assert_eq!(routed, stored, "{ns}");
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Killed,
    Down,
}

/// The primary stands still before a step, and ends so; returns who it was.
async fn strike(b: &mut Bench, member: usize, end: End) {
    match end {
        End::Killed => {
            b.set.kill(member).await;
            b.set.primary().await;
            b.set.restart(member).await;
        }
        End::Down => {
            let mut c = b.set.connect(member).await;
            let forced = doc! { "replSetStepDown": 2, "secondaryCatchUpPeriodSecs": 1, "force": true };
            c.admin(forced).await;
            b.set.connect(member).await.admin(doc! { "configureFailPoint": STEP, "mode": "off" }).await;
        }
    }
    b.set.settled().await;
}

/// Before step after step of `shardCollection` and `drop`, each on a collection of its own.
async fn every_step(end: End) {
    let (mut b, mut n) = (bench().await, 0);
    for round in 0..STEPS_MAX {
        let (coll, ns) = (format!("c{round}"), format!("test.c{round}"));
        let mut c = b.router().await;
        zones(&mut c, &ns).await;
        let office = b.office().await;
        let primary = office.0;
        b.set.hang_at(primary, n).await;
        let before = b.set.entered(primary);
        let mut shard = doc! { "shardCollection": ns.as_str() };
        shard.push("key", doc! { "_id": 1 });
        shard.push("$db", "admin");
        let task = b.until_ok(shard);
        let hung = b.set.hangs(primary, before, &task).await;
        let writer = Writer::start(b.cluster.router_port(0), &coll);
        pause(30).await;
        match hung {
            true => strike(&mut b, primary, end).await,
            false => drop(
                b.set.connect(primary).await.admin(doc! { "configureFailPoint": STEP, "mode": "off" }).await,
            ),
        }
        task.await.unwrap();
        b.until_nothing_is_left().await;
        let acknowledged = writer.end().await;
        check_places(&b, &coll, &acknowledged).await;
        let shorter = !drop_at(&mut b, &coll, n, end).await;
        // Another primary, elected by itself on a machine that is busy, takes the steps that were to be held.
        if !hung && shorter && b.office().await == office {
            assert!(n > 10, "{n} steps only");
            b.cluster.shut_down().await;
            b.set.shut_down().await;
            return;
        }
        n += usize::from(hung || !shorter);
    }
    panic!("it does not end");
}

/// Whether the primary ended before that step.
async fn drop_at(b: &mut Bench, coll: &str, n: usize, end: End) -> bool {
    let primary = b.set.primary().await;
    b.set.hang_at(primary, n).await;
    let before = b.set.entered(primary);
    let task = b.until_ok(doc! { "drop": coll, "$db": "test" });
    let hung = b.set.hangs(primary, before, &task).await;
    match hung {
        true => strike(b, primary, end).await,
        false => {
            drop(b.set.connect(primary).await.admin(doc! { "configureFailPoint": STEP, "mode": "off" }).await)
        }
    }
    task.await.unwrap();
    b.until_nothing_is_left().await;
    let mut c = b.router().await;
    let entries = of_config(&mut c, "collections").await;
    let ns = format!("test.{coll}");
    assert!(entries.iter().all(|d| d.get("_id").and_then(Bson::as_str) != Some(&ns)), "{entries:?}");
    for mut c in [b.shard_primary().await, b.cluster.shard(0).await, c] {
        assert_eq!(ids(&mut c, coll).await, [0; 0], "{ns}");
    }
    hung
}

#[test]
fn a_definition_survives_a_step_down_before_each_of_its_steps() {
    run(every_step(End::Down));
}

#[test]
fn a_definition_survives_a_crash_before_each_of_its_steps() {
    run(every_step(End::Killed));
}

/// Before step after step of a rename that takes the place of another sharded collection; the primary ends, or steps down, in turns.
#[test]
fn a_rename_survives_whatever_its_primary_does_before_each_of_its_steps() {
    run(async {
        let (mut b, mut n) = (bench().await, 0);
        for round in 0..STEPS_MAX {
            let (from, to) = (format!("c{round}"), format!("e{round}"));
            let mut c = b.router().await;
            for (name, ids) in [(&from, [1, 2, 1001, 1002]), (&to, [5, 6, 1005, 1006])] {
                let ns = format!("test.{name}");
                zones(&mut c, &ns).await;
                c.ok(shard(&ns, doc! { "_id": 1 })).await;
                let mut insert = doc! { "insert": name.as_str() };
                insert.push(
                    "documents",
                    ids.iter().map(|id| Bson::from(doc! { "_id": *id })).collect::<Vec<_>>(),
                );
                insert.push("$db", "test");
                c.ok(insert).await;
            }
            give_ranges(&mut c, &format!("test.{to}"), false).await;
            let office = b.office().await;
            let primary = office.0;
            b.set.hang_at(primary, n).await;
            let before = b.set.entered(primary);
            let mut rename = doc! { "renameCollection": format!("test.{from}"), "to": format!("test.{to}") };
            rename.push("dropTarget", true);
            rename.push("$db", "admin");
            let port = b.cluster.router_port(0);
            let task = spawn(async move { Client::connect(port).await.run(rename).await });
            let hung = b.set.hangs(primary, before, &task).await;
            let writer = Writer::start(b.cluster.router_port(0), &from);
            pause(30).await;
            match hung {
                true => strike(&mut b, primary, if n % 2 == 0 { End::Killed } else { End::Down }).await,
                false => b.set.fail_point(primary, STEP, false).await,
            }
            let reply = task.await.unwrap();
            // There is a primary again, whoever was told of the rename.
            let mut warm = doc! { "insert": "warm" };
            warm.push("documents", vec![Bson::from(doc! { "n": round as i32 })]);
            warm.push("writeConcern", doc! { "w": "majority" });
            warm.push("$db", "test");
            b.until_ok(warm).await.unwrap();
            b.until_nothing_is_left().await;
            let acknowledged = writer.end().await;
            let mut c = b.router().await;
            let by = |name: &str| {
                let ns = format!("test.{name}");
                move |d: &Document| d.get("_id").and_then(Bson::as_str) == Some(&ns)
            };
            let entries = of_config(&mut c, "collections").await;
            let is_renamed = !entries.iter().any(by(&from));
            assert!(is_renamed || number(&reply, "ok") != 1, "{reply:?}");
            let (mut old, mut new) = (ids(&mut c, &from).await, ids(&mut c, &to).await);
            match is_renamed {
                true => check_places(&b, &to, &[1, 2, 1001, 1002]).await,
                // Nobody had begun: all is as it was.
                false => {
                    assert_eq!(new, [5, 6, 1005, 1006]);
                    new.clear();
                }
            }
            old.append(&mut new);
            let lost: Vec<_> = acknowledged.iter().filter(|id| !old.contains(id)).collect();
            assert!(lost.is_empty(), "acknowledged, and nowhere: {lost:?}");
            let mut other = b.cluster.shard(0).await;
            assert_eq!(of_config(&mut other, "collection_critical_sections").await, []);
            if !hung && b.office().await == office {
                assert!(n > 8, "{n} steps only: {reply:?}");
                b.cluster.shut_down().await;
                b.set.shut_down().await;
                return;
            }
            n += usize::from(hung);
        }
        panic!("it does not end");
    });
}

/// Before step after step of a rename into another database, which is a copy and a drop; the primary ends, or steps down, in turns. There is one of both
/// collections at the end, with all its documents.
#[test]
fn a_rename_into_another_database_survives_whatever_its_primary_does_before_each_of_its_steps() {
    run(async {
        let (mut b, mut n) = (bench().await, 0);
        let mut c = b.router().await;
        c.ok(doc! { "enableSharding": "beside", "primaryShard": "rs", "$db": "admin" }).await;
        for round in 0..STEPS_MAX {
            let (from, to) = (format!("test.c{round}"), format!("beside.e{round}"));
            let mut c = b.router().await;
            let all: Vec<i64> = (0..50).collect();
            let mut insert = doc! { "insert": format!("c{round}") };
            insert.push("documents", all.iter().map(|id| doc! { "_id": *id }.into()).collect::<Vec<Bson>>());
            insert.push("writeConcern", doc! { "w": "majority" });
            insert.push("$db", "test");
            c.ok(insert).await;
            let office = b.office().await;
            let primary = office.0;
            b.set.hang_at(primary, n).await;
            let before = b.set.entered(primary);
            let port = b.cluster.router_port(0);
            let rename = doc! { "renameCollection": from, "to": to, "$db": "admin" };
            let task = spawn(async move { Client::connect(port).await.run(rename).await });
            let hung = b.set.hangs(primary, before, &task).await;
            match hung {
                true => strike(&mut b, primary, if n % 2 == 0 { End::Killed } else { End::Down }).await,
                false => b.set.fail_point(primary, STEP, false).await,
            }
            let reply = task.await.unwrap();
            let mut warm = doc! { "insert": "warm" };
            warm.push("documents", vec![Bson::from(doc! { "n": round as i32 })]);
            warm.push("writeConcern", doc! { "w": "majority" });
            warm.push("$db", "test");
            b.until_ok(warm).await.unwrap();
            b.until_nothing_is_left().await;
            let mut shard = b.shard_primary().await;
            let old = ids(&mut shard, &format!("c{round}")).await;
            let find = doc! { "find": format!("e{round}"), "sort": { "_id": 1 }, "batchSize": 1000, "$db": "beside" };
            let new: Vec<i64> = shard.all(find).await.iter().map(id_of).collect();
            assert!(old.is_empty() != new.is_empty(), "step {n}: {reply:?} {old:?} {new:?}");
            assert_eq!([old.clone(), new.clone()].concat(), all, "step {n}: {reply:?}");
            assert!(old.is_empty() || number(&reply, "ok") != 1, "step {n}: {reply:?}");
            let listed = shard.all(doc! { "listCollections": 1, "$db": "beside" }).await;
            let is_copy = |d: &Document| {
                d.get("name").and_then(Bson::as_str).is_some_and(|name| name.starts_with("tmp"))
            };
            assert!(!listed.iter().any(is_copy), "step {n}: {listed:?}");
            if !hung && b.office().await == office {
                assert!(n > 8, "{n} steps only: {reply:?}");
                b.cluster.shut_down().await;
                b.set.shut_down().await;
                return;
            }
            n += usize::from(hung);
        }
        panic!("it does not end");
    });
}

/// Somebody takes the new name while a rename stands before step after step: one of both gets it, and what is acknowledged is there.
#[test]
fn who_takes_the_new_name_of_a_rename_comes_before_it_or_behind_it() {
    run(async {
        let b = bench().await;
        let mut firsts = [[0; 2]; 2];
        for n in 0..20 {
            let (step, is_view) = (n / 2, n % 2 == 0);
            let (from, to) = (format!("c{n}"), format!("e{n}"));
            let mut c = b.router().await;
            zones(&mut c, &format!("test.{from}")).await;
            c.ok(shard(&format!("test.{from}"), doc! { "_id": 1 })).await;
            let mut rename = doc! { "renameCollection": format!("test.{from}"), "to": format!("test.{to}") };
            rename.push("$db", "admin");
            let (primary, task) = stopped(&b, step, rename).await;
            let mut other = match is_view {
                true => doc! { "create": to.as_str(), "viewOn": "warm" },
                false => doc! { "insert": to.as_str() },
            };
            if !is_view {
                other.push("documents", vec![Bson::from(doc! { "_id": 1077 })]);
            }
            other.push("$db", "test");
            let port = b.cluster.router_port(0);
            let other = spawn(async move { Client::connect(port).await.run(other).await });
            pause(100).await;
            b.set.fail_point(primary, STEP, false).await;
            let (renamed, other) = (task.await.unwrap(), other.await.unwrap());
            let is_renamed = number(&renamed, "ok") == 1;
            match (is_renamed, is_view) {
                (true, true) => assert_eq!(number(&other, "code"), 48, "{other:?}"),
                (true, false) => assert_eq!(number(&other, "n"), 1, "{other:?}"),
                (false, _) => {
                    assert_eq!(
                        (number(&renamed, "code"), number(&other, "ok")),
                        (48, 1),
                        "{renamed:?} {other:?}"
                    );
                }
            }
            if !is_view {
                assert_eq!(ids(&mut c, &to).await, [1077], "{renamed:?}");
            }
            firsts[usize::from(is_view)][usize::from(is_renamed)] += 1;
            b.until_nothing_is_left().await;
        }
        assert!(firsts.iter().flatten().all(|n| *n > 0), "{firsts:?}");
        b.cluster.shut_down().await;
        b.set.shut_down().await;
    });
}

/// A request is sent, and stands still before its `n`-th step.
async fn stopped(b: &Bench, n: usize, command: Document) -> (usize, JoinHandle<Document>) {
    let primary = b.set.primary().await;
    b.set.hang_at(primary, n).await;
    let before = b.set.entered(primary);
    let port = b.cluster.router_port(0);
    let task = spawn(async move { Client::connect(port).await.run(command).await });
    assert!(b.set.hangs(primary, before, &task).await, "it has fewer steps");
    (primary, task)
}
fn shard(ns: &str, key: Document) -> Document {
    let mut command = doc! { "shardCollection": ns };
    command.push("key", key);
    command.push("$db", "admin");
    command
}

#[test]
fn who_asks_for_the_same_joins_and_who_asks_for_something_else_is_refused() {
    run(async {
        let b = bench().await;
        let (primary, first) = stopped(&b, 5, shard("test.c", doc! { "_id": 1 })).await;
        let port = b.cluster.router_port(0);
        let same =
            spawn(async move { Client::connect(port).await.run(shard("test.c", doc! { "_id": 1 })).await });
        let other = b.router().await.err(shard("test.c", doc! { "_id": "hashed" })).await;
        assert_eq!(other.0, 117, "{other:?}");
        assert!(!first.is_finished() && !same.is_finished());
        b.set.fail_point(primary, STEP, false).await;
        for task in [first, same] {
            let reply = task.await.unwrap();
            assert_eq!(number(&reply, "ok"), 1, "{reply:?}");
        }
        let is_so = b.router().await.err(shard("test.c", doc! { "_id": "hashed" })).await;
        assert_eq!(is_so.0, 23, "{is_so:?}");
        b.cluster.shut_down().await;
        b.set.shut_down().await;
    });
}

/// Shards and config servers hear commands of definitions that are long over.
#[test]
fn a_command_that_comes_late_changes_nothing() {
    run(async {
        let b = bench().await;
        let mut c = b.router().await;
        zones(&mut c, "test.c").await;
        c.ok(shard("test.c", doc! { "_id": 1 })).await;
        let first = of_config(&mut c, "collections").await;
        let first =
            first.iter().find(|d| d.get("_id").and_then(Bson::as_str) == Some("test.c")).unwrap().clone();
        let chunks: Vec<Bson> = of_config(&mut c, "chunks").await.into_iter().map(Bson::from).collect();
        let of_first: Vec<Bson> = chunks
            .into_iter()
            .filter(|d| matches!(d, Bson::Document(d) if d.get("uuid") == first.get("uuid")))
            .collect();
        let majority = || doc! { "w": "majority" };
        let mut commit = doc! { "_configsvrCommitShardCollection": 1 };
        commit.push("collection", first.clone());
        commit.push("chunks", of_first);
        commit.push("writeConcern", majority());
        commit.push("$db", "admin");
        let mut config = b.cluster.config_server().await;
        // While it is there, it is what was wanted.
        config.ok(commit.clone()).await;
        c.ok(doc! { "drop": "c", "$db": "test" }).await;
        assert_eq!(config.err(commit.clone()).await.0, 225);
        zones(&mut c, "test.c").await;
        c.ok(shard("test.c", doc! { "_id": 1 })).await;
        let ids_in = [1, 2, 1001, 1002];
        let mut insert = doc! { "insert": "c" };
        insert.push("documents", ids_in.iter().map(|id| Bson::from(doc! { "_id": *id })).collect::<Vec<_>>());
        insert.push("$db", "test");
        c.ok(insert).await;
        // Of the first one, which no shard knows any more.
        let number_of_first = first.get("timestamp").unwrap().clone();
        let mut other_shard = b.cluster.shard(0).await;
        for command in ["_shardsvrDropCollectionParticipant", "_shardsvrCreateCollectionParticipant"] {
            let mut late = doc! {};
            late.push(command, "c");
            late.push("collectionUUID", first.get("uuid").unwrap().clone());
            late.push("timestamp", number_of_first.clone());
            late.push("writeConcern", majority());
            late.push("$db", "test");
            assert_eq!(other_shard.err(late).await.0, 225, "{command}");
        }
        let mut late = doc! { "_shardsvrDropDatabaseParticipant": 1 };
        late.push("timestamp", number_of_first.clone());
        late.push("writeConcern", majority());
        late.push("$db", "test");
        assert_eq!(other_shard.err(late).await.0, 225);
        let mut late = doc! { "_configsvrCommitDropCollection": "test.c" };
        late.push("collectionUUID", first.get("uuid").unwrap().clone());
        late.push("timestamp", number_of_first);
        late.push("writeConcern", majority());
        late.push("$db", "admin");
        config.ok(late).await;
        check_places(&b, "c", &ids_in.map(i64::from)).await;
        // One that was given up cannot be made, and the answer tells whether it was.
        let mut other = first.clone();
        other.remove("_id");
        let mut entry = doc! { "_id": "test.d" };
        other.iter().for_each(|(name, v)| entry.push(name, v.clone()));
        let mut give_up = doc! { "_configsvrCommitShardCollection": 1 };
        give_up.push("collection", entry);
        give_up.push("chunks", commit.get("chunks").unwrap().clone());
        give_up.push("writeConcern", majority());
        give_up.push("$db", "admin");
        let again = give_up.clone();
        give_up.push("giveUp", true);
        assert!(config.ok(give_up).await.get("collectionVersion").is_none());
        assert_eq!(config.err(again).await.0, 225);
        b.cluster.shut_down().await;
        b.set.shut_down().await;
    });
}

/// The config servers do it, and say that no majority has it: it is asked what came of it.
#[test]
fn a_commit_that_is_made_and_refused_is_made() {
    run(async {
        let b = bench().await;
        let mut config = b.cluster.config_server().await;
        let mut point = doc! { "configureFailPoint": "failCommand" };
        point.push("mode", doc! { "times": 1 });
        let mut data = doc! { "failInternalCommands": true };
        data.push("failCommands", vec![Bson::from("_configsvrCommitShardCollection")]);
        data.push("writeConcernError", doc! { "code": 64, "errmsg": "planned" });
        point.push("data", data);
        config.admin(point).await;
        b.router().await.ok(shard("test.c", doc! { "_id": 1 })).await;
        let off =
            config.ok(doc! { "configureFailPoint": "failCommand", "mode": "off", "$db": "admin" }).await;
        assert_eq!(number(&off, "count"), 1, "{off:?}");
        b.until_nothing_is_left().await;
        check_places(&b, "c", &[]).await;
        b.cluster.shut_down().await;
        b.set.shut_down().await;
    });
}

/// Whoever is primary goes by the documents, and by nothing else.
#[test]
fn a_section_outlives_primaries_and_restarts() {
    run(async {
        let mut b = bench().await;
        let mut c = b.router().await;
        let insert = |id: i32| {
            let mut insert = doc! { "insert": "c" };
            insert.push("documents", vec![Bson::from(doc! { "_id": id })]);
            insert.push("maxTimeMS", 1000);
            insert.push("$db", "test");
            insert
        };
        c.ok(insert(1)).await;
        let mut enter = doc! { "insert": "collection_critical_sections" };
        let mut section = doc! { "_id": "test.c" };
        section.push("reason", doc! { "test": 1 });
        section.push("blockReads", false);
        enter.push("documents", vec![Bson::from(section)]);
        enter.push("writeConcern", doc! { "w": 3 });
        enter.push("$db", "config");
        b.shard_primary().await.ok(enter).await;
        for end in [End::Down, End::Killed] {
            let reply = c.run(insert(2)).await;
            assert_ne!(number(&reply, "n"), 1, "{reply:?}");
            assert_eq!(ids(&mut c, "c").await, [1]);
            let primary = b.set.primary().await;
            strike(&mut b, primary, end).await;
        }
        let mut block = doc! { "update": "collection_critical_sections" };
        let set = doc! { "q": { "_id": "test.c" }, "u": { "$set": { "blockReads": true } } };
        block.push("updates", vec![Bson::from(set)]);
        block.push("writeConcern", doc! { "w": 3 });
        block.push("$db", "config");
        b.shard_primary().await.ok(block).await;
        let read = c.run(doc! { "find": "c", "maxTimeMS": 500, "$db": "test" }).await;
        assert_ne!(number(&read, "ok"), 1, "{read:?}");
        let port = b.cluster.router_port(0);
        let waiting =
            spawn(async move { Client::connect(port).await.run(doc! { "find": "c", "$db": "test" }).await });
        pause(200).await;
        assert!(!waiting.is_finished());
        let mut leave = doc! { "delete": "collection_critical_sections" };
        leave.push("deletes", vec![Bson::from(doc! { "q": {}, "limit": 0 })]);
        leave.push("$db", "config");
        b.shard_primary().await.ok(leave).await;
        assert_eq!(number(&waiting.await.unwrap(), "ok"), 1);
        c.ok(insert(2)).await;
        assert_eq!(ids(&mut c, "c").await, [1, 2]);
        b.cluster.shut_down().await;
        b.set.shut_down().await;
    });
}

/// Before the check, and before the commit.
#[test]
fn config_servers_without_a_primary_are_waited_for() {
    run(async {
        let b = bench().await;
        for (i, n) in [3, 9, 10].into_iter().enumerate() {
            let ns = format!("test.c{i}");
            let (primary, task) = stopped(&b, n, shard(&ns, doc! { "_id": 1 })).await;
            let mut config = b.cluster.config_server().await;
            let down = doc! { "replSetStepDown": 3, "secondaryCatchUpPeriodSecs": 0, "force": true };
            config.admin(down).await;
            b.set.fail_point(primary, STEP, false).await;
            let reply = task.await.unwrap();
            assert_eq!(number(&reply, "ok"), 1, "{n}: {reply:?}");
            b.until_nothing_is_left().await;
            check_places(&b, &format!("c{i}"), &[]).await;
        }
        b.cluster.shut_down().await;
        b.set.shut_down().await;
    });
}

/// A write that is acknowledged while a database is dropped is of before or of after: what was written behind the drop of its collections
/// and before that of its entry would be of no database.
#[test]
fn nobody_gets_into_a_database_while_it_goes() {
    run(async {
        let b = bench().await;
        let mut c = b.router().await;
        let insert = |coll: &str| {
            let mut insert = doc! { "insert": coll };
            insert.push("documents", vec![Bson::from(doc! { "_id": 1 })]);
            insert.push("maxTimeMS", 300);
            insert.push("$db", "test");
            insert
        };
        let (mut refused, mut open) = (0, 0);
        for n in 0..STEPS_MAX {
            c.run(doc! { "enableSharding": "test", "primaryShard": "rs", "$db": "admin" }).await;
            c.ok(insert("before")).await;
            let primary = b.set.primary().await;
            b.set.hang_at(primary, n).await;
            let before = b.set.entered(primary);
            let task = b.until_ok(doc! { "dropDatabase": 1, "$db": "test" });
            let hung = b.set.hangs(primary, before, &task).await;
            if hung {
                let its_collections_went = ids(&mut b.shard_primary().await, "before").await.is_empty();
                let is_known = of_config(&mut c, "databases")
                    .await
                    .iter()
                    .any(|d| d.get("_id").and_then(Bson::as_str) == Some("test"));
                let reply = c.run(insert("amid")).await;
                let went_in = number(&reply, "n") == 1;
                assert!(!(went_in && its_collections_went && is_known), "before step {n}: {reply:?}");
                refused += i32::from(its_collections_went && is_known);
                open += i32::from(went_in);
            }
            b.set.fail_point(primary, STEP, false).await;
            task.await.unwrap();
            b.until_nothing_is_left().await;
            if !hung {
                assert!(refused >= 2 && open >= 2, "{refused} {open}");
                b.cluster.shut_down().await;
                b.set.shut_down().await;
                return;
            }
        }
        panic!("it does not end");
    });
}
