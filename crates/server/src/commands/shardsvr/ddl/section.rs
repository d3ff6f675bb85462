//! A collection whose ownership is about to change: its readers and writers wait (SH-PROTO-4).

use super::Ddl;
use pando_base::Namespace;
use pando_routing::check::Section;
use pando_shard::FilteringMetadata;
use std::sync::Arc;

/// Ends with its owner, however that ends.
pub(crate) struct CriticalSection {
    metadata: Arc<FilteringMetadata>,
    ns: Namespace,
}

impl CriticalSection {
    /// From now on nobody who says whom he takes for the owner comes in; returns when all who had are out.
    pub(crate) async fn enter(ddl: &Ddl<'_>, ns: &Namespace) -> CriticalSection {
        let metadata = ddl.sharding.metadata.clone();
        metadata.enter(ns, Section::BlocksAll);
        let section = CriticalSection { metadata, ns: ns.clone() };
        drop(ddl.server.upkeep.maintenance.lock_database(ns.db()).await);
        section
    }
}

impl Drop for CriticalSection {
    fn drop(&mut self) {
        self.metadata.leave(&self.ns);
    }
}
