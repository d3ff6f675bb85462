//! Systems of a replica set, each shown with whole members in a simulated world (`docs/systems.md` names the tests).

#![allow(clippy::unwrap_used)]

mod bad_disk;
mod chains;
mod commit_point;
mod copied_sessions;
mod file_copy;
mod hello;
mod hostile_members;
mod index_builds;
mod initial_sync;
mod messages;
mod no_common_point;
mod parted;
mod planted;
mod prepared;
mod read_concern;
mod reconfig;
mod refetch;
mod roles;
mod rollback;
mod session_expiry;
mod split;
mod startup;
mod sync_source;
mod takeover;
mod tampered;
mod write_concern;
