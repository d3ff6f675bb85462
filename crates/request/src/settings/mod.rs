//! Commands that look at a process and change how it behaves.

pub mod current_op;
pub mod kill_op;
pub mod parameters;
pub mod profile;
pub mod user_write_block;
