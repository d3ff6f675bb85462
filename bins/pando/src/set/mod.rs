//! `pando up --members N`: a replica set on this machine, each member a process of its own.
//!
//! ```text
//!   check the ground ─► start members ─► initiate ─► watch: a member that ended is started again ─► Ctrl-C: stop all
//! ```
//!
//! * [`ground`] — what is checked before anything is started, in words that say what to do;
//! * [`member`] — one child process;
//! * [`restart`] — when a member that ended is started again (pure);
//! * [`status`] — what the members say about themselves, as a table.

mod ground;
mod member;
mod restart;
mod status;

use crate::admin::{Admin, Made};
use crate::tls::Local;
use member::Member;
use pando_base::limits;
use pando_bson::{Bson, Document, doc};
use pando_env::{Env, Log};
use pando_env_tokio::process::{Asked, Signals};
use pando_env_tokio::{RealNet, runtime};
use pando_rpc::{Options, Pool, Retry};
use pandod::exit;
use restart::Restarts;
use status::{Seen, Show, Watch};
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// How often ended processes are looked for.
const TICK: Duration = Duration::from_millis(limits::SET_TICK_MS);
const CALL: Duration = Duration::from_millis(limits::SET_CALL_MS);

/// What the command line asked for.
pub(crate) struct Plan {
    pub(crate) members: usize,
    pub(crate) set: String,
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
    fn host(&self, i: usize) -> String {
        format!("127.0.0.1:{}", self.port(i))
    }
    fn port(&self, i: usize) -> u16 {
        self.first_port + i as u16
    }
    fn folder(&self, i: usize) -> PathBuf {
        self.home.join(format!("member{}", i + 1))
    }
    fn uri(&self, made: Option<&Made>) -> String {
        let hosts: Vec<String> = (0..self.members).map(|i| self.host(i)).collect();
        let tls = self.tls.as_ref().map(Local::of_uri).unwrap_or_default();
        let user = made.map(Made::of_uri).unwrap_or_default();
        format!("mongodb://{user}{}/?replicaSet={}{tls}", hosts.join(","), self.set)
    }
}

