//! A simulated machine that runs one `pandod`: what the binary's `main` does, in a process that can be killed.

use crate::executor::{ProcessId, lock};
use crate::folder::Folder;
use crate::links::Machine;
use crate::login;
use crate::lying_disk::LyingDisk;
use crate::world::World;
use pando_auth::{ClusterAuth, ClusterAuthMode, ClusterKeys};
use pando_command::roles::ClusterRole;
use pando_encryption::disk::SealedDisk;
use pando_encryption::store::{self, Wanted};
use pando_encryption::{KeyFiles, MasterKey};
use pando_env::{Disk, Env};
use pando_server::{Config, Server};
use pando_shell::admission::Admission;
use pando_shell::listener;
use pando_storage::testing::{FaultyDisk, SeededRng};
use pando_storage::{Backend, Options};
use std::sync::{Arc, Mutex, Weak};

pub const PORT: u16 = 27017;
/// Small, so that checkpoints happen within seconds of virtual time.
const MEMTABLE_BYTES: usize = 48 * 1024;

/// How a process ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    Clean,
    /// It could not start, or something happened that nothing can be done about.
    Failed(String),
}

/// A machine: its disk outlives its processes.
pub struct Node {
    world: World,
    pub disk: Arc<FaultyDisk>,
    process: ProcessId,
    exit: Arc<Mutex<Option<Exit>>>,
    /// The disk does not keep what it says it keeps.
    lying: bool,
    port: u16,
    /// Waits to be initiated.
    member: bool,
    /// The name of its set.
    pub set: String,
    /// What its set is in a cluster.
    pub role: Option<ClusterRole>,
    /// Counts starts.
    boots: u32,
    server: Arc<Mutex<Weak<Server>>>,
    /// As the next boot takes them.
    pub storage: Options,
    pub majority_reads: bool,
    /// `--maxConns`.
    pub connections: usize,
    /// A new member copies another one's files; its process then ends to start again.
    pub copies_files: bool,
    /// Members log in to each other, and clients to them.
    pub asks_for_logins: bool,
    /// Its folder is encrypted, from its first boot on.
    pub encrypted: bool,
    /// A panic of the server is the end of its process alone.
    pub contains_panics: bool,
    /// `--serverless`: it learns the name of its set, and may leave that set for one of its own.
    pub serverless: bool,
    /// Parameters that it starts with.
    pub params: Vec<(&'static str, String)>,
    /// Where log-structured tables lie.
    folder: Option<Folder>,
}

impl Node {
    pub fn new(world: &World, disk: FaultyDisk, lying: bool) -> Node {
        let process = world.sim.start_process();
        let (world, disk) = (world.clone(), Arc::new(disk));
        Node {
            world,
            disk,
            process,
            exit: Arc::default(),
            lying,
            port: PORT,
            member: false,
            set: "rs0".to_owned(),
            role: None,
            boots: 0,
            server: Arc::default(),
            storage: Options { backend: Backend::Mem, memtable_bytes: MEMTABLE_BYTES, ..Options::default() },
            majority_reads: true,
            connections: 1000,
            copies_files: false,
            asks_for_logins: false,
            encrypted: false,
            contains_panics: false,
            serverless: false,
            params: Vec::new(),
            folder: None,
        }
    }
    /// A machine whose server waits for a configuration.
    pub fn member(world: &World, disk: FaultyDisk, port: u16) -> Node {
        Node { port, member: true, ..Node::new(world, disk, false) }
    }
    /// From the next boot on its tables are log-structured ones, in a real folder: what they write survives a loss of power.
    pub fn use_lsm(&mut self) {
        self.storage.backend = Backend::Lsm;
        self.storage.cache_bytes = 1 << 20;
        self.folder = Some(Folder::new());
    }
    /// Its process now.
    pub fn process(&self) -> ProcessId {
        self.process
    }
    pub fn addr(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
    pub fn machine(&self) -> Machine {
        Machine(self.port)
    }
    /// The running server, for those who look inside, once it has started.
    pub fn server(&self) -> Option<Arc<Server>> {
        lock(&self.server).upgrade()
    }
    /// Its disk as its server reads it.
    pub fn encrypted_disk(&self) -> pando_base::Result<SealedDisk> {
        let rng = Arc::new(SeededRng::new(1));
        let keys = store::look(&*self.disk, &master_key(self.port), rng)?;
        Ok(SealedDisk::new(self.disk.clone(), keys))
    }
    /// How often it was started.
    pub fn boots(&self) -> u32 {
        self.boots
    }
    /// Starts the server; it accepts connections some time later.
    pub fn boot(&mut self) {
        self.world.sim.kill(self.process);
        self.process = self.world.sim.start_process();
        self.exit = Arc::default();
        self.server = Arc::default();
        self.boots += 1;
        let me = self.machine();
        self.world.net.links().set_dark(me, false);
        self.world.net.reset_connections(|a, _| a == me);
        if self.contains_panics {
            self.world.sim.contain(self.process);
        }
        let disk: Arc<dyn Disk> = match &self.folder {
            Some(folder) => Arc::new(folder.beside(self.disk.clone())),
            None if self.lying => Arc::new(LyingDisk(self.disk.clone())),
            None => self.disk.clone(),
        };
        let env = self.world.env_at(me, self.process, disk);
        let (exit, server, copies_files) = (self.exit.clone(), self.server.clone(), self.copies_files);
        let encrypted = self.encrypted;
        let mut config = Config {
            port: self.port,
            repl_set: (!self.serverless).then(|| self.set.clone()),
            serverless: self.serverless,
            cluster_role: self.role,
            auto_initiate: (!self.member).then(|| format!("127.0.0.1:{}", self.port)),
            storage: self.storage.clone(),
            majority_reads: self.majority_reads,
            // Small transactions are spread, too.
            writes_per_worker: 1,
            ..Config::default()
        };
        if self.asks_for_logins {
            ask_for_logins(&mut config);
        }
        if self.role == Some(ClusterRole::Shard) {
            for (name, value) in PARAMS_OF_SHARDS {
                config.params.set_at_startup(name, value).expect("it is a parameter");
            }
        }
        for (name, value) in &self.params {
            config.params.set_at_startup(name, value).expect("it is a parameter");
        }
        let connections = self.connections;
        self.world.spawn_main(self.process, "pandod", async move {
            let opened = if encrypted { with_keys(env, config) } else { Ok((env, config)) };
            let served = async {
                let (env, config) = opened?;
                pandod(env, config, (connections, copies_files), server).await
            };
            let how = match served.await {
                Ok(()) => Exit::Clean,
                Err(why) => Exit::Failed(why),
            };
            *lock(&exit) = Some(how);
        });
    }
    /// How the server ended, once it has.
    pub fn exit(&self) -> Option<Exit> {
        lock(&self.exit).clone()
    }
    /// Power is lost: the process is gone and so is what was not synced. Others hear nothing until the next boot.
    pub fn lose_power(&self) {
        self.world.net.links().set_dark(self.machine(), true);
        self.end_process();
        self.disk.crash();
    }
    /// The machine is gone; another one, with an empty disk, has its address.
    pub fn lose_disk(&mut self) {
        self.lose_power();
        let seed = self.world.sim.below(u64::MAX);
        self.disk = Arc::new(FaultyDisk::new(seed));
        self.folder = self.folder.take().map(|_| Folder::new());
    }
    fn end_process(&self) {
        *lock(&self.server) = Weak::new();
        self.world.sim.kill(self.process);
        // A start that was under way found its disk gone: that is how it was killed, not how it ended.
        *lock(&self.exit) = None;
    }
    /// The process is killed; the machine lives on.
    pub fn kill(&self) {
        self.end_process();
        self.disk.kill();
    }
}

/// What has moved away stays so long, for whoever reads it on a secondary; and cursors of routers that are gone, for which a deletion
/// waits.
const PARAMS_OF_SHARDS: [(&str, &str); 2] =
    [("orphanCleanupDelaySecs", "2"), ("cursorTimeoutMillis", "60000")];

fn ask_for_logins(config: &mut Config) {
    let keys = ClusterKeys::fixed(login::KEYFILE).expect("it is a key");
    config.cluster_auth = Arc::new(ClusterAuth::new(ClusterAuthMode::KeyFile, Some(keys)));
    config.asks_for_logins = true;
    config.signs_cluster_times = true;
    let set = config.params.set_at_startup("scramSHA256IterationCount", login::ITERATIONS);
    set.expect("it is a parameter");
}

/// Each machine has a master key of its own.
fn master_key(port: u16) -> KeyFiles {
    let key = MasterKey::new([port as u8; 32]);
    KeyFiles { path: "key".to_owned(), key, replaced: None }
}

/// The world with an encrypted folder.
fn with_keys(env: Env, mut config: Config) -> Result<(Env, Config), String> {
    // Now and then a start brings another data key.
    let new_data_key = env.rng.next_u64().is_multiple_of(4);
    let wanted = Wanted { new_data_key, now_ms: env.clock.wall_ms() as u64 };
    let opened = store::open(&*env.disk, &master_key(config.port), env.rng.clone(), wanted);
    let keys = opened.map_err(|e| e.to_string())?.keys;
    config.storage.keys = Some(keys.clone());
    Ok((SealedDisk::around(env, keys), config))
}

async fn pandod(
    env: Env,
    config: Config,
    (connections, copies_files): (usize, bool),
    shown: Arc<Mutex<Weak<Server>>>,
) -> Result<(), String> {
    let hosts = ["127.0.0.1".to_owned()];
    let bound = listener::bind(&env, &hosts, config.port, None).await.map_err(|e| e.to_string())?;
    let server = Server::start(env, config).await.map_err(|e| e.to_string())?;
    if copies_files {
        let set = server.instance.params.set_at_startup("initialSyncMethod", "fileCopyBased");
        set.map_err(|e| e.to_string())?;
    }
    *lock(&shown) = Arc::downgrade(&server);
    let stop = listener::Stop::new();
    bound.serve(&server.service(), Admission::bounded(connections), &stop);
    server.lifecycle.wait_shutdown_requested().await;
    server.take_leave().await;
    stop.stop();
    server.shutdown().await.map_err(|e| e.to_string())
}
