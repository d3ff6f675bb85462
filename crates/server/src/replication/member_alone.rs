//! A set's member that is started without its set: for maintenance, or to look at its data.
//!
//! The log is always replayed to its end (it is the only journal), so `recoverFromOplogAsStandalone` adds what else it
//! means: nothing can be written. The stable timestamp stays where the set left it, because what lies above may have to be
//! rolled back when the member returns; with `takeUnstableCheckpointOnShutdown` it is given up, and the tables are left
//! standing at the log's end.

use super::Replication;
use crate::replication::membership::config_ns;
use pando_base::{Error, Result};
use pando_command::{Param, Params};
use pando_env::Component;
use std::sync::atomic::Ordering::Relaxed;

/// For a node that is started with `--replSet`.
pub(crate) fn check_params(params: &Params) -> Result<()> {
    if params.bool(Param::recoverFromOplogAsStandalone) {
        return Err(Error::bad_value("recoverFromOplogAsStandalone is for a start without --replSet"));
    }
    Ok(())
}

impl Replication {
    pub(crate) fn is_member_alone(&self) -> bool {
        self.member_alone.load(Relaxed)
    }
    /// At the start of a standalone node.
    pub(crate) fn look_for_a_set(&self) -> Result<()> {
        let member = self.internal.first(&config_ns())?.is_some();
        self.member_alone.store(member, Relaxed);
        let log = &self.env.log;
        if member {
            let text = "A configuration of a replica set exists, but this node was started without --replSet: the data may \
                        differ from what the set shows, and what is written now the set will not have. The TTL monitor \
                        does not run.";
            log.warn(Component::Control, 20547, text, |_| {});
        }
        if self.instance.params.bool(Param::recoverFromOplogAsStandalone) {
            let text = "Read-only, because of the parameter recoverFromOplogAsStandalone";
            log.warn(Component::Repl, 21558, text, |_| {});
            self.maintenance.gate().make_read_only();
        }
        Ok(())
    }
}
