//! `pando up --members N`: a replica set on this machine, each member a process of its own.
//!
//! ```text
//!   check the ground ─► start members ─► initiate ─► watch: a member that ended is started again ─► Ctrl-C: stop all
//! ```
//!
//! * [`ground`] — what is checked before anything is started, in words that say what to do;
//! * [`process`] — one child process;
//! * [`begin`] — until they answer and are a set;
//! * [`keep`] — those that ended are started again, [`restart`] — when (pure);
//! * [`status`] — what the members say about themselves, as a table;
//! * [`stop`] — the end.

pub(crate) mod begin;
pub(crate) mod ground;
pub(crate) mod keep;
pub(crate) mod process;
pub(crate) mod restart;
pub(crate) mod status;
pub(crate) mod stop;

use crate::admin::{Admin, Made};
use crate::tls::Local;
use pando_base::limits;
use pando_bson::Document;
use pando_env::{Env, Log};
use pando_env_tokio::process::Signals;
use pando_env_tokio::{RealNet, runtime};
use pando_rpc::{Options, Pool};
use pandod::exit;
use process::Process;
use restart::Restarts;
use status::{Asks, Show, Watch, complain, tell};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often ended processes are looked for.
pub(crate) const TICK: Duration = Duration::from_millis(limits::SET_TICK_MS);
pub(crate) const CALL: Duration = Duration::from_millis(limits::SET_CALL_MS);

/// What a set is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// For itself.
    Alone,
    Config,
    Shard,
}

impl Role {
    fn option(self) -> Option<&'static str> {
        match self {
            Role::Alone => None,
            Role::Config => Some("--configsvr"),
            Role::Shard => Some("--shardsvr"),
        }
    }
}

/// What the command line asked for.
pub(crate) struct Plan {
    pub(crate) members: usize,
    pub(crate) set: String,
    pub(crate) role: Role,
    /// `./pando-data/<set>`.
    pub(crate) home: PathBuf,
    pub(crate) first_port: u16,
    /// `--tls`.
    pub(crate) tls: Option<Local>,
    /// `--auth`.
    pub(crate) admin: Option<Admin>,
    /// Options every member gets.
    pub(crate) options: Vec<String>,
}

impl Plan {
    pub(crate) fn host(&self, i: usize) -> String {
        format!("127.0.0.1:{}", self.port(i))
    }
    pub(crate) fn hosts(&self) -> Vec<String> {
        (0..self.members).map(|i| self.host(i)).collect()
    }
    pub(crate) fn port(&self, i: usize) -> u16 {
        self.first_port + i as u16
    }
    pub(crate) fn folder(&self, i: usize) -> PathBuf {
        self.home.join(format!("member{}", i + 1))
    }
    /// Its processes, not started yet.
    pub(crate) fn processes(&self, binary: &Path) -> Vec<Process> {
        (0..self.members).map(|i| Process::member(self, binary, i)).collect()
    }
    fn uri(&self, made: Option<&Made>) -> String {
        let tls = self.tls.as_ref().map(Local::of_uri).unwrap_or_default();
        let user = made.map(Made::of_uri).unwrap_or_default();
        format!("mongodb://{user}{}/?replicaSet={}{tls}", self.hosts().join(","), self.set)
    }
}

pub(crate) fn up(plan: Plan) -> u8 {
    let binary = ground::check(&plan);
    to_the_end(&plan.home, binary, |binary| run(&plan, binary))
}

/// Runs what stands on checked ground until it ends, and says how that was.
pub(crate) fn to_the_end<F: Future<Output = Result<(), String>>>(
    home: &Path,
    binary: Result<PathBuf, String>,
    run: impl FnOnce(PathBuf) -> F,
) -> u8 {
    let binary = match binary {
        Ok(binary) => binary,
        Err(e) => {
            complain(&e);
            return exit::CANNOT_START;
        }
    };
    let ended = match runtime() {
        Ok(runtime) => {
            let ended = runtime.block_on(run(binary));
            runtime.shutdown_background();
            ended
        }
        Err(e) => Err(format!("the runtime cannot be started: {e}")),
    };
    match ended {
        Ok(()) => {
            tell(&format!("Stopped cleanly; the data stays in {}.", home.display()));
            exit::CLEAN
        }
        Err(e) => {
            complain(&e);
            exit::FAILED
        }
    }
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
    let mut members = plan.processes(&binary);
    let started = members.iter_mut().try_for_each(Process::start);
    let ended = match started {
        Err(e) => Err(e),
        Ok(()) => {
            let mut set = Set { plan, env: env.clone(), pool, members: &mut members };
            stop::unless_asked(&mut signals, set.serve()).await.unwrap_or(Ok(()))
        }
    };
    tell("\nStopping.");
    stop::stop(&env, &mut signals, &mut members).await;
    ended
}

struct Set<'a> {
    plan: &'a Plan,
    env: Env,
    pool: Pool,
    members: &'a mut Vec<Process>,
}

impl Set<'_> {
    async fn serve(&mut self) -> Result<(), String> {
        begin::reach(&self.env, &self.pool, self.members).await?;
        begin::initiate(&self.pool, self.plan).await?;
        let made = match &self.plan.admin {
            Some(admin) => Some(admin.create(&self.env, &self.pool, &self.plan.hosts()).await?),
            None => None,
        };
        let uri = self.plan.uri(made.as_ref());
        tell(&format!("A replica set of {} members is running.\n", self.plan.members));
        let home = self.plan.home.display();
        tell(&format!("  connect   {uri}\n  data      {home}\n  logs      {home}/member*/pandod.log"));
        if let Some(made) = &made {
            tell(made.advice());
        }
        tell("\nCtrl-C stops all members; the data stays.\n");
        self.watch().await
    }

    /// Until the user stops it.
    async fn watch(&mut self) -> Result<(), String> {
        let watch = Arc::new(Watch::new(self.plan.hosts()));
        for i in 0..self.plan.members {
            watch.clone().follow(&self.env, self.pool.clone(), i, Asks::Member);
        }
        let mut restarts = Restarts::new(self.members.len(), self.env.clock.mono());
        let mut show = Show::new();
        loop {
            keep::look(self.members, &mut restarts, self.env.clock.mono(), (&watch, &mut show));
            let pids: Vec<Option<u32>> = self.members.iter().map(Process::running_pid).collect();
            let rows = watch.rows(0, &pids);
            show.state(status::table(&rows), status::facts(&rows));
            self.env.clock.sleep(TICK).await;
        }
    }
}

pub(crate) fn command(mut d: Document) -> pando_bson::DocBuf {
    d.push("$db", "admin");
    d.to_raw()
}
