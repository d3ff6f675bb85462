//! A collection in memory and the recorded answers of a real server, for this crate's tests.

mod golden;
pub(crate) mod mem;
mod pipelines;
mod plans;
mod rewrites;
mod shard_filter;
mod splits;
mod sweep;
