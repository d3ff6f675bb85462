//! The real world behind [`pando_env`]: the machine's clock, its files and sockets, tokio's tasks.
//!
//! The only crate (with the binaries) that knows tokio. Nothing here decides anything: each type carries one
//! trait over to one system facility, so that what the simulator replaces stays as thin as possible.

// This crate is the outside world that clippy.toml's fence points to.
#![allow(clippy::disallowed_methods)]

pub mod arguments;
mod clock;
mod disk;
mod host;
pub mod lock;
mod net;
pub mod process;
mod rng;
pub mod syncs;
mod tasks;
mod unsynced;

pub use clock::RealClock;
pub use disk::RealDisk;
pub use host::RealHost;
pub use net::RealNet;
pub use rng::RealRng;
pub use tasks::RealTasks;

use pando_env::{Env, Log};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A world whose disk is the folder `data` (created when missing). Call inside a runtime.
pub fn env(data: &Path, log: Log, net: RealNet) -> io::Result<Env> {
    Ok(Env {
        clock: Arc::new(RealClock::new()),
        rng: Arc::new(RealRng::new()?),
        disk: Arc::new(RealDisk::new(data)?),
        net: Arc::new(net),
        tasks: Arc::new(RealTasks),
        log,
    })
}

/// The same world, whose unsynced bytes are lost when the process is killed: for tests.
pub fn losing_unsynced(env: Env) -> Env {
    Env { disk: Arc::new(unsynced::UnsyncedInMemory::new(env.disk)), ..env }
}

/// The runtime of the binaries. At least four workers, so that one that waits for the disk does not hold up
/// the others on a small machine.
pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.max(4))
        .thread_name("pando-worker")
        .thread_stack_size(pando_base::limits::WORKER_STACK_BYTES)
        .enable_all()
        .build()
}
