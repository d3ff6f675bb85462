//! What a server does beside requests: expiring documents, building indexes for the set, backups, the fsync lock, flow control,
//! and checking all data.

pub(crate) mod backups;
pub(crate) mod check_all;
pub(crate) mod flow_control;
pub(crate) mod fsync_lock;
pub(crate) mod index_builds;
pub(crate) mod ttl;
