//! Commands about sessions, their transactions and cursors.

pub mod hello;
pub mod kill_cursors;
pub mod sessions;
pub mod transactions;
