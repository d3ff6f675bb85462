//! The grammar fuzzer: programs drawn from the tables of operators, stages and commands themselves.
//!
//! * [`draw`] draws commands, one seed each; [`data`] is what they work on; [`program`] puts both together
//! * [`server`] runs a server in a process that may die; [`wire`] sends ahead of the replies
//! * [`judge`] says what is wrong with a reply by itself: malformed, late, an internal error
//! * [`compare`] says how two servers' replies differ, [`reasons`] which differences are accepted
//! * [`order`] proves that a difference is only which of several mistakes is told
//! * [`shrink`] makes differing programs smaller, [`report`] groups them and writes golden cases
//! * [`run`] is the loop; [`admin`] does the same to the members of a set with commands of administration
//!
//! It is a tool for tests and may panic where it cannot go on.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

pub mod admin;
pub mod compare;
pub mod data;
pub mod draw;
pub mod judge;
mod order;
pub mod program;
pub mod reasons;
pub mod report;
mod rng;
pub mod run;
pub mod server;
mod shrink;
mod wire;
