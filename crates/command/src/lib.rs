//! The shape of a command and the one path all commands take.
//!
//! A command is a row ([`CommandRow`]) of one alphabetical [`table`], and a handler that a role registers for it, in its own file:
//! `fn run<'a>(server: &'a S, ctx: &'a OpCtx, req: Request<'a>) -> Result<Reply>` (async). The handler reads
//! its typed arguments with [`Request::args`], does its work and returns a [`Reply`] or an `Error`.
//! Everything else — lookup, envelope, API version, fail points, write gate, deadlines, write concern,
//! `operationTime`, labels, counters, slow-query log — is [`pipeline::run`], which asks the server's role
//! through [`Node`] where roles differ.
//!
//! Around it live the things all commands of a process share ([`Instance`]): parameters, fail points, clients
//! with their current operations, counters.

pub mod api_versions;
pub mod args;
mod audit;
mod authorization;
pub mod checks;
pub mod client;
mod client_metadata;
pub mod cluster_time;
pub mod concern;
mod encryption;
pub mod everywhere;
pub mod explained;
mod fail_command;
pub mod fail_get_more;
pub mod fail_point;
pub mod generic_args;
pub mod instance;
pub mod json;
pub mod locks;
pub mod log_levels;
pub mod metrics;
pub mod node;
pub mod on_behalf_of;
mod op_ctx;
pub mod params;
pub mod pipeline;
pub mod privilege;
pub mod reply;
pub mod request;
pub mod roles;
pub mod secrets;
pub mod slow;
mod spec;
mod stable_api;
pub mod table;
pub mod transaction_rules;
pub mod unfinished;
mod versions;

pub use args::{Arg, Args, Names};
pub use authorization::has_unique_names;
pub use client::{ActiveOp, Client, Clients};
pub use concern::{ReadConcern, ReadLevel, W, WriteConcern, WriteConcernError};
pub use fail_point::{FailPoint, FailPoints};
pub use generic_args::{GenericArgs, ReadMode, SessionId};
pub use instance::Instance;
pub use node::{Attempt, Node, ReplyTimes, TopologyVersion};
pub use op_ctx::{OpCtx, OpDebug, OpWatch};
pub use params::{Param, Params};
pub use privilege::{Action, Privileges, Resource};
pub use reply::{Next, Reply};
pub use request::{Docs, Request, Sequence};
pub use roles::Roles;
pub use spec::{Check, Command, CommandCounts, CommandRow, Flags, Handler, Registry};
pub use table::COMMANDS;
pub use transaction_rules::ends_transaction;
pub use versions::Versions;
