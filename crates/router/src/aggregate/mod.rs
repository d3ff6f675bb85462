//! Pipelines: whole on one shard where that can answer alone, else in two parts (SH-RT-9).
//!
//! * [`plan`] — which of both, decided from the routing table and the pipeline;
//! * [`wire`] — how the shards' part is written;
//! * [`foreign`] — what the merging part reads besides;
//! * [`change_stream`] — events of all shards in one order;
//! * [`distribution`] — how much of what is sharded each shard has;
//! * [`own`] — what somebody sees of its own operations and sessions;
//! * [`explain`] — what each would do;
//! * `writing`, `out` — results that become documents;
//! * [`run`] — the commands, and the cursor that merges.

pub(crate) mod change_stream;
pub(crate) mod distribution;
pub(crate) mod explain;
pub(crate) mod foreign;
mod out;
pub(crate) mod own;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod wire;
mod writing;
