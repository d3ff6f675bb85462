//! The collections that the stages of an aggregation read beside its own.

use crate::aggregation::collection_stats::CollectionStatsStages;
use crate::read::Reads;
use crate::read::point::ReadPoint;
use crate::statistics::top::Kind;
use pando_access::Beside;
use pando_base::{Error, Namespace, Result};
use pando_bson::DocBuf;
use pando_command::OpCtx;
use pando_query::collation::Collation;
use pando_query::stage::{Collections, Examined, Opened, PipelineSource, Target};
use pando_storage::ReadAt;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) struct ForeignCollections {
    beside: Beside,
    point: ReadPoint,
    /// What the point means now.
    at: Mutex<ReadAt>,
    about: Arc<CollectionStatsStages>,
    /// Since the last batch.
    read: Mutex<Read>,
}

/// What was opened, and what plans over it have looked at.
#[derive(Default)]
struct Read {
    opened: BTreeSet<Namespace>,
    examined: Examined,
}

impl ForeignCollections {
    pub(crate) fn new(
        reads: &Reads,
        about: Arc<CollectionStatsStages>,
        ctx: &OpCtx,
        point: ReadPoint,
    ) -> Arc<ForeignCollections> {
        let beside = reads.access.beside(ctx);
        let at = Mutex::new(reads.at(point));
        Arc::new(ForeignCollections { beside, point, at, about, read: Mutex::default() })
    }
    fn read(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Counts what was read for a batch.
    pub(crate) fn count(&self, reads: &Reads, ctx: &OpCtx) {
        let Read { opened, examined } = std::mem::take(&mut *self.read());
        let documents = &reads.instance.metrics.documents;
        documents.scanned_docs.add(examined.docs);
        documents.scanned_keys.add(examined.keys);
        documents.collection_scans.add(examined.collection_scans);
        documents.collection_scans_not_tailing.add(examined.collection_scans);
        for ns in opened {
            let is_there = || self.about.access.definitions().named(&ns).is_some();
            self.about.top.add(ns.as_str(), Kind::Command, false, ctx.elapsed(), is_there);
        }
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
        // The quote that nothing closes is MongoDB's.
        let unresolved = |e: Error| e.context(format_args!("Failed to resolve view '{ns}"));
        Ok(match self.beside.view(&parsed).map_err(unresolved)? {
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
        self.read().opened.insert(ns.clone());
        self.beside.source(&ns, at).map(Opened::from)
    }
    fn was_read(&self, read: &Examined) {
        let sum = &mut self.read().examined;
        sum.docs += read.docs;
        sum.keys += read.keys;
        sum.collection_scans += read.collection_scans;
    }
}