pub(crate) fn up(plan: Plan) -> u8 {
    let binary = match ground::check(&plan) {
        Ok(binary) => binary,
        Err(e) => {
            eprintln!("{e}");
            return exit::CANNOT_START;
        }
    };
    let ended = match runtime() {
        Ok(runtime) => {
            let ended = runtime.block_on(run(&plan, binary));
            runtime.shutdown_background();
            ended
        }
        Err(e) => Err(format!("the runtime cannot be started: {e}")),
    };
    match ended {
        Ok(()) => {
            println!("Stopped cleanly; the data stays in {}.", plan.home.display());
            exit::CLEAN
        }
        Err(e) => {
            eprintln!("{e}");
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
    let pool = Pool::new(
        env.clone(),
        Options {
            name: "pando up",
            login: plan.admin.as_ref().map(Admin::login).unwrap_or_default(),
            ..Options::default()
        },
    );
    let mut members: Vec<Member> = (0..plan.members).map(|i| Member::new(plan, &binary, i)).collect();
    let started = members.iter_mut().try_for_each(Member::start);
    let ended = match started {
        Err(e) => Err(e),
        Ok(()) => {
            let mut set = Set { plan, env: env.clone(), pool, members: &mut members };
            unless_asked(&mut signals, set.serve()).await.unwrap_or(Ok(()))
        }
    };
    println!("\nStopping.");
    stop(&env, &mut signals, &mut members).await;
    ended
}

/// `fut`, or `None` when the user asks to stop first.
async fn unless_asked<T>(signals: &mut Signals, fut: impl Future<Output = T>) -> Option<T> {
    let (mut fut, mut asked) = (pin!(fut), pin!(stop_asked(signals)));
    std::future::poll_fn(|cx| {
        if asked.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        fut.as_mut().poll(cx).map(Some)
    })
    .await
}

async fn stop_asked(signals: &mut Signals) {
    while signals.next().await == Asked::RotateLog {}
}

struct Set<'a> {
    plan: &'a Plan,
    env: Env,
    pool: Pool,
    members: &'a mut Vec<Member>,
}

impl Set<'_> {
    async fn serve(&mut self) -> Result<(), String> {
        self.wait_reachable().await?;
        self.initiate().await?;
        let made = match &self.plan.admin {
            Some(admin) => {
                let hosts: Vec<String> = (0..self.plan.members).map(|i| self.plan.host(i)).collect();
                Some(admin.create(&self.env, &self.pool, &hosts).await?)
            }
            None => None,
        };
        let uri = self.plan.uri(made.as_ref());
        println!("A replica set of {} members is running.\n", self.plan.members);
        println!(
            "  connect   {uri}\n  data      {}\n  logs      {}/member*/pandod.log",
            self.plan.home.display(),
            self.plan.home.display()
        );
        if let Some(made) = &made {
            println!("{}", made.advice());
        }
        println!("\nCtrl-C stops all members; the data stays.\n");
        self.watch().await
    }

    /// A member that ends before it can be reached will not do better the next time.
    async fn wait_reachable(&mut self) -> Result<(), String> {
        for i in 0..self.members.len() {
            let host = self.plan.host(i);
            let until = self.env.clock.mono() + Duration::from_millis(limits::SET_START_MS);
            while self.pool.call(&host, &command(doc! { "ping": 1 }), Retry::Idempotent, CALL).await.is_err()
            {
                if let Some(how) = self.members[i].ended() {
                    return Err(self.members[i].did_not_start(&how));
                }
                if self.env.clock.mono() > until {
                    let log = self.members[i].log();
                    return Err(format!("{host} does not answer; its log is {}", log.display()));
                }
                self.env.clock.sleep(TICK).await;
            }
        }
        Ok(())
    }

    async fn initiate(&self) -> Result<(), String> {
        let ask = command(doc! { "hello": 1 });
        let hello = self
            .pool
            .call(&self.plan.host(0), &ask, Retry::Idempotent, CALL)
            .await
            .map_err(|f| f.to_string())?;
        let wanted: Vec<String> = (0..self.plan.members).map(|i| self.plan.host(i)).collect();
        if let Some(hosts) = hello.get("hosts").and_then(|v| v.as_array()) {
            let hosts: Vec<&str> = hosts.iter().filter_map(|e| e.value().as_str()).collect();
            if !wanted.iter().all(|w| hosts.contains(&w.as_str())) {
                return Err(ground::another_set(self.plan, &hosts));
            }
            return Ok(());
        }
        let members: Vec<Bson> = wanted
            .iter()
            .enumerate()
            .map(|(i, host)| Bson::Document(doc! { "_id": i as i32, "host": host.as_str() }))
            .collect();
        let config = doc! { "_id": self.plan.set.as_str(), "members": Bson::Array(members) };
        let ask = command(doc! { "replSetInitiate": config });
        let limit = Duration::from_millis(limits::SET_START_MS);
        match self.pool.call(&self.plan.host(0), &ask, Retry::NotIdempotent, limit).await {
            Ok(_) => Ok(()),
            Err(f) if f.error.code == pando_base::ErrorCode::AlreadyInitialized => Ok(()),
            Err(f) => Err(format!("the set cannot be initiated: {f}")),
        }
    }

    /// Until the user stops it.
    async fn watch(&mut self) -> Result<(), String> {
        let hosts: Vec<String> = (0..self.plan.members).map(|i| self.plan.host(i)).collect();
        let watch = Arc::new(Watch::new(hosts.clone()));
        for i in 0..hosts.len() {
            watch.clone().follow(&self.env, self.pool.clone(), i);
        }
        let mut restarts = Restarts::new(self.members.len(), self.env.clock.mono());
        let mut show = Show::new();
        loop {
            let now = self.env.clock.mono();
            for (i, member) in self.members.iter_mut().enumerate() {
                if let Some(how) = member.ended() {
                    let pause = restarts.ended(i, now);
                    watch.set(i, Seen::down());
                    show.say(&format!(
                        "{} ended ({how}); it is started again in {} ms",
                        hosts[i],
                        pause.as_millis()
                    ));
                }
                if restarts.is_due(i, now) {
                    match member.start() {
                        Ok(()) => {
                            show.say(&format!("{} is started again, process {}", hosts[i], member.pid()))
                        }
                        Err(e) => {
                            show.say(&format!("{e}; next try in {} ms", restarts.ended(i, now).as_millis()))
                        }
                    }
                }
            }
            let pids: Vec<Option<u32>> = self.members.iter().map(Member::running_pid).collect();
            show.state(&watch.rows(&pids));
            self.env.clock.sleep(TICK).await;
        }
    }
}

pub(crate) fn command(mut d: Document) -> pando_bson::DocBuf {
    d.push("$db", "admin");
    d.to_raw()
}

/// All members at once; a second Ctrl-C, or a minute, ends the patience.
async fn stop(env: &Env, signals: &mut Signals, members: &mut [Member]) {
    for m in members.iter_mut() {
        m.terminate();
    }
    let until = env.clock.mono() + Duration::from_millis(limits::SET_STOP_MS);
    let wait = async {
        while members.iter_mut().any(Member::is_running) && env.clock.mono() < until {
            env.clock.sleep(TICK).await;
        }
    };
    unless_asked(signals, wait).await;
    for m in members.iter_mut().filter_map(|m| m.is_running().then_some(m)) {
        eprintln!("Process {} does not stop; it is killed. Its log: {}", m.pid(), m.log().display());
        m.kill();
    }
}
