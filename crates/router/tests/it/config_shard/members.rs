//! Config servers of three members: their primary steps down, or ends, while they are a shard, become one, or cease to be one.

use super::*;
use pando_command::roles::ClusterRole;
use pando_testserver::{JoinHandle, STEP, Set, spawn};

const HANG: &str = "hangAfterDroppingDatabaseInTransitionToDedicatedConfigServer";
/// More than a move has.
const STEPS_MAX: usize = 60;

struct Bench {
    set: Set,
    cluster: Cluster,
}

impl Bench {
    async fn of(shards: usize) -> (Bench, Client) {
        let set = Set::configured(3, |c| c.cluster_role = Some(ClusterRole::Config)).await;
        // Elections are quick, and a member that stepped down may stand again soon.
        let mut now = set.current(0).await;
        let version = now.remove("version").and_then(|v| v.as_i64()).unwrap();
        now.push("version", (version + 1) as i32);
        now.remove("settings");
        now.push("settings", doc! { "heartbeatIntervalMillis": 100, "electionTimeoutMillis": 1500 });
        let done = set.reconfig(now, false).await;
        assert!(done.get("ok").is_some_and(Bson::is_truthy), "{done:?}");
        let cluster = Cluster::led_by(&set, shards, 1).await;
        let bench = Bench { set, cluster };
        for i in 0..3 {
            bench.prepare(i).await;
        }
        delete_at_once(&mut [bench.cluster.shard(0).await]).await;
        let c = bench.cluster.router(0).await;
        bench.until_ok(doc! { "balancerStop": 1, "$db": "admin" }).await.unwrap();
        (bench, c)
    }
    async fn prepare(&self, i: usize) {
        often(&mut self.set.connect(i).await).await;
        delete_at_once(&mut [self.set.connect(i).await]).await;
    }
    async fn primary(&self) -> Client {
        self.set.connect(self.set.primary().await).await
    }
    /// Has a router asked until the command is done.
    fn until_ok(&self, command: Document) -> JoinHandle<Document> {
        let port = self.cluster.router_port(0);
        spawn(async move {
            let mut last = Document::new();
            for _ in 0..600 {
                last = Client::connect(port).await.run(command.clone()).await;
                if last.get("ok").is_some_and(Bson::is_truthy) {
                    return last;
                }
                pause(20).await;
            }
            panic!("{command:?}: {last:?}")
        })
    }
    async fn ok(&self, command: Document) -> Document {
        self.until_ok(command).await.unwrap()
    }
    async fn step_down(&self, member: usize) {
        let down = doc! { "replSetStepDown": 2, "secondaryCatchUpPeriodSecs": 1, "force": true };
        self.set.connect(member).await.admin(down).await;
    }
    async fn end(&mut self, member: usize) {
        self.set.kill(member).await;
        self.set.primary().await;
        self.set.restart(member).await;
        self.prepare(member).await;
    }
    /// The member ends, or steps down, where a workflow stands still on it.
    async fn strike(&mut self, member: usize, hung: bool, killed: bool) {
        if hung && killed {
            return self.end(member).await;
        }
        if hung {
            self.step_down(member).await;
        }
        self.set.fail_point(member, STEP, false).await;
    }
    /// What lies on the config servers of a collection.
    async fn here(&self, coll: &str) -> Vec<i64> {
        keys(&mut self.primary().await, coll).await
    }
    /// Nothing of a migration is left, here and there.
    async fn until_nothing_is_left(&self) {
        for _ in 0..600 {
            let mut left = Vec::new();
            for c in [&mut self.primary().await, &mut self.cluster.shard(0).await] {
                for coll in ["migrationCoordinators", "migrationRecipients", "rangeDeletions", SECTIONS] {
                    left.extend(c.all(doc! { "find": coll, "$db": "config" }).await);
                }
            }
            if left.is_empty() {
                return;
            }
            pause(20).await;
        }
        panic!("something is left");
    }
    async fn shut_down(self) {
        self.cluster.shut_down().await;
        self.set.shut_down().await;
    }
}

const SECTIONS: &str = "collection_critical_sections";

#[test]
fn config_servers_are_a_shard_on_all_their_members_whoever_leads_and_when_they_come_back() {
    run(async {
        let (mut bench, mut c) = Bench::of(1).await;
        bench.ok(command(FROM)).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "config", "$db": "admin" }).await;
        bench.cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        insert(&mut c, "c", 0..100).await;
        insert(&mut c, "plain", 0..10).await;
        c.ok(move_range("c", "s0", 50, Bson::MaxKey)).await;
        let all: Vec<i64> = (0..100).collect();
        let on_secondaries = || {
            let mut find = doc! { "find": "c", "sort": doc! { "k": 1 } };
            find.push("$readPreference", doc! { "mode": "secondaryPreferred" });
            find.push("readConcern", doc! { "level": "majority" });
            find
        };
        for round in 0..3 {
            match round {
                0 => bench.step_down(bench.set.primary().await).await,
                1 => {
                    let primary = bench.set.primary().await;
                    bench.end(primary).await;
                }
                _ => {
                    for i in 0..3 {
                        bench.set.kill(i).await;
                    }
                    for i in 0..3 {
                        bench.set.restart(i).await;
                    }
                    bench.set.settled().await;
                    for i in 0..3 {
                        bench.prepare(i).await;
                    }
                }
            }
            bench.set.settled().await;
            let read = bench.ok(on_secondaries()).await;
            let batch = read.get("cursor").and_then(Bson::as_doc).and_then(|d| d.get("firstBatch")).cloned();
            assert_eq!(batch.as_ref().and_then(Bson::as_array).map(|b| b.len()), Some(100), "round {round}");
            let one = doc! { "q": doc! { "k": 10 }, "u": doc! { "$inc": doc! { "n": 1 } } };
            bench.ok(doc! { "update": "c", "updates": vec![Bson::from(one)] }).await;
            // There and back, and the primary shard, too.
            bench.ok(move_range("c", "s0", 10, 20)).await;
            bench.ok(move_range("c", "config", 10, 20)).await;
            bench.ok(move_primary("s0")).await;
            bench.ok(move_primary("config")).await;
            let mut c = bench.cluster.router(0).await;
            assert_eq!((keys(&mut c, "c").await, keys(&mut c, "plain").await.len()), (all.clone(), 10));
            assert_eq!((bench.here("c").await, bench.here("plain").await.len()), ((0..50).collect(), 10));
        }
        bench.shut_down().await;
    });
}

