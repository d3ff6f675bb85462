//! Other nodes of a cluster, as one node calls them: by the name of a shard rather than of a host.
//!
//! ```text
//!   config.shards ─► Registry ─► Shard ── call ──► SetMonitor: which host? ──► Pool ──► the host
//!                                  ▲                    ▲                        │
//!                                  └── again, elsewhere ┴── what its answer says ┘
//! ```
//!
//! * [`monitors`] — a set's monitor: the shell around [`pando_monitor::Core`], which outlives the registry's contents;
//! * [`probe`] — the `hello`s it asks for;
//! * [`call`] — one command to one member of a set, tried again elsewhere where that is allowed;
//! * [`registry`] — shards by name, set and host (SYS-206, SH-REG-1).

pub mod call;
pub mod monitors;
mod probe;
pub mod registry;

pub use call::{Answer, Fleet};
pub use monitors::{Monitors, SetMonitor};
pub use registry::{Registry, Shard, ShardEntry, Shards};
