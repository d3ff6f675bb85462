//! What the balancer of a cluster does next, decided without I/O (SH-BAL-1 to SH-BAL-6).
//!
//! ```text
//!   config.settings ─► Settings ─ may it work now?
//!   chunks, zones, bytes of each shard ─► splits: chunks that reach over the end of a zone are cut there first
//!                                      └► migrations: draining shards ─► shards without the zone ─► too much beside too little
//!                                       └► defragmentation: neighbours become one, small chunks go to their neighbours' shards
//!   all chunks that nobody needs the histories of ─► runs: neighbours that become one by and by (the auto-merger)
//! ```
//! One round goes over the collections, in an order that the caller draws, with one set of shards that have something to do already: a shard gives or
//! takes once in a round. Nothing is kept from round to round, so whoever becomes primary of the config servers goes on with what it finds.
//!
//! **It comes to an end.** On data that nobody changes each migration makes one of these smaller, and none of those before it larger: what lies on shards
//! that are draining; what lies on shards without its zone; the sum of the squares of what each shard has. The last one is why a migration for the
//! sake of balance needs a difference of three times of what it may move: `tests/rounds.rs`.

mod defragmentation;
mod migrations;
pub mod mutants;
mod recipients;
mod runs;
mod settings;
mod splits;
mod state;
mod survey;

pub use defragmentation::{Measured, Phase, Tasks, defragment};
pub use migrations::{Migration, Why, migrations};
pub use runs::{Run, runs};
pub use settings::{Mode, Settings, Window};
pub use splits::{Split, splits};
pub use state::{Collection, Shard, Shards};
