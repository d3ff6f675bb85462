//! A simulated machine that runs one `pandos`: what the binary's `main` does, in a process that can be killed.

use crate::executor::{ProcessId, lock};
use crate::links::Machine;
use crate::node::Exit;
use crate::world::World;
use pando_command::Params;
use pando_env::Env;
use pando_router::{Config, ConfigDb, Router};
use pando_shell::admission::Admission;
use pando_shell::{Service, Stop, listener};
use pando_storage::testing::FaultyDisk;
use std::sync::{Arc, Mutex, Weak};

/// `--maxConns`.
const CONNECTIONS: usize = 1000;

/// A machine without anything that outlives its processes.
pub struct RouterNode {
    world: World,
    process: ProcessId,
    exit: Arc<Mutex<Option<Exit>>>,
    port: u16,
    configdb: ConfigDb,
    /// Routers write nothing.
    disk: Arc<FaultyDisk>,
    router: Arc<Mutex<Weak<Router>>>,
    boots: u32,
}

impl RouterNode {
    pub fn new(world: &World, port: u16, configdb: ConfigDb) -> RouterNode {
        RouterNode {
            world: world.clone(),
            process: world.sim.start_process(),
            exit: Arc::default(),
            port,
            configdb,
            disk: Arc::new(FaultyDisk::new(u64::from(port))),
            router: Arc::default(),
            boots: 0,
        }
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
    /// How often it was started.
    pub fn boots(&self) -> u32 {
        self.boots
    }
    /// The running router, for those who look inside, once it serves.
    pub fn router(&self) -> Option<Arc<Router>> {
        lock(&self.router).upgrade()
    }
    /// How it ended by itself, once it has.
    pub fn exit(&self) -> Option<Exit> {
        lock(&self.exit).clone()
    }
    /// Starts the router; it serves once its config servers have answered. A panic is the end of its process alone.
    pub fn boot(&mut self) {
        self.world.sim.kill(self.process);
        self.process = self.world.sim.start_process();
        self.exit = Arc::default();
        self.router = Arc::default();
        self.boots += 1;
        let me = self.machine();
        self.world.net.links().set_dark(me, false);
        self.world.net.reset_connections(|a, _| a == me);
        self.world.sim.contain(self.process);
        let env = self.world.env_at(me, self.process, self.disk.clone());
        let config = Config::new(self.configdb.clone(), self.port);
        let (exit, router) = (self.exit.clone(), self.router.clone());
        self.world.spawn_main(self.process, "pandos", async move {
            let how = match pandos(env, config, router).await {
                Ok(()) => Exit::Clean,
                Err(why) => Exit::Failed(why),
            };
            *lock(&exit) = Some(how);
        });
    }
    /// The process is killed; the machine lives on and says so.
    pub fn kill(&self) {
        *lock(&self.router) = Weak::new();
        self.world.sim.kill(self.process);
        *lock(&self.exit) = None;
    }
    /// The machine goes dark. Others hear nothing until the next boot.
    pub fn lose_power(&self) {
        self.world.net.links().set_dark(self.machine(), true);
        self.kill();
    }
}

async fn pandos(env: Env, config: Config, shown: Arc<Mutex<Weak<Router>>>) -> Result<(), String> {
    let hosts = ["127.0.0.1".to_owned()];
    let bound = listener::bind(&env, &hosts, config.port, None).await.map_err(|e| e.to_string())?;
    let params = Params::new();
    params.set_at_startup("enableTestCommands", "1").map_err(|e| e.to_string())?;
    let router = Router::start(env, config, params).await.map_err(|e| e.to_string())?;
    *lock(&shown) = Arc::downgrade(&router);
    let stop = Stop::new();
    let service = Service::new(router.clone(), |router: &Router| &router.registry);
    bound.serve(&service, Admission::bounded(CONNECTIONS), &stop);
    router.wait_shutdown_requested().await;
    router.stop();
    stop.stop();
    Ok(())
}
