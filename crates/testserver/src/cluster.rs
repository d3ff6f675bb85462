//! A sharded cluster in this process: a config server, shards of one member, routers.

use crate::{Client, Running, Set, World, pause, spawn};
use pando_audit::AuditLog;
use pando_auth::{ClusterAuth, ClusterAuthMode, ClusterKeys, Keyfile};
use pando_bson::{Document, doc};
use pando_command::Params;
use pando_command::roles::ClusterRole;
use pando_router::{ConfigDb, Router};
use pando_shell::admission::Admission;
use pando_shell::{Service, Stop, listener};
use std::sync::Arc;

/// Router processes share nothing with each other.
struct RunningRouter {
    world: World,
    router: Arc<Router>,
    port: u16,
    stop: Stop,
}

/// The one user of [`Cluster::with_logins`].
pub const ROOT: (&str, &str) = ("root", "secret");

/// The sets are called `c`, and `s0`, `s1`, …, as the shards are.
pub struct Cluster {
    /// What its nodes log in to each other with; `None` = nobody logs in.
    key: Option<&'static str>,
    /// Of config server and shards together.
    audit: Option<Arc<AuditLog>>,
    world: World,
    config: Option<Running>,
    /// Config servers that somebody else has started.
    configdb: Option<String>,
    shards: Vec<(World, Option<Running>)>,
    routers: Vec<RunningRouter>,
}

/// As if each node had been started with a keyfile of this key.
fn keys(key: &'static str) -> Arc<ClusterAuth> {
    let read = move || Keyfile::parse("key", key);
    let keys = ClusterKeys::read(Box::new(read)).expect("a key");
    Arc::new(ClusterAuth::new(ClusterAuthMode::KeyFile, Some(keys)))
}

/// What a process is to be: the set it is of, its role in the cluster, its key, and where it records events.
type Part<'p> = (&'p str, ClusterRole, Option<&'static str>, Option<Arc<AuditLog>>);

async fn start(world: &World, port: u16, (set, role, key, audit): Part<'_>) -> Running {
    let set = set.to_owned();
    world
        .start_at(port, |c| {
            if let Some(key) = key {
                (c.asks_for_logins, c.signs_cluster_times, c.cluster_auth) = (true, true, keys(key));
            }
            c.audit = audit;
            c.repl_set = Some(set);
            c.cluster_role = Some(role);
            c.auto_initiate = Some(format!("127.0.0.1:{}", c.port));
        })
        .await
}

/// Its listener goes when its task is next awake.
async fn abandon(running: Running) {
    let port = running.port;
    running.abandon();
    while std::net::TcpListener::bind(("127.0.0.1", port)).is_err() {
        pause(10).await;
    }
}

async fn start_router(
    configdb: ConfigDb,
    key: Option<&'static str>,
    change: impl FnOnce(&mut pando_router::Config),
) -> RunningRouter {
    let world = World::new();
    let env = world.env();
    let bound = listener::bind(&env, &["127.0.0.1".to_owned()], 0, None).await.expect("a free port");
    let port = bound.port();
    let params = Params::new();
    params.set_at_startup("enableTestCommands", "1").expect("a known parameter");
    let mut config = pando_router::Config::new(configdb, port);
    if let Some(key) = key {
        (config.asks_for_logins, config.cluster_auth) = (true, keys(key));
    }
    change(&mut config);
    let router = Router::start(env, config, params).await.expect("the router starts");
    let stop = Stop::new();
    let service = Service::new(router.clone(), |router: &Router| &router.registry);
    bound.serve(&service, Admission::bounded(1000), &stop);
    RunningRouter { world, router, port, stop }
}

