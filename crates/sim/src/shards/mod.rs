//! A cluster of very many shards: a set of config servers, a router, N shards of one member each, all of it the servers' own code,
//! and one client that does whatever concerns all of them.
//!
//! Nothing is broken at random here, and nobody is in a hurry: what is looked at is what an operation costs where there are a
//! thousand shards ([`cost`]), and how that grows with their number ([`growth`]). Every answer is checked, too.
//!
//! ```text
//!   boot ─► definitions ─► writes, reads, a change stream ─► a shard dies, comes back, loses power ─► a second router ─► drops
//! ```
//! The machines work at the same time: the more there are, the less of the world's time one poll takes.

mod boot;
mod caller;
pub mod cost;
mod definitions;
pub mod growth;
mod lost;
mod machines;
mod reads;
mod routers;
mod stream;
mod writes;

use cost::{Outside, Row};
use machines::Run;
use std::time::Duration;

/// What a run is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub shards: u16,
    /// Of the config servers' set.
    pub config_members: u16,
    /// What the world around says of this process: for the eye only, no run depends on it.
    pub outside: Outside,
    /// Tells each step when it is over.
    pub tell: fn(&Row),
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub shards: u64,
    pub rows: Vec<Row>,
    /// Of the first router, with nothing under way.
    pub connections: usize,
    /// Of the config servers' primary.
    pub connections_of_config: usize,
    /// By how much the process grew for a second router that had spoken to all shards: its memory, and what others keep of it.
    pub router_bytes: u64,
    pub time: Duration,
    pub polls: u64,
    pub trace: u64,
}

/// Runs one seed; what was wrong, with the last lines of the log.
pub fn run(seed: u64, options: &Options) -> Result<Report, String> {
    let mut run = Run::new(seed, options);
    let done = run.boot().and_then(|()| run.define()).and_then(|()| {
        run.write()?;
        run.read()?;
        run.watch()?;
        run.look_around();
        run.lose_a_shard()?;
        run.start_a_router()?;
        run.redefine()
    });
    let done = done.and_then(|()| run.check_processes());
    match done {
        Ok(()) => Ok(run.report()),
        Err(why) => Err(run.explained(&why)),
    }
}
