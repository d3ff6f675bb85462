//! The collections that the stages of an aggregation read beside its own.

use crate::aggregation::collection_stats::CollectionStatsStages;
use crate::read::Reads;
use crate::read::point::ReadPoint;
use pando_access::Beside;
use pando_base::{Namespace, Result};
use pando_bson::DocBuf;
use pando_command::OpCtx;
use pando_query::collation::Collation;
use pando_query::stage::{Collections, Opened, PipelineSource, Target};
use pando_storage::ReadAt;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) struct ForeignCollections {
    beside: Beside,
    point: ReadPoint,
    /// What the point means now.
    at: Mutex<ReadAt>,
    about: Arc<CollectionStatsStages>,
}

impl ForeignCollections {
    pub(crate) fn new(
        reads: &Reads,
        about: Arc<CollectionStatsStages>,
        ctx: &OpCtx,
        point: ReadPoint,
    ) -> Arc<ForeignCollections> {
        let beside = reads.access.beside(ctx);
        Arc::new(ForeignCollections { beside, point, at: Mutex::new(reads.at(point)), about })
    }
    /// Snapshots opened from now on are those of now.
    pub(crate) fn renew(&self, reads: &Reads) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = reads.at(self.point);
    }
}

impl Collections for ForeignCollections {
    fn resolve(&self, ns: &str) -> Result<Target> {
        let own = Target { ns: ns.to_owned(), view: None, collation: None };
        // A pipeline of `$documents` names no collection.
        let Ok(parsed) = Namespace::parse(ns) else { return Ok(own) };
        Ok(match self.beside.view(&parsed)? {
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
        self.about.documents(&ns, self.beside.definition(&ns).as_deref(), stage)
    }
    fn open(&self, ns: &str) -> Result<Opened> {
        let Ok(ns) = Namespace::parse(ns) else { return Ok(Opened::Missing) };
        let at = *self.at.lock().unwrap_or_else(PoisonError::into_inner);
        self.beside.source(&ns, at).map(Opened::from)
    }
}
