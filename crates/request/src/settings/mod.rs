//! Commands that look at a process and change how it behaves.

pub mod current_op;
pub mod drop_users_and_roles;
pub mod kill_op;
pub mod parameters;
pub mod profile;
pub mod rw_concern;
pub mod user_write_block;
