//! What the door asks on a shard: does the sender know who owns what, and which documents may it see (SYS-212, SYS-215).
//!
//! A request's version speaks of the collection that its command names. Others that it comes to beside that one (under views, in
//! stages) are taken to be unsharded: whoever knew better would have sent it elsewhere.

use crate::Access;
use crate::transaction::open_txn;
use bytes::Bytes;
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};
use pando_catalog::observer::DocumentKeys;
use pando_catalog::{Catalog, Collection, Permit, ResolvedView};
use pando_command::concern::ReadLevel;
use pando_command::{OpCtx, Versions};
use pando_query::source::{
    CollectionInfo, IndexCursor, IndexScan, Owned, RecordCursor, RecordId, RecordScan, Source,
};
use pando_query::stage::involved;
use pando_routing::check::Access as Kind;
use pando_routing::stale::StaleConfig;
use pando_routing::{ChunkVersion, ShardKey};
use pando_shard::metadata::{Known, Refusal};
use pando_shard::{FilteringMetadata, OwnedDocuments};
use pando_storage::ReadAt;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Which documents of a collection an operation may see; `None` is all of them. A deletion of what has moved away waits for
/// everybody who holds it.
pub(crate) type Visible = Option<Arc<OwnedDocuments>>;

/// What is to be left out, where that is anything.
pub(crate) fn filter(visible: &Visible) -> Option<&OwnedDocuments> {
    visible.as_deref().filter(|owned| !owned.ownership().is_everything())
}

