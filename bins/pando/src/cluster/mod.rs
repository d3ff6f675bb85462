//! `pando up --shards N`: a sharded cluster on this machine, each server and each router a process of its own.
//!
//! ```text
//!   check the ground ─► servers, as sets ─► routers ─► add shards ─► watch ─► Ctrl-C: routers, shards, config servers
//! ```
//!
//! * [`plan`] — who is there, on which ports, in which folders;
//! * [`shards`] — what is asked through a router: shards are added, chunks are counted;
//! * [`status`] — the table.
//!
//! Sets are started, watched and stopped as in [`crate::set`].

mod plan;
mod shards;
mod status;

pub(crate) use plan::{Plan, Wanted};

use crate::admin::{Admin, Made};
use crate::set::process::Process;
use crate::set::restart::Restarts;
use crate::set::status::{Asks, Show, Watch, room, tell};
use crate::set::{self, TICK, begin, keep, stop};
use pando_env::{Env, Log};
use pando_env_tokio::RealNet;
use pando_env_tokio::process::Signals;
use pando_rpc::{Options, Pool};
use shards::Chunks;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) fn up(plan: Plan) -> u8 {
    let binary = plan.check();
    set::to_the_end(&plan.home, binary, |binary| run(&plan, binary))
}

async fn run(plan: &Plan, binary: PathBuf) -> Result<(), String> {
    let mut signals = Signals::new().map_err(|e| format!("signals cannot be watched: {e}"))?;
    let env = pando_env_tokio::env(&plan.home, Log::none(), RealNet::default()).map_err(|e| e.to_string())?;
    let env = match &plan.tls {
        Some(tls) => tls.on(env)?,
        None => env,
    };
    let login = plan.admin.as_ref().map(Admin::login).unwrap_or_default();
    let pool = Pool::new(env.clone(), Options { name: "pando up", login, ..Options::default() });
    let processes = plan.processes(&binary);
    let mut cluster = Cluster { plan, env: env.clone(), pool, processes };
    let ended = stop::unless_asked(&mut signals, cluster.serve()).await.unwrap_or(Ok(()));
    tell("\nStopping.");
    // A router asks shards, and a shard asks config servers: each goes before whom it asks.
    let (servers, routers) = cluster.processes.split_at_mut(plan.servers());
    let (config, shards) = servers.split_at_mut(plan.config.members);
    for group in [routers, shards, config] {
        stop::stop(&env, &mut signals, group).await;
    }
    ended
}

struct Cluster<'a> {
    plan: &'a Plan,
    env: Env,
    pool: Pool,
    /// Of the config servers, of each shard, the routers.
    processes: Vec<Process>,
}

impl Cluster<'_> {
    async fn serve(&mut self) -> Result<(), String> {
        let (servers, routers) = self.processes.split_at_mut(self.plan.servers());
        servers.iter_mut().try_for_each(Process::start)?;
        begin::reach(&self.env, &self.pool, servers).await?;
        for set in self.plan.sets() {
            begin::initiate(&self.pool, set).await?;
        }
        for set in self.plan.sets() {
            begin::wait_primary(&self.env, &self.pool, set).await?;
        }
        routers.iter_mut().try_for_each(Process::start)?;
        begin::reach(&self.env, &self.pool, routers).await?;
        let router = self.plan.router(0);
        let made = match &self.plan.admin {
            Some(admin) => Some(admin.create(&self.env, &self.pool, std::slice::from_ref(&router)).await?),
            None => None,
        };
        shards::add(&self.pool, &router, &self.plan.shards).await?;
        self.greet(made.as_ref());
        self.watch().await
    }

    fn greet(&self, made: Option<&Made>) {
        let plan = self.plan;
        let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        tell(&format!(
            "A cluster of {}, {} and {} is running.\n",
            count(plan.shards.len(), "shard"),
            count(plan.config.members, "config server"),
            count(plan.routers.len(), "router")
        ));
        let (home, uri) = (plan.home.display(), plan.uri(made));
        tell(&format!("  connect   {uri}\n  data      {home}"));
        if let Some(made) = made {
            tell(made.advice());
        }
        tell(&format!("  logs      {home}/*/member*/pandod.log, {home}/router*/pandos.log"));
        tell(&format!(
            "\nTry it:\n\n  mongosh \"{uri}\" --eval 'sh.shardCollection(\"test.c\", {{_id: \"hashed\"}})'"
        ));
        tell("\nCtrl-C stops all of them; the data stays.\n");
    }

    /// Until the user stops it.
    async fn watch(&mut self) -> Result<(), String> {
        let hosts: Vec<String> = self.processes.iter().map(|p| p.host().to_owned()).collect();
        let watch = Arc::new(Watch::new(hosts));
        for i in 0..self.processes.len() {
            let asks = if i < self.plan.servers() { Asks::Member } else { Asks::Router };
            watch.clone().follow(&self.env, self.pool.clone(), i, asks);
        }
        let chunks = Arc::new(Chunks::default());
        chunks.clone().follow(&self.env, self.pool.clone(), self.plan.router(0));
        let mut restarts = Restarts::new(self.processes.len(), self.env.clock.mono());
        let mut show = Show::new();
        loop {
            keep::look(&mut self.processes, &mut restarts, self.env.clock.mono(), (&watch, &mut show));
            let pids: Vec<Option<u32>> = self.processes.iter().map(Process::running_pid).collect();
            let groups = status::groups(self.plan, &watch, &pids, &chunks);
            show.state(status::table(&groups, room()), status::facts(&groups));
            self.env.clock.sleep(TICK).await;
        }
    }
}

/// Where routers write their logs.
fn folder_of_router(home: &Path, i: usize) -> PathBuf {
    home.join(format!("router{}", i + 1))
}
