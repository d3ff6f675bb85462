//! Commands about this process.

pub(super) mod about;
pub(super) mod connections;
pub(super) mod fsync;
pub(super) mod operations;
pub(super) mod parameters;
pub(super) mod profile;
pub(super) mod refused;
pub(super) mod server_status;
pub(super) mod sessions;
