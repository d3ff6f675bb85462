//! The collections that the stages of an aggregation read beside its own.

use crate::Server;
use crate::aggregation::collection_stats::CollectionStatsStages;
use crate::cursors::query::ReadPoint;
use crate::transaction::OpenTxn;
use crate::transaction::conflicts::on_prepared;
use pando_base::{Namespace, Result};
use pando_bson::DocBuf;
use pando_catalog::{Catalog, Named};
use pando_command::OpCtx;
use pando_query::collation::Collation;
use pando_query::stage::{Collections, Opened, PipelineSource, Target};
use pando_storage::{OnPrepared, ReadAt};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) struct ForeignCollections {
    catalog: Catalog,
    point: ReadPoint,
    on_prepared: OnPrepared,
    /// What the point means now.
    at: Mutex<ReadAt>,
    /// Whose view of them is wanted.
    transaction: Option<Arc<OpenTxn>>,
    about: CollectionStatsStages,
}

impl ForeignCollections {
    pub(crate) fn new(server: &Server, ctx: &OpCtx, point: ReadPoint) -> Arc<ForeignCollections> {
        let at = Mutex::new(server.read_at(point));
        Arc::new(ForeignCollections {
            catalog: server.catalog.clone(),
            point,
            on_prepared: on_prepared(&ctx.read_concern),
            at,
            transaction: server.open_txn(ctx).cloned(),
            about: server.collection_stats_stages(),
        })
    }
    /// Snapshots opened from now on are those of now.
    pub(crate) fn renew(&self, server: &Server) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = server.read_at(self.point);
    }
}

impl Collections for ForeignCollections {
    fn resolve(&self, ns: &str) -> Result<Target> {
        let own = Target { ns: ns.to_owned(), view: None, collation: None };
        // A pipeline of `$documents` names no collection.
        let Ok(parsed) = Namespace::parse(ns) else { return Ok(own) };
        Ok(match self.catalog.snapshot().resolve_view(&parsed)? {
            None => own,
            Some(view) => Target {
                ns: view.ns.as_str().to_owned(),
                view: Some(view.pipeline),
                collation: view.collation.as_deref().map(Collation::stored).transpose()?.flatten(),
            },
        })
    }
    fn about(&self, ns: &str, stage: &PipelineSource) -> Result<Option<Vec<DocBuf>>> {
        let Ok(ns) = Namespace::parse(ns) else { return Ok(None) };
        self.about.documents(&ns, self.catalog.lookup(&ns).as_deref(), stage)
    }
    fn open(&self, ns: &str) -> Result<Opened> {
        let Ok(ns) = Namespace::parse(ns) else { return Ok(Opened::Missing) };
        if let Some(open) = &self.transaction {
            return open.source_of(&self.catalog, &ns).map(Opened::from);
        }
        let at = *self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let named = match at {
            ReadAt::At(ts) => self.catalog.named_at(&ns, ts)?,
            _ => self.catalog.snapshot().get(&ns).cloned(),
        };
        let Some(Named::Collection(coll)) = named else { return Ok(Opened::Missing) };
        self.catalog.open_source_with(&coll, at, self.on_prepared).map(Opened::Here)
    }
}
