//! The machines of the cluster, and the client who stands outside.

use super::cost::{Reading, Row};
use super::{Options, Report};
use crate::client::Client;
use crate::{Exit, FaultyDisk, Machine, NetOptions, Node, ProcessId, RouterNode, World};
use pando_bson::{Bson, Document, doc};
use pando_command::roles::ClusterRole;
use pando_env::Env;
use pando_router::ConfigDb;
use std::collections::BTreeMap;

/// Ports, and machines: of routers, config servers and shards.
const FIRST_ROUTER: u16 = 27_100;
const FIRST_CONFIG: u16 = 27_210;
const FIRST_SHARD: u16 = 28_000;
/// Where the client is.
const CLIENT: Machine = Machine(100);
/// `--maxConns`: every shard has some to the config servers.
const CONNECTIONS: usize = 20_000;
/// Files of the logs, all of them, and rows before they go to tables: there are many machines, this one has to hold all of them, and
/// its disks keep everything twice.
const LOG_SEGMENT_BYTES: u64 = 64 << 10;
const OPLOG_BYTES: u64 = 256 << 10;
const MEMTABLE_BYTES: usize = 8 << 20;
/// Of the log, so many lines are told with a failure.
const LINES_TOLD: usize = 40;

pub(super) struct Run {
    pub(super) options: Options,
    pub(super) world: World,
    pub(super) config: Vec<Node>,
    pub(super) shards: Vec<Node>,
    /// One more, which is added at last.
    pub(super) spare: Node,
    pub(super) routers: Vec<RouterNode>,
    /// The client's process, its view of the world, and its connections to routers while no command is under way.
    pub(super) outside: ProcessId,
    pub(super) env: Env,
    pub(super) clients: BTreeMap<usize, Client>,
    pub(super) rows: Vec<Row>,
    pub(super) connections: usize,
    pub(super) connections_of_config: usize,
    pub(super) router_bytes: u64,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.clients.clear();
        self.world.sim.end();
    }
}

fn member(world: &World, seed: u64, set: &str, role: ClusterRole, port: u16) -> Node {
    let disk = FaultyDisk::new(seed.wrapping_mul(1 << 16).wrapping_add(u64::from(port)));
    let mut node = Node::member(world, disk, port);
    set.clone_into(&mut node.set);
    node.role = Some(role);
    node.contains_panics = true;
    node.connections = CONNECTIONS;
    node.storage.log_segment_bytes = Some(LOG_SEGMENT_BYTES);
    node.storage.oplog_bytes_max = OPLOG_BYTES;
    node.storage.memtable_bytes = MEMTABLE_BYTES;
    node.boot();
    node
}

/// The name of a shard, and of its set.
pub(super) fn shard_name(i: usize) -> String {
    format!("s{i:04}")
}

impl Run {
    pub(super) fn new(seed: u64, options: &Options) -> Run {
        let world = World::new(seed, NetOptions::default());
        world.sim.set_processors(u32::from(options.shards) + u32::from(options.config_members));
        let config = (0..options.config_members)
            .map(|i| member(&world, seed, "c", ClusterRole::Config, FIRST_CONFIG + i))
            .collect::<Vec<Node>>();
        let shards = (0..options.shards)
            .map(|i| member(&world, seed, &shard_name(i.into()), ClusterRole::Shard, FIRST_SHARD + i))
            .collect::<Vec<Node>>();
        let n = options.shards;
        let spare = member(&world, seed, &shard_name(n.into()), ClusterRole::Shard, FIRST_SHARD + n);
        let outside = world.sim.start_process();
        let env = world.env_at(CLIENT, outside, config[0].disk.clone());
        Run {
            options: *options,
            world,
            config,
            shards,
            spare,
            routers: Vec::new(),
            outside,
            env,
            clients: BTreeMap::new(),
            rows: Vec::new(),
            connections: 0,
            connections_of_config: 0,
            router_bytes: 0,
        }
    }
    /// One more router, which then starts.
    pub(super) fn add_router(&mut self) -> usize {
        let hosts = self.config.iter().map(Node::addr).collect();
        let configdb = ConfigDb { set: "c".to_owned(), hosts };
        let i = self.routers.len();
        let mut router = RouterNode::new(&self.world, FIRST_ROUTER + i as u16, configdb);
        router.boot();
        self.routers.push(router);
        i
    }
    /// How many shards there are.
    pub(super) fn n(&self) -> i64 {
        self.shards.len() as i64
    }

    /// Does something so many times, and writes down what that costs the router.
    pub(super) fn step<T>(
        &mut self,
        name: &'static str,
        times: u64,
        act: impl FnOnce(&mut Run) -> Result<T, String>,
    ) -> Result<T, String> {
        self.step_at(0, name, times, act)
    }
    /// The same of another router.
    pub(super) fn step_at<T>(
        &mut self,
        router: usize,
        name: &'static str,
        times: u64,
        act: impl FnOnce(&mut Run) -> Result<T, String>,
    ) -> Result<T, String> {
        let at = (self.routers[router].machine(), self.routers[router].process());
        let before = Reading::now(&self.world, at, self.options.outside);
        let done = act(self).map_err(|why| format!("{name}: {why}"))?;
        let row = Reading::now(&self.world, at, self.options.outside).since(&before, name, times);
        (self.options.tell)(&row);
        self.rows.push(row);
        Ok(done)
    }
    /// How many connections the first router and the config servers' primary have.
    pub(super) fn look_around(&mut self) {
        self.connections = self.world.net.open_connections(self.routers[0].machine());
        self.connections_of_config = self.world.net.open_connections(self.config[0].machine());
    }

    /// No process has ended that nobody has ended.
    pub(super) fn check_processes(&mut self) -> Result<(), String> {
        let mut problems: Vec<String> = Vec::new();
        for panic in self.world.sim.take_panics() {
            problems.push(format!("a server panicked in \"{}\": {}", panic.task, panic.why));
        }
        for node in self.config.iter().chain(&self.shards).chain([&self.spare]) {
            if let Some(Exit::Failed(why)) = node.exit() {
                problems.push(format!("{} ended by itself: {why}", node.set));
            }
        }
        problems
            .extend(self.routers.iter().filter_map(|r| r.exit()).map(|e| format!("a router ended: {e:?}")));
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }
    pub(super) fn explained(&mut self, why: &str) -> String {
        let ended = self.check_processes().err().unwrap_or_default();
        let log = self.world.log_lines();
        let last = log[log.len().saturating_sub(LINES_TOLD)..].join("\n");
        format!("{last}\n{why}\n{ended}")
    }
    pub(super) fn report(&mut self) -> Report {
        Report {
            shards: self.n() as u64,
            rows: std::mem::take(&mut self.rows),
            connections: self.connections,
            connections_of_config: self.connections_of_config,
            router_bytes: self.router_bytes,
            time: self.world.sim.now(),
            polls: self.world.sim.polls(),
            trace: self.world.sim.trace(),
        }
    }
}

/// The first configuration of a set.
pub(super) fn set_config(nodes: &[Node]) -> Document {
    let members = nodes.iter().enumerate().map(|(i, node)| {
        let host = node.addr();
        Bson::from(doc! { "_id": i as i32, "host": host.as_str() })
    });
    let mut config = doc! { "_id": nodes[0].set.as_str() };
    if nodes[0].role == Some(ClusterRole::Config) {
        config.push("configsvr", true);
    }
    config.push("members", members.collect::<Vec<_>>());
    config
}
