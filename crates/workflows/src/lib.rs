//! Operations of several steps, as state machines without I/O: DDL, migrations, commits across shards, splits.
//!
//! A [`Workflow`] takes the time and one [`Event`] and says what is to be done. It sees no clock, no disk and no socket,
//! so the kit can run it through every accident there is.
//!
//! ```text
//!   Workflow::step ──► Actions ──► Running ──► Order ──► the shell: host on a primary, or a command
//!        ▲                            │                               │
//!        └────────── Event ◄──────────┴──────── (Id, Result<Outcome>) ◄┘
//! ```
//! * [`machine`] — what a workflow is; [`action`] and [`event`] — what it says and hears;
//! * [`running`] — one workflow under way: numbers its actions, drops late answers, tries again, keeps the rules;
//! * [`retry`] — which failure is tried again, how often, and after which pause;
//! * [`table`] — which instances there are: who joins, who conflicts, how many there may be;
//! * [`mod@kit`] — runs a workflow straight and through every fault at every action (feature `kit`).
//!
//! One workflow, one folder, each with its `mutants`: [`demo`], [`drop_database`]; and those of a shard that coordinates definitions of
//! its cluster (SH-DDL): [`coll_mod`], [`create_collection`], [`drop_collection`], [`drop_sharded_database`], [`move_primary`], [`refine_shard_key`],
//! [`rename_collection`], which share [`ddl`]; and the two sides of a [`migration`] (SH-MIG): [`move_range`], [`receive_range`], and
//! [`delete_range`] behind them (SH-RDEL); and what the config servers coordinate ([`configsvr`]): [`user_writes`],
//! [`feature_version`]; and what moves tenants between sets: [`shard_split`], [`donate_tenants`], [`receive_tenants`].
//!
//! # The shell's duties
//!
//! 1. Carry out the orders in the order given. [`Order::Carry`] takes its time, and several may be under way at once; all
//!    others happen at once. Answer each `Carry` with its id, once, or again, or late, or never: [`Running`] bears it.
//! 2. Bound each attempt of a call by `limits::WORKFLOW_CALL_MS_MAX`, and answer with `NetworkTimeout`.
//! 3. Answer a checkpoint only when a majority has it.
//! 4. When the instance ends, however it ends, give back every lock and section that it holds.
//! 5. When this node is primary no more, drop the [`Running`]: the next primary begins at the last checkpoint.

pub mod action;
pub mod cluster_parameter;
pub mod coll_mod;
pub mod configsvr;
pub mod create_collection;
pub mod ddl;
pub mod delete_range;
pub mod demo;
pub mod donate_tenants;
pub mod drop_collection;
pub mod drop_database;
pub mod drop_sharded_database;
pub mod event;
pub mod feature_version;
#[cfg(feature = "kit")]
pub mod kit;
pub mod machine;
pub mod migration;
pub mod move_primary;
pub mod move_range;
pub mod mutants;
pub mod receive_range;
pub mod receive_tenants;
pub mod refine_shard_key;
pub mod rename_collection;
pub mod retry;
pub mod running;
pub mod shard_split;
pub mod table;
pub mod user_writes;

pub use action::{
    Action, Actions, Concern, Level, LocalWrite, Query, Resource, Section, Slot, Target, whole_database,
};
pub use event::Event;
pub use machine::{Restore, Workflow};
pub use retry::Retry;
pub use running::{Home, Id, Order, Outcome, Running};
pub use table::Table;