impl Access {
    /// From now on this node is a shard's, and what it knows of who owns what is asked.
    pub fn on_shard(mut self, metadata: Arc<FilteringMetadata>) -> Access {
        self.catalog.tell_documents_by(Arc::new(ShardKeys(metadata.clone())));
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
    /// The catalog for an operation, which creates nothing once the database is another shard's, or is being dropped, nor while a
    /// definition keeps writers from the name.
    pub(crate) fn permitted(&self, ctx: &OpCtx) -> Catalog {
        let Some((metadata, received)) = self.placement.clone().zip(ctx.database_version) else {
            return self.catalog.clone();
        };
        let judge = move |ns: &Namespace| {
            let of_database = metadata.check_database(ns.db(), received, Kind::Write);
            of_database.and_then(|()| metadata.check_section(ns)).map_err(|r| r.error)
        };
        self.catalog.permitted_by(Permit::new(judge))
    }
    /// Whether a name may be taken now: a definition that makes or renames something may keep writers from it.
    pub(crate) fn check_may_come(&self, ctx: &OpCtx, ns: &Namespace) -> Result<()> {
        let Some(metadata) = self.placement.as_ref().filter(|_| ctx.database_version.is_some()) else {
            return Ok(());
        };
        metadata.check_section(ns).map_err(|refusal| {
            ctx.note_refusal(refusal.why);
            refusal.error
        })
    }
    /// What a snapshot of the past holds is not told by who owns what now.
    ///
    /// # Errors
    /// 272 in a transaction, 246 otherwise, where ranges have moved to or from this shard since, or what is not sharded has come here.
    pub(crate) fn check_snapshot(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        visible: &Visible,
        at: ReadAt,
    ) -> Result<()> {
        let in_transaction = open_txn(ctx);
        let then = match (in_transaction, at) {
            (Some(open), _) => open.with(|unit| Ok(unit.txn().read_ts()))?,
            (None, ReadAt::At(then)) if ctx.read_concern.level() == ReadLevel::Snapshot => then,
            _ => return Ok(()),
        };
        let is_lost = match visible {
            Some(owned) => owned.has_moved_since(then),
            None => self.came_since(ctx, ns.db(), then)?,
        };
        if !is_lost {
            return Ok(());
        }
        let code = match in_transaction {
            Some(_) => ErrorCode::MigrationConflict,
            None => ErrorCode::SnapshotUnavailable,
        };
        let text = format!(
            "documents of collection {ns} have moved since the time {then} of this operation's snapshot; try again"
        );
        Err(Error::new(code, text))
    }
    /// Whether the database came here from another shard after that time: what it had then is there, or is here in part. Since when it is
    /// here as a whole stands among the fences of definitions.
    fn came_since(&self, ctx: &OpCtx, db: &str, then: Timestamp) -> Result<bool> {
        let has_moved = self.placement.is_some() && ctx.database_version.is_some_and(|v| v.last_mod > 1);
        if !has_moved {
            return Ok(false);
        }
        let fence = self.internal_collections().named(&Namespace::unchecked("config", "ddl_fences"), db)?;
        Ok(match fence.as_ref().and_then(|doc| doc.get("since")) {
            Some(Value::Timestamp(since)) => then < since,
            _ => false,
        })
    }
    /// A collection that lost its name since may have had parts on other shards, which a router does not ask any more.
    ///
    /// # Errors
    /// 246 where the name is another one's by now, or nothing's.
    pub(crate) fn check_is_still_here(
        &self,
        ctx: &OpCtx,
        coll: &Collection,
        ns: &Namespace,
        at: ReadAt,
    ) -> Result<()> {
        if self.placement.is_none() || Versions::of(ctx).is_none() {
            return Ok(());
        }
        let is_lost = match (open_txn(ctx), at) {
            // It may have made the collection itself.
            (Some(_), _) => self.name_of(coll.uuid).is_some_and(|now| now != *ns),
            (None, ReadAt::At(_)) if ctx.read_concern.level() == ReadLevel::Snapshot => {
                self.catalog.lookup(ns).is_none_or(|now| now.uuid != coll.uuid)
            }
            _ => false,
        };
        if !is_lost {
            return Ok(());
        }
        let text = format!(
            "Unable to read from a snapshot due to pending collection catalog changes: {ns} has been renamed or dropped since that \
             time; please retry the operation"
        );
        Err(Error::new(ErrorCode::SnapshotUnavailable, text))
    }
    /// By what a collection is sharded, as this shard knows.
    pub fn sharded_by(&self, ns: &Namespace) -> Option<ShardKey> {
        self.placement.as_ref()?.known(ns).table().map(|table| table.collection.key.clone())
    }
    /// By what the collection is sharded that a request speaks of.
    pub(crate) fn shard_key(&self, ctx: &OpCtx, ns: &Namespace) -> Option<ShardKey> {
        let metadata = self.placement.as_ref().filter(|_| Versions::of(ctx).shard.is_some())?;
        metadata.known(ns).table().map(|table| table.collection.key.clone())
    }
    /// A view of what lies on several shards, or that joins such, is read by whoever has routed the request: it is told what the
    /// view stands for (169).
    pub(crate) fn check_below(&self, ctx: &OpCtx, view: &ResolvedView) -> Result<()> {
        let Some(metadata) = &self.placement else { return Ok(()) };
        if Versions::of(ctx).is_none() {
            return Ok(());
        }
        for ns in self.below(view) {
            if let Known::Sharded(_) = metadata.known(&ns) {
                return Err(stands_for(view));
            }
            self.placed(ctx, &ns, Kind::Read)?;
        }
        Ok(())
    }
    /// What the stages of a request read beside its own collection; views are seen through. Whoever knows that such a collection
    /// lies on several shards reads it itself.
    pub fn check_beside(&self, ctx: &OpCtx, ns: &Namespace) -> Result<()> {
        if self.placement.is_none() || Versions::of(ctx).is_none() {
            return Ok(());
        }
        let all = match self.catalog.snapshot().resolve_view(ns) {
            Ok(Some(view)) => {
                let all = self.below(&view);
                self.check_not_a_part(ctx, ns, &all)?;
                all
            }
            // What cannot be resolved is told where it is read.
            Ok(None) | Err(_) => BTreeSet::from([ns.clone()]),
        };
        all.iter().try_for_each(|ns| self.placed(ctx, ns, Kind::Read).map(drop))
    }
    /// A view that comes down to the very collection that the command is about, of which this shard has a part: the rest is read by
    /// whoever has routed the request, and could not know that.
    fn check_not_a_part(&self, ctx: &OpCtx, view: &Namespace, below: &BTreeSet<Namespace>) -> Result<()> {
        let (Some(metadata), versions) = (&self.placement, Versions::of(ctx)) else { return Ok(()) };
        for ns in below.iter().filter(|ns| versions.speaks_of(ns)) {
            let Known::Sharded(owned) = metadata.known(ns) else { continue };
            if owned.ownership().is_everything() {
                continue;
            }
            let told = StaleConfig {
                ns: view.to_string(),
                received: ChunkVersion::UNSHARDED,
                wanted: None,
                shard: owned.ownership().shard().clone(),
            };
            return Err(told.into_error());
        }
        Ok(())
    }
    /// The collections that a view comes down to, those that it joins included.
    fn below(&self, view: &ResolvedView) -> BTreeSet<Namespace> {
        let snapshot = self.catalog.snapshot();
        let (mut found, mut left) = (BTreeSet::new(), vec![view.clone()]);
        while let Some(view) = left.pop() {
            let mut names = BTreeSet::new();
            involved(&view.pipeline, &mut names);
            let beside = names.into_iter().filter_map(|name| Namespace::new(view.ns.db(), name).ok());
            for ns in beside.chain([view.ns.clone()]) {
                if found.insert(ns.clone()) {
                    left.extend(snapshot.resolve_view(&ns).ok().flatten());
                }
            }
        }
        found
    }
    /// Whether its sender still knows who owns what, now that the operation is done.
    pub fn check_still_placed(&self, ctx: &OpCtx, ns: &Namespace) -> Result<()> {
        self.placed(ctx, ns, Kind::Write).map(drop)
    }
    /// The same of a definition: nothing but the database's version matters.
    pub fn check_database(&self, ctx: &OpCtx, db: &str) -> Result<()> {
        self.check_database_for(ctx, db, Kind::Write)
    }
    /// The same of what only lists what is there.
    pub fn check_listed_database(&self, ctx: &OpCtx, db: &str) -> Result<()> {
        self.check_database_for(ctx, db, Kind::Read)
    }
    fn check_database_for(&self, ctx: &OpCtx, db: &str, kind: Kind) -> Result<()> {
        let Some((metadata, received)) = self.placement.as_ref().zip(ctx.database_version) else {
            return Ok(());
        };
        metadata.check_database(db, received, kind).map_err(|refusal| {
            ctx.note_refusal(refusal.why);
            refusal.error
        })
    }
}

/// What entries say of a document of a sharded collection: its shard key, and its `_id`.
struct ShardKeys(Arc<FilteringMetadata>);

impl DocumentKeys for ShardKeys {
    fn key_of(&self, coll: &Collection, doc: &RawDoc, id: Elem<'_>) -> Option<DocBuf> {
        let Known::Sharded(owned) = self.0.known(&coll.ns) else { return None };
        Some(owned.ownership().table.collection.key.document_key(doc, id))
    }
}

/// The error that carries a view's meaning.
fn stands_for(view: &ResolvedView) -> Error {
    let mut b = DocBuilder::new();
    b.doc("resolvedView", |d| {
        d.str("ns", view.ns.as_str()).raw_array("pipeline", &view.pipeline);
        if let Some(collation) = &view.collation {
            d.raw_doc("collation", collation);
        }
    });
    let text = "Resolved views on sharded collections must be executed by mongos";
    Error::new(ErrorCode::CommandOnShardedViewNotSupportedOnMongod, text).with_extra(b.finish().into_bytes())
}

/// The judgement on one collection.
pub(crate) fn check(
    metadata: &FilteringMetadata,
    versions: &Versions,
    ns: &Namespace,
    kind: Kind,
) -> Result<Visible, Refusal> {
    if let Some(received) = versions.database {
        metadata.check_database(ns.db(), received, kind)?;
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
    /// Nothing is left out.
    pub(crate) is_everything: bool,
}

impl OwnedSource {
    pub(crate) fn wrap(inner: Box<dyn Source>, visible: &Visible) -> Box<dyn Source> {
        match visible {
            None => inner,
            Some(owned) => {
                let is_everything = owned.ownership().is_everything();
                Box::new(OwnedSource { inner, owned: owned.clone(), is_everything })
            }
        }
    }
}

impl Source for OwnedSource {
    fn collection(&self) -> &Arc<CollectionInfo> {
        self.inner.collection()
    }
    fn owned(&self) -> Option<&Arc<dyn Owned>> {
        (!self.is_everything).then_some(&self.owned)
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
        if self.is_everything { self.inner.sample_record() } else { None }
    }
}