#[test]
fn a_transition_that_is_cut_off_is_asked_for_again() {
    run(async {
        let (mut bench, mut c) = Bench::of(1).await;
        for round in 0..2 {
            // On the way in: whatever of it the old primary has done, the new one does the rest.
            let (member, asked) = (bench.set.primary().await, bench.until_ok(command(FROM)));
            pause(round * 7).await;
            bench.step_down(member).await;
            asked.await.unwrap();
            assert_eq!(ids(&shards(&mut c).await), ["config", "s0"]);
            bench.ok(doc! { "enableSharding": "test", "primaryShard": "config", "$db": "admin" }).await;
            let shard = doc! { "shardCollection": "test.c", "key": doc! { "k": 1 }, "$db": "admin" };
            bench.ok(shard).await;
            insert(&mut c, "c", 0..100).await;
            insert(&mut c, "plain", 0..10).await;
            bench.set.settled().await;
            assert_eq!(text(&bench.ok(command(TO)).await, "state"), "started");
            bench.ok(move_primary("s0")).await;
            bench.ok(doc! { "balancerStart": 1, "$db": "admin" }).await;
            let chunks = || doc! { "count": "chunks", "query": doc! { "shard": "config" }, "$db": "config" };
            let left = async |b: &Bench| b.ok(chunks()).await.get("n").and_then(Bson::as_i64).unwrap();
            while left(&bench).await > 0 {
                pause(50).await;
            }
            bench.until_nothing_is_left().await;
            // On the way out: some of what lies there is dropped, the entry is there still.
            let member = bench.set.primary().await;
            bench.set.fail_point(member, HANG, true).await;
            let entered = || bench.set.server(member).instance.fail_points.get(HANG).unwrap().times_entered();
            let (before, asked) = (entered(), bench.until_ok(command(TO)));
            while entered() == before {
                pause(5).await;
            }
            assert_eq!(ids(&shards(&mut c).await), ["config", "s0"]);
            match round {
                0 => bench.step_down(member).await,
                _ => bench.end(member).await,
            }
            if round == 0 {
                bench.set.fail_point(member, HANG, false).await;
            }
            let last = asked.await.unwrap();
            assert_eq!(text(&last, "state"), "completed");
            bench.set.settled().await;
            assert_eq!(ids(&shards(&mut c).await), ["s0"]);
            let all: Vec<i64> = (0..100).collect();
            assert_eq!((keys(&mut c, "c").await, keys(&mut c, "plain").await.len()), (all, 10));
            for i in 0..3 {
                let mut member = bench.set.connect(i).await;
                let mut find = doc! { "find": "c" };
                find.push("$readPreference", doc! { "mode": "nearest" });
                bench
                    .set
                    .until("what is dropped is dropped everywhere", async |_| {
                        let mut member = bench.set.connect(i).await;
                        member.all(find.clone()).await.is_empty()
                    })
                    .await;
                assert!(member.all(find).await.is_empty());
            }
            bench.ok(doc! { "balancerStop": 1, "$db": "admin" }).await;
            bench.ok(doc! { "dropDatabase": 1, "$db": "test" }).await;
        }
        bench.shut_down().await;
    });
}

/// The config servers are donor and recipient in turns, and decide who owns the range: all of it ends with their primary.
#[test]
fn whatever_the_primary_does_before_each_step_of_a_move_nothing_is_lost() {
    run(async {
        let (mut bench, mut c) = Bench::of(1).await;
        bench.ok(command(FROM)).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "config", "$db": "admin" }).await;
        bench.cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        insert(&mut c, "c", 0..30).await;
        // The steps of a donor and of a recipient by turns, so that all of it takes a minute.
        let mut over = 0;
        for n in 0..STEPS_MAX {
            for (i, to) in ["s0", "config"].into_iter().enumerate() {
                let task = match n % 2 == i {
                    false => bench.until_ok(move_range("c", to, 10, 20)),
                    true => {
                        let member = bench.set.primary().await;
                        bench.set.hang_at(member, n).await;
                        let before = bench.set.entered(member);
                        let task = bench.until_ok(move_range("c", to, 10, 20));
                        let hung = bench.set.hangs(member, before, &task).await;
                        over += usize::from(!hung);
                        bench.strike(member, hung, n / 2 % 2 == 0).await;
                        task
                    }
                };
                task.await.unwrap();
                bench.set.settled().await;
                bench.until_nothing_is_left().await;
                let mut c = bench.cluster.router(0).await;
                let key = 1000 + 2 * n as i64 + i as i64;
                insert(&mut c, "c", key..key + 1).await;
                let seen = keys(&mut c, "c").await;
                assert_eq!(seen.len() as i64, key - 1000 + 31, "step {n} to {to}: {seen:?}");
                let here = bench.here("c").await.iter().filter(|k| (10..20).contains(*k)).count();
                assert_eq!(here, 10 * i, "step {n} to {to}");
            }
            if over == 2 {
                assert!(n > 16, "{n} steps only");
                return bench.shut_down().await;
            }
        }
        panic!("it does not end");
    });
}
