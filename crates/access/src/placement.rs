//! What the door asks on a shard: does the sender know who owns what, and which documents may it see (SYS-212, SYS-215).
//!
//! A request's version speaks of the collection that its command names. Others that it comes to beside that one (under views, in
//! stages) are taken to be unsharded: whoever knew better would have sent it elsewhere.

use crate::Access;
use bytes::Bytes;
use pando_base::{Namespace, Result, Timestamp};
use pando_command::{OpCtx, Versions};
use pando_query::source::{
    CollectionInfo, IndexCursor, IndexScan, Owned, RecordCursor, RecordId, RecordScan, Source,
};
use pando_routing::ChunkVersion;
use pando_routing::check::Access as Kind;
use pando_shard::metadata::Refusal;
use pando_shard::{FilteringMetadata, OwnedDocuments};
use std::sync::Arc;

/// Which documents of a collection an operation may see; `None` is all of them.
pub(crate) type Visible = Option<Arc<OwnedDocuments>>;

impl Access {
    /// From now on this node is a shard's, and what it knows of who owns what is asked.
    pub fn on_shard(mut self, metadata: Arc<FilteringMetadata>) -> Access {
        self.placement = Some(metadata);
        self
    }
    pub(crate) fn placed(&self, ctx: &OpCtx, ns: &Namespace, kind: Kind) -> Result<Visible> {
        let Some(metadata) = &self.placement else { return Ok(None) };
        let versions = Versions::of(ctx);
        if versions.is_none() {
            return Ok(None);
        }
        check(metadata, &versions, ns, kind).map_err(|refusal| {
            ctx.note_refusal(refusal.why);
            refusal.error
        })
    }
    /// The same of a definition: nothing but the database's version matters.
    pub(crate) fn placed_in_database(&self, ctx: &OpCtx, db: &str) -> Result<()> {
        let Some((metadata, received)) = self.placement.as_ref().zip(ctx.database_version) else {
            return Ok(());
        };
        metadata.check_database(db, received).map_err(|refusal| {
            ctx.note_refusal(refusal.why);
            refusal.error
        })
    }
}

/// The judgement on one collection.
pub(crate) fn check(
    metadata: &FilteringMetadata,
    versions: &Versions,
    ns: &Namespace,
    kind: Kind,
) -> Result<Visible, Refusal> {
    if let Some(received) = versions.database {
        metadata.check_database(ns.db(), received)?;
    }
    let received = match versions.shard {
        None => return Ok(None),
        Some(version) if versions.speaks_of(ns) => version,
        Some(_) => ChunkVersion::UNSHARDED,
    };
    metadata.check(ns, received, kind)
}

/// A collection of which plans show what this shard owns.
pub(crate) struct OwnedSource {
    pub(crate) inner: Box<dyn Source>,
    pub(crate) owned: Arc<dyn Owned>,
}

impl OwnedSource {
    pub(crate) fn wrap(inner: Box<dyn Source>, visible: &Visible) -> Box<dyn Source> {
        match visible {
            None => inner,
            Some(owned) => Box::new(OwnedSource { inner, owned: owned.clone() }),
        }
    }
}

impl Source for OwnedSource {
    fn collection(&self) -> &Arc<CollectionInfo> {
        self.inner.collection()
    }
    fn owned(&self) -> Option<&Arc<dyn Owned>> {
        Some(&self.owned)
    }
    fn read_ts(&self) -> Timestamp {
        self.inner.read_ts()
    }
    fn record_count(&self) -> u64 {
        self.inner.record_count()
    }
    fn fetch(&mut self, rid: &RecordId) -> Result<Option<Bytes>> {
        self.inner.fetch(rid)
    }
    fn scan_records(&mut self, scan: RecordScan<'_>) -> Result<Box<dyn RecordCursor>> {
        self.inner.scan_records(scan)
    }
    fn scan_index(&mut self, scan: IndexScan<'_>) -> Result<Box<dyn IndexCursor>> {
        self.inner.scan_index(scan)
    }
    fn find_key(&mut self, index: usize, key: &[u8]) -> Result<Option<RecordId>> {
        self.inner.find_key(index, key)
    }
    fn sample_record(&mut self) -> Option<Result<Option<(RecordId, Bytes)>>> {
        // It would tell of what others own.
        None
    }
}
