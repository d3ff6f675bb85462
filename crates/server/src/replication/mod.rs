//! This node as a member of a replica set: its place in it, its positions, what happens when its role changes, and how it
//! comes back after a rollback, a restore or a resync.

pub(crate) mod await_read_concern;
pub(crate) mod forward_to_primary;
pub(crate) mod local_identity;
pub(crate) mod member_alone;
pub(crate) mod member_door;
pub(crate) mod membership;
pub(crate) mod positions;
pub(crate) mod restored;
pub(crate) mod restored_writes;
pub(crate) mod resync;
pub(crate) mod rollback;
pub(crate) mod rollback_files;
pub(crate) mod services;
pub(crate) mod transitions;
