//! What tests share: a small blocking client for the wire protocol, and the replayer of the golden answers that
//! a real server gave (`tests/differential/golden`).
//!
//! Used by tests only, so it may panic where a test should stop.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types)]

pub mod client;
pub mod compat;
pub mod goldens;
