//! A collection whose ownership is about to change: its readers and writers wait (SH-PROTO-4).

use super::Ddl;
use crate::sharding::Sharding;
use pando_base::Namespace;
use pando_routing::check::Section;
use std::sync::Arc;

/// Ends with its owner, however that ends.
pub(crate) struct CriticalSection {
    sharding: Arc<Sharding>,
    ns: Namespace,
    settled: bool,
}

impl CriticalSection {
    /// From now on nobody who says whom he takes for the owner comes in; returns when all who had are out.
    pub(crate) async fn enter(ddl: &Ddl<'_>, ns: &Namespace) -> CriticalSection {
        let sharding = ddl.sharding.clone();
        sharding.metadata.enter(ns, Section::BlocksAll);
        let section = CriticalSection { sharding, ns: ns.clone(), settled: false };
        drop(ddl.server.upkeep.maintenance.lock_database(ns.db()).await);
        section
    }
}

impl CriticalSection {
    /// The config servers have been asked what came of it.
    pub(crate) fn settled(mut self) {
        self.settled = true;
    }
}

impl Drop for CriticalSection {
    fn drop(&mut self) {
        if !self.settled {
            // It may have been committed though its answer was lost: what was known before is not believed any more.
            self.sharding.forget(&self.ns);
        }
        self.sharding.metadata.leave(&self.ns);
    }
}
