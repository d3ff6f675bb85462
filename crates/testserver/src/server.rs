//! A server in this process, on a folder of its own.

use crate::Client;
use pando_env::{Env, Log};
use pando_server::{Config, Server};
use pando_shell::Stop;
use pando_shell::admission::Admission;
use pando_shell::listener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A data folder; servers come and go on it.
pub struct World {
    dir: PathBuf,
    /// It stays when this value goes.
    keep: bool,
}

impl Default for World {
    fn default() -> Self {
        World::new()
    }
}

impl World {
    /// A new empty folder.
    pub fn new() -> World {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("pando-test-{}-{n}", std::process::id()));
        // Of a process with the same id, which was killed before it could tidy up: its servers would go on here.
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("a folder for the test");
        World { dir, keep: false }
    }
    /// A folder that the caller looks after.
    pub fn at(dir: PathBuf) -> World {
        std::fs::create_dir_all(&dir).expect("a folder for the server");
        World { dir, keep: true }
    }
    pub fn env(&self) -> Env {
        pando_env_tokio::env(&self.dir, Log::none(), pando_env_tokio::RealNet::default())
            .expect("an environment")
    }
    /// Starts a server with `change` applied to the default configuration.
    pub async fn start(&self, change: impl FnOnce(&mut Config)) -> Running {
        self.start_at(0, change).await
    }
    /// The same on a given port.
    pub async fn start_at(&self, port: u16, change: impl FnOnce(&mut Config)) -> Running {
        self.try_start_at(port, change).await.expect("the server starts")
    }
    /// The same where the server may refuse.
    pub async fn try_start_at(
        &self,
        port: u16,
        change: impl FnOnce(&mut Config),
    ) -> pando_base::Result<Running> {
        let env = self.env();
        let bound = listener::bind(&env, &["127.0.0.1".to_owned()], port, None).await.expect("a free port");
        // Small transactions are spread, too.
        let mut config = Config { port: bound.port(), writes_per_worker: 2, ..Config::default() };
        config.params.set_at_startup("enableTestCommands", "1").expect("a known parameter");
        change(&mut config);
        let port = config.port;
        let server = Server::start(env, config).await?;
        let stop = Stop::new();
        bound.serve(&server.service(), Admission::bounded(1000), &stop);
        let problem = watch(server.clone());
        Ok(Running { server, port, stop, problem })
    }
    /// A replica set of one that initiates itself.
    pub async fn start_set(&self) -> Running {
        self.start(|c| {
            c.repl_set = Some("rs".to_owned());
            c.auto_initiate = Some(format!("127.0.0.1:{}", c.port));
        })
        .await
    }
    pub async fn start_standalone(&self) -> Running {
        self.start(|_| {}).await
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// A running server.
pub struct Running {
    pub server: Arc<Server>,
    pub port: u16,
    stop: Stop,
    problem: Arc<Mutex<Option<String>>>,
}

/// Looks at the server's timestamps now and then; what is wrong fails the test when the server ends.
fn watch(server: Arc<Server>) -> Arc<Mutex<Option<String>>> {
    let problem: Arc<Mutex<Option<String>>> = Arc::default();
    let found = problem.clone();
    crate::spawn(async move {
        let mut read = None;
        while !server.lifecycle.is_stopping() {
            let now = server.replication.majority_read_point();
            let back = now.is_some() && now < read;
            let back = back.then(|| format!("a majority read goes back from {read:?} to {now:?}"));
            read = now.or(read);
            if let Some(what) = server.replication.timestamp_problem().or(back) {
                found.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
            }
            crate::pause(5).await;
        }
    });
    problem
}

impl Running {
    fn check_timestamps(&self) {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner).take();
        assert_eq!(problem, None, "timestamps out of order");
    }
    pub async fn connect(&self) -> Client {
        Client::connect(self.port).await
    }
    /// A clean shutdown.
    pub async fn shut_down(self) {
        self.server.take_leave().await;
        self.end().await;
    }
    /// The same without a word to clients and other members.
    pub(crate) async fn end(self) {
        self.check_timestamps();
        self.stop.stop();
        self.server.shutdown().await.expect("a clean shutdown");
    }
    /// Everything stops where it is: nothing more is flushed. (The folder is as a crash would leave it, apart from
    /// what the operating system already has.)
    pub fn abandon(self) {
        self.check_timestamps();
        self.stop.stop();
        self.server.abandon();
    }
}
