//! The writes of users are blocked in a whole cluster, while the primary of the config servers ends, or loses its office, before each step.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_command::roles::ClusterRole;
use pando_testserver::{Client, JoinHandle, Running, Set, World, pause, run, spawn};

const STEP: &str = "hangBeforeWorkflowAction";
/// More than it has.
const STEPS_MAX: usize = 60;

/// Config servers, and sets of one that are shards.
struct Bench {
    config: Set,
    shards: Vec<(World, Running)>,
}

async fn start(name: &str) -> (World, Running) {
    let (world, name) = (World::new(), name.to_owned());
    let running = world
        .start(|c| {
            c.repl_set = Some(name);
            c.cluster_role = Some(ClusterRole::Shard);
            c.auto_initiate = Some(format!("127.0.0.1:{}", c.port));
        })
        .await;
    (world, running)
}

fn number(reply: &Document, field: &str) -> i64 {
    reply.get(field).and_then(Bson::as_i64).unwrap_or(-1)
}
fn command(name: &str, first: impl Into<Bson>, global: Option<bool>) -> Document {
    let mut command = Document::new();
    command.push(name, first.into());
    global.into_iter().for_each(|on| command.push("global", on));
    command.push("writeConcern", doc! { "w": "majority" });
    command.push("$db", "admin");
    command
}
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
    async fn of(shards: usize) -> Bench {
        let config = Set::configured(3, |c| c.cluster_role = Some(ClusterRole::Config)).await;
        // Elections are quick, and a member that stepped down may stand again soon.
        let mut now = config.current(0).await;
        let version = now.remove("version").and_then(|v| v.as_i64()).unwrap();
        now.push("version", (version + 1) as i32);
        now.remove("settings");
        now.push("settings", doc! { "heartbeatIntervalMillis": 100, "electionTimeoutMillis": 1500 });
        assert_eq!(number(&config.reconfig(now, false).await, "ok"), 1);
        let mut bench = Bench { config, shards: Vec::new() };
        for i in 0..shards {
            bench.shards.push(start(&format!("s{i}")).await);
            bench.add(i).await;
        }
        bench
    }
    async fn primary(&self) -> Client {
        self.config.connect(self.config.primary().await).await
    }
    async fn add(&self, i: usize) {
        let host = format!("s{i}/127.0.0.1:{}", self.shards[i].1.port);
        self.primary().await.ok(command("_configsvrAddShard", host, None)).await;
    }
    async fn shard(&self, i: usize) -> Client {
        self.shards[i].1.connect().await
    }
    async fn hang_at(&self, member: usize, n: usize) {
        let hang = doc! { "configureFailPoint": STEP, "mode": doc! { "skip": n as i32 } };
        self.config.connect(member).await.admin(hang).await;
    }
    async fn entered(&self, member: usize) -> i64 {
        self.config.server(member).instance.fail_points.get(STEP).unwrap().times_entered()
    }
    /// Whether it stands still, or the command has come to its end before that.
    async fn hangs(&self, member: usize, before: i64, task: &JoinHandle<Document>) -> bool {
        loop {
            if self.entered(member).await > before {
                return true;
            }
            if task.is_finished() {
                return false;
            }
            pause(5).await;
        }
    }
    /// Sends a command to whoever is primary until it is done.
    fn until_ok(&self, command: Document) -> JoinHandle<Document> {
        let port = |i| self.config.host(i).rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap();
        let ports: Vec<u16> = (0..3).map(port).collect();
        spawn(async move {
            let mut last = Document::new();
            for round in 0..600 {
                let (port, command) = (ports[round % ports.len()], command.clone());
                // One that ends meanwhile takes the connection with it, and the task.
                let asking = spawn(async move { Client::connect(port).await.run(command).await });
                last = asking.await.unwrap_or_default();
                if number(&last, "ok") == 1 {
                    return last;
                }
                pause(20).await;
            }
            panic!("{command:?}: {last:?}")
        })
    }
    /// It ends by itself, whoever is primary.
    async fn until_nothing_is_left(&self) {
        let find = || doc! { "find": "sharding_configsvr_coordinators", "$db": "config" };
        for _ in 0..1000 {
            if self.primary().await.all(find()).await.is_empty() {
                return;
            }
            pause(10).await;
        }
        panic!("it does not end");
    }
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
    async fn shut_down(self) {
        self.config.shut_down().await;
        for (_, running) in self.shards {
            running.shut_down().await;
        }
    }
}

/// Before step after step, of blocking and of letting in, the primary ends, or steps down, in turns.
#[test]
fn all_shards_block_the_writes_of_users_whatever_the_config_servers_primary_does_before_each_step() {
    run(async {
        let (mut b, mut n) = (Bench::of(2).await, 0);
        for round in 0..STEPS_MAX {
            let (mut hung_once, mut same) = (false, true);
            for on in [true, false] {
                let member = b.config.primary().await;
                b.hang_at(member, n).await;
                let before = b.entered(member).await;
                let task = b.until_ok(block(on));
                let hung = b.hangs(member, before, &task).await;
                match hung {
                    true if (round % 2 == 0) == on => {
                        b.config.kill(member).await;
                        b.config.primary().await;
                        b.config.restart(member).await;
                    }
                    true => {
                        let mut c = b.config.connect(member).await;
                        let down =
                            doc! { "replSetStepDown": 2, "secondaryCatchUpPeriodSecs": 1, "force": true };
                        c.admin(down).await;
                        b.config.fail_point(member, STEP, false).await;
                    }
                    false => b.config.fail_point(member, STEP, false).await,
                }
                b.config.settled().await;
                task.await.unwrap();
                b.until_nothing_is_left().await;
                b.check(on).await;
                same &= b.config.primary().await == member;
                hung_once |= hung;
            }
            if !hung_once && same {
                assert!(n > 8, "{n} steps only");
                return b.shut_down().await;
            }
            n += usize::from(hung_once);
        }
        panic!("it does not end");
    });
}

#[test]
fn who_asks_for_the_same_joins_who_asks_for_the_opposite_is_refused_and_a_shard_that_is_added_waits() {
    run(async {
        let mut b = Bench::of(1).await;
        let member = b.config.primary().await;
        // Behind its lock.
        b.hang_at(member, 3).await;
        let before = b.entered(member).await;
        let first = b.until_ok(block(true));
        assert!(b.hangs(member, before, &first).await);
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
