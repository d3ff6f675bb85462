//! What config servers coordinate, and all shards take part in, while the primary of the config servers ends, or loses its office, before each
//! step.

#![allow(clippy::unwrap_used)]

mod cluster_parameter;
mod feature_version;
mod user_writes;

use pando_bson::{Bson, Document, doc};
use pando_command::roles::ClusterRole;
use pando_testserver::{Client, JoinHandle, Running, STEP, Set, World, pause, spawn};

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
    /// Has two commands done in turns; before step after step of each the primary ends, or steps down.
    async fn every_step(&mut self, commands: [Document; 2], check: impl AsyncFn(&Bench, usize)) {
        let mut n = 0;
        for round in 0..STEPS_MAX {
            let (mut hung_once, mut same) = (false, true);
            for (i, command) in commands.iter().enumerate() {
                let member = self.config.primary().await;
                self.config.hang_at(member, n).await;
                let before = self.config.entered(member);
                let task = self.until_ok(command.clone());
                let hung = self.config.hangs(member, before, &task).await;
                match hung {
                    true => self.strike(member, round % 2 == i).await,
                    false => self.config.fail_point(member, STEP, false).await,
                }
                self.config.settled().await;
                task.await.unwrap();
                self.until_nothing_is_left().await;
                check(self, i).await;
                same &= self.config.primary().await == member;
                hung_once |= hung;
            }
            if !hung_once && same {
                assert!(n > 6, "{n} steps only");
                return;
            }
            n += usize::from(hung_once);
        }
        panic!("it does not end");
    }
    async fn strike(&mut self, member: usize, killed: bool) {
        if killed {
            self.config.kill(member).await;
            self.config.primary().await;
            return self.config.restart(member).await;
        }
        let mut c = self.config.connect(member).await;
        let down = doc! { "replSetStepDown": 2, "secondaryCatchUpPeriodSecs": 1, "force": true };
        c.admin(down).await;
        self.config.fail_point(member, STEP, false).await;
    }
    async fn shut_down(self) {
        self.config.shut_down().await;
        for (_, running) in self.shards {
            running.shut_down().await;
        }
    }
}
