//! The simulator: a whole server, its clients, its disk and its network on one thread, from one seed.
//!
//! * [`executor`] — virtual time, random interleavings, processes that can be killed at any poll; [`closures`] and
//!   [`stack`] — what they hand to other threads, interrupted at each disk call ([`disk`]);
//! * [`net`] — streams with latency, partial reads and breaks; [`links`] — cuts, delay and loss between machines;
//! * [`world`] — the [`pando_env::Env`] made of these and of storage's faulty disk (which loses unsynced
//!   bytes, tears writes and fails with EIO or ENOSPC);
//! * [`node`] — a machine that runs one `pandod`; [`client`] — a client that speaks the wire protocol;
//! * [`rig`] — a set under a test's hand;
//! * [`crud`] — the first scenario: random writes, crashes, and what must hold afterwards.
//! * [`set`] — a real set of members under every kind of fault, and the rules that must hold at every moment;
//! * [`cluster`] — config servers, shards and routers ([`router_node`]) under faults, and users behind the routers;
//! * [`split`] — a set of many tenants that splits under faults, and tenants' users who go where their tenant goes;
//! * [`migrate`] — two sets between which tenants move, there and back;
//! * [`shards`] — a thousand shards behind a router, and what operations cost there.
//!
//! A failing run prints its seed; the same seed and commit give the same run, event for event.

pub mod client;
mod closures;
pub mod cluster;
pub mod crud;
mod cuts;
pub mod disk;
pub mod executor;
mod folder;
pub mod links;
mod login;
mod lying_disk;
pub mod net;
pub mod node;
pub mod rig;
pub mod router_node;
pub mod set;
pub mod shards;
mod stack;
mod tenants;
pub mod world;

pub use executor::{ProcessId, Sim, Stuck};
pub use links::Machine;
pub use net::NetOptions;
pub use node::{Exit, Node};
pub use pando_storage::testing::FaultyDisk;
pub use router_node::RouterNode;
pub use tenants::{migrate, split};
pub use world::World;
