//! What an operation holds that may read a collection, and how it reads: through sources, cursors and point reads.

use crate::Access;
use crate::placement::{OwnedSource, Visible, filter};
use crate::transaction::conflicts::on_prepared;
use crate::transaction::source::TxnSource;
use crate::transaction::{OpenTxn, open_txn};
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, Elem, RawDoc};
use pando_catalog::{Collection, Named, ResolvedView, TableSource, View, find_id, is_a_view};
use pando_command::OpCtx;
use pando_query::source::{Owned, Source};
use pando_storage::{OnPrepared, ReadAt};
use std::ops::Deref;
use std::sync::Arc;

/// What a name turned out to be.
#[derive(Clone, Debug)]
pub enum Reading {
    Missing,
    View(Arc<View>),
    Collection(Acquisition),
}

impl Reading {
    /// The collection, if there is one; 166 for a view.
    pub fn collection(self) -> Result<Option<Acquisition>> {
        match self {
            Reading::Collection(coll) => Ok(Some(coll)),
            Reading::View(view) => Err(is_a_view(&view)),
            Reading::Missing => Ok(None),
        }
    }
}

/// A collection that the door has let an operation read. A cursor keeps it for as long as it lives.
#[derive(Clone, Debug)]
pub struct Acquisition {
    coll: Arc<Collection>,
    visible: Visible,
}

impl Acquisition {
    pub(crate) fn new(coll: Arc<Collection>, visible: Visible) -> Acquisition {
        Acquisition { coll, visible }
    }
    pub fn collection(&self) -> &Arc<Collection> {
        &self.coll
    }
}

impl Deref for Acquisition {
    type Target = Collection;
    fn deref(&self) -> &Collection {
        &self.coll
    }
}

/// A name with the views that stand over a collection followed down.
pub struct Below {
    /// Where the documents are.
    pub coll: Option<Acquisition>,
    /// Its name, whether it is there or not.
    pub ns: Namespace,
    /// The view that was named, and what all of them come to.
    pub view: Option<(Arc<View>, ResolvedView)>,
}

/// A collection as a cursor reads it, batch by batch.
pub struct CollectionScan {
    coll: Acquisition,
    /// What its batches do about prepared transactions.
    on_prepared: OnPrepared,
    /// Of a collection without rows: all batches read what it held when the scan was opened.
    table: Option<TableSource>,
}

impl CollectionScan {
    pub fn acquisition(&self) -> &Acquisition {
        &self.coll
    }
    pub fn on_prepared(&self) -> OnPrepared {
        self.on_prepared
    }
}

impl Access {
    /// The collection of that name as it is now, if any; 166 when it is a view.
    pub fn collection(&self, ctx: &OpCtx, ns: &Namespace) -> Result<Option<Acquisition>> {
        self.read(ctx, ns, ReadAt::Latest)?.collection()
    }
    /// The same for what is about a view itself: what it comes down to is not there where it lies on several shards.
    pub fn read_itself(&self, ctx: &OpCtx, ns: &Namespace, at: ReadAt) -> Result<Below> {
        match self.read_below(ctx, ns, at) {
            Err(e) if e.code == ErrorCode::CommandOnShardedViewNotSupportedOnMongod => {}
            done => return done,
        }
        let resolved = self.catalog.snapshot().resolve_view(ns)?;
        let view = match self.read(ctx, ns, at)? {
            Reading::View(view) => Some(view),
            Reading::Missing | Reading::Collection(_) => None,
        };
        let below = resolved.as_ref().map_or(ns, |r| &r.ns).clone();
        Ok(Below { coll: None, ns: below, view: view.zip(resolved) })
    }
    /// The collection that a name comes down to, through its views.
    pub fn read_below(&self, ctx: &OpCtx, ns: &Namespace, at: ReadAt) -> Result<Below> {
        let snapshot = self.catalog.snapshot();
        let none = |ns: &Namespace| Below { coll: None, ns: ns.clone(), view: None };
        let view = match self.read(ctx, ns, at)? {
            Reading::Missing => return Ok(none(ns)),
            Reading::Collection(coll) => return Ok(Below { coll: Some(coll), ..none(ns) }),
            Reading::View(view) => view,
        };
        let Some(resolved) = snapshot.resolve_view(ns)? else { return Ok(none(ns)) };
        self.check_below(ctx, &resolved)?;
        let coll = match self.read(ctx, &resolved.ns, at)? {
            Reading::Collection(coll) => Some(coll),
            Reading::View(_) | Reading::Missing => None,
        };
        Ok(Below { coll, ns: resolved.ns.clone(), view: Some((view, resolved)) })
    }

