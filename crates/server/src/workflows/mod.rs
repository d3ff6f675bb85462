//! Workflows on this server: [`data`] is what all of them read, write and lock; [`in_command`] runs one inside a command. Those
//! of a primary run in the host that `replication::services` sets up.

pub(crate) mod data;
pub(crate) mod in_command;
