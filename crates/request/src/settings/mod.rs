//! Commands that look at a process and change how it behaves.

pub mod cluster_parameters;
pub mod current_op;
pub mod drop_users_and_roles;
pub mod feature_version;
pub mod kill_op;
pub mod login;
pub mod merge_principals;
pub mod parameters;
pub mod principals;
pub mod profile;
pub mod roles;
pub mod roles_info;
pub mod rw_concern;
pub mod user_write_block;
pub mod users;
pub mod users_info;