    /// Opens a collection for this operation: its transaction's view of it, or the one at `at`.
    pub fn source(&self, ctx: &OpCtx, coll: &Acquisition, at: ReadAt) -> Result<Box<dyn Source>> {
        self.open_source(open_txn(ctx), coll, at, on_prepared(&ctx.read_concern))
    }
    pub(crate) fn open_source(
        &self,
        transaction: Option<&Arc<OpenTxn>>,
        coll: &Acquisition,
        at: ReadAt,
        on_prepared: OnPrepared,
    ) -> Result<Box<dyn Source>> {
        let source = self.open_whole_source(transaction, &coll.coll, at, on_prepared)?;
        // Behind the snapshot: what is deleted in it has been told before.
        if coll.visible.as_ref().is_some_and(|owned| owned.is_outlived()) {
            let text = "Read has been terminated due to orphan range cleanup";
            return Err(Error::new(ErrorCode::QueryPlanKilled, text));
        }
        Ok(OwnedSource::wrap(source, &coll.visible))
    }
    pub(crate) fn open_whole_source(
        &self,
        transaction: Option<&Arc<OpenTxn>>,
        coll: &Arc<Collection>,
        at: ReadAt,
        on_prepared: OnPrepared,
    ) -> Result<Box<dyn Source>> {
        match transaction {
            Some(open) => Ok(Box::new(TxnSource::new(open.clone(), coll.clone())?)),
            None => self.catalog.open_source_with(coll, at, on_prepared),
        }
    }
    /// Opens it for a cursor.
    pub fn scan(
        &self,
        ctx: &OpCtx,
        coll: &Acquisition,
        at: ReadAt,
    ) -> Result<(CollectionScan, Box<dyn Source>)> {
        self.check_oplog_readable(coll)?;
        let table = TableSource::of(coll);
        let source = match &table {
            Some(table) => Box::new(table.clone()),
            None => self.source(ctx, coll, at)?,
        };
        let on_prepared = on_prepared(&ctx.read_concern);
        Ok((CollectionScan { coll: coll.clone(), on_prepared, table }, source))
    }
    /// Opens it again for a later batch.
    pub fn rescan(&self, ctx: &OpCtx, scan: &CollectionScan, at: ReadAt) -> Result<Box<dyn Source>> {
        match &scan.table {
            Some(table) => Ok(Box::new(table.clone())),
            None => self.open_source(open_txn(ctx), &scan.coll, at, scan.on_prepared),
        }
    }
    /// What a collection that a cursor stands on has become since: `None` when it is as it was; 175 when it is gone or has another
    /// name.
    pub fn changed_since(&self, coll: &Acquisition) -> Result<Option<Arc<Collection>>> {
        if !coll.is_stored() {
            return Ok(None);
        }
        let killed = |text: String| Err(Error::new(ErrorCode::QueryPlanKilled, text));
        let Some(now) = self.catalog.lookup_uuid(coll.uuid) else {
            return killed(format!("collection dropped. UUID {}", coll.uuid));
        };
        if now.ns != coll.ns {
            return killed(format!(
                "collection renamed from '{}' to '{}'. UUID {}",
                coll.ns, now.ns, coll.uuid
            ));
        }
        Ok((!Arc::ptr_eq(&now, &coll.coll)).then_some(now))
    }

    /// The newest document with this `_id`: one point read, nothing planned.
    pub fn find_id(&self, coll: &Acquisition, id: Elem<'_>) -> Result<Option<pando_storage::Bytes>> {
        let txn = self.catalog.read_latest()?;
        let found = find_id(&txn, coll, id)?.map(|(_, doc)| doc);
        Ok(found.filter(|doc| filter(&coll.visible).is_none_or(|v| v.owns(RawDoc::trusted(doc)))))
    }
    /// The document with this `_id` as it is at `at` in the collection that has that UUID now.
    pub fn find_id_by_uuid(&self, uuid: Uuid, id: Elem<'_>, at: Timestamp) -> Result<Option<DocBuf>> {
        let named = self.catalog.lookup_uuid(uuid).map(Named::Collection);
        let Reading::Collection(coll) = self.admit(named, None) else { return Ok(None) };
        let txn = self.catalog.storage().begin(ReadAt::At(at))?;
        let found = find_id(&txn, &coll, id)?;
        Ok(found.map(|(_, doc)| RawDoc::trusted(&doc).to_buf()))
    }
}