impl Cluster {
    /// All shards are added.
    pub async fn of(shards: usize, routers: usize) -> Cluster {
        Cluster::started(shards, routers, None, None).await
    }
    /// The same of nodes that log in to each other, and whose clients log in; [`ROOT`] may everything.
    pub async fn with_logins(shards: usize, routers: usize) -> Cluster {
        Cluster::started(shards, routers, Some("one key of all"), None).await
    }
    /// The same; config server and shards record events.
    pub async fn audited(shards: usize, routers: usize, log: Arc<AuditLog>) -> Cluster {
        Cluster::started(shards, routers, Some("one key of all"), Some(log)).await
    }
    async fn started(
        shards: usize,
        routers: usize,
        key: Option<&'static str>,
        audit: Option<Arc<AuditLog>>,
    ) -> Cluster {
        let world = World::new();
        let config = start(&world, 0, ("c", ClusterRole::Config, key, audit.clone())).await;
        let (config, none) = (Some(config), Vec::new());
        let cluster =
            Cluster { key, audit, world, config, configdb: None, shards: none, routers: Vec::new() };
        cluster.complete(shards, routers, key).await
    }
    /// The same with config servers of several members, which the caller has started and ends.
    pub async fn led_by(config: &Set, shards: usize, routers: usize) -> Cluster {
        let hosts: Vec<String> = (0..config.members.len()).map(|i| config.host(i)).collect();
        let cluster = Cluster {
            key: None,
            audit: None,
            world: World::new(),
            config: None,
            configdb: Some(format!("rs/{}", hosts.join(","))),
            shards: Vec::new(),
            routers: Vec::new(),
        };
        cluster.complete(shards, routers, None).await
    }
    async fn complete(self, shards: usize, routers: usize, key: Option<&'static str>) -> Cluster {
        let mut cluster = self;
        for _ in 0..shards {
            cluster.start_shard(key).await;
        }
        for _ in 0..routers {
            let router = cluster.start_router(|_| {}).await;
            cluster.routers.push(router);
        }
        let mut c = Client::connect(cluster.routers[0].port).await;
        if key.is_some() {
            let create = doc! { "createUser": ROOT.0, "pwd": ROOT.1, "roles": ["root"], "$db": "admin" };
            c.ok(create).await;
            c.log_in("admin", ROOT.0, ROOT.1).await;
        }
        for i in 0..shards {
            c.ok(doc! { "addShard": cluster.shard_host(i), "$db": "admin" }).await;
        }
        cluster
    }
    /// A set that could be added; its number.
    pub async fn start_shard(&mut self, key: Option<&'static str>) -> usize {
        let (world, i) = (World::new(), self.shards.len());
        let running = start(&world, 0, (&format!("s{i}"), ClusterRole::Shard, key, self.audit.clone())).await;
        self.shards.push((world, Some(running)));
        i
    }
    /// As `addShard` takes it.
    pub fn shard_host(&self, i: usize) -> String {
        format!("s{i}/127.0.0.1:{}", self.shard_port(i))
    }
    /// A set that was started with the role of a shard becomes one, under the name of the set.
    pub async fn add(&self, set: &Set) {
        let hosts: Vec<String> = (0..set.members.len()).map(|i| set.host(i)).collect();
        let host = format!("rs/{}", hosts.join(","));
        self.router(0).await.ok(doc! { "addShard": host, "$db": "admin" }).await;
    }
    /// What routers are told of the config servers, as long as those are where they are now.
    fn configdb(&self) -> ConfigDb {
        let own = || format!("c/127.0.0.1:{}", self.config_port());
        ConfigDb::parse(&self.configdb.clone().unwrap_or_else(own)).expect("a set")
    }
    async fn start_router(&self, change: impl FnOnce(&mut pando_router::Config)) -> RunningRouter {
        start_router(self.configdb(), self.key, change).await
    }
    /// One more router, which begins while there is no config server; that comes while it waits. Its number.
    pub async fn add_router_before_config_server(&mut self) -> usize {
        let (configdb, key) = (self.configdb(), self.key);
        let port = self.lose_config_server().await;
        let starting = spawn(start_router(configdb, key, |_| {}));
        pause(300).await;
        assert!(!starting.is_finished(), "a router without config servers");
        self.find_config_server(port).await;
        self.routers.push(starting.await.expect("the router starts"));
        self.routers.len() - 1
    }
    /// One more router, which knows nothing; its number.
    pub async fn add_router(&mut self) -> usize {
        self.add_router_with(|_| {}).await
    }
    /// The same, started with `change` made to what it is told.
    pub async fn add_router_with(&mut self, change: impl FnOnce(&mut pando_router::Config)) -> usize {
        let router = self.start_router(change).await;
        self.routers.push(router);
        self.routers.len() - 1
    }
    /// A connection to a router, of somebody who may everything.
    pub async fn router(&self, i: usize) -> Client {
        let mut c = self.stranger(i).await;
        if self.key.is_some() {
            c.log_in("admin", ROOT.0, ROOT.1).await;
        }
        c
    }
    /// A connection to a router on which nobody has logged in.
    pub async fn stranger(&self, i: usize) -> Client {
        Client::connect(self.routers[i].port).await
    }
    /// Lets a router ask at once whether users or roles have changed, as it does every half minute.
    pub async fn look_for_changes(&self, i: usize) {
        self.routers[i].router.look_for_changes().await;
    }
    /// Where a router listens.
    pub fn router_port(&self, i: usize) -> u16 {
        self.routers[i].port
    }
    pub fn config_port(&self) -> u16 {
        self.config.as_ref().expect("it runs").port
    }
    pub fn shard_port(&self, i: usize) -> u16 {
        self.shards[i].1.as_ref().expect("it runs").port
    }
    /// A connection to a shard, past all routers.
    pub async fn shard(&self, i: usize) -> Client {
        Client::connect(self.shard_port(i)).await
    }
    pub async fn config_server(&self) -> Client {
        self.config.as_ref().expect("it runs").connect().await
    }
    /// A shard ends where it is, and comes back.
    pub async fn restart_shard(&mut self, i: usize) {
        let port = self.shard_port(i);
        if let Some(running) = self.shards[i].1.take() {
            abandon(running).await;
        }
        let again = start(
            &self.shards[i].0,
            port,
            (&format!("s{i}"), ClusterRole::Shard, self.key, self.audit.clone()),
        )
        .await;
        self.shards[i].1 = Some(again);
    }
    /// Nobody knows any more who owns what; returns where the config server was.
    pub async fn lose_config_server(&mut self) -> u16 {
        let running = self.config.take().expect("it runs");
        let port = running.port;
        abandon(running).await;
        port
    }
    /// It comes back.
    pub async fn find_config_server(&mut self, port: u16) {
        self.config =
            Some(start(&self.world, port, ("c", ClusterRole::Config, self.key, self.audit.clone())).await);
    }
    /// The config server ends where it is, and comes back.
    pub async fn restart_config_server(&mut self) {
        let port = self.lose_config_server().await;
        self.find_config_server(port).await;
    }
    /// The same command everywhere: a collection that is sharded by `key`.
    pub async fn shard_collection(&self, ns: &str, key: Document) {
        let mut c = self.router(0).await;
        c.ok(doc! { "shardCollection": ns, "key": key, "$db": "admin" }).await;
    }
    pub async fn shut_down(self) {
        for r in self.routers {
            r.router.stop();
            r.stop.stop();
            drop(r.world);
        }
        for (_, running) in self.shards {
            if let Some(running) = running {
                running.shut_down().await;
            }
        }
        if let Some(config) = self.config {
            config.shut_down().await;
        }
    }
}
