//! Reads of documents: from what a command says to the rows of a plan.
//!
//! | file | what |
//! |---|---|
//! | [`point`] | which state of the data an operation reads |
//! | [`query_ctx`] | what expressions see beside documents: collation, variables, randomness, [`scripts`] |
//! | [`find`] | the arguments of a find become a query, which is run at once or over several batches |
//! | [`distinct`] | the plan of a `distinct` |
//! | [`scan`] | a plan that goes on from batch to batch |
//!
//! [`Reads`] is all that a read takes of a server. Cursors, aggregations and writes, which look for what they change, hold it.

pub(crate) mod distinct;
pub(crate) mod find;
pub(crate) mod let_variables;
pub(crate) mod point;
pub(crate) mod query_ctx;
pub(crate) mod scan;
pub(crate) mod scripts;

use crate::Config;
use crate::replication::Replication;
use crate::statistics::plan_use;
use pando_access::{Access, Collection};
use pando_base::Result;
use pando_command::{Instance, OpCtx, Param};
use pando_query::exec::{Executor, Resources};
use pando_query::named::Named;
use pando_session::Spills;
use pando_storage::Storage;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Steps of the executor between two chances for others to run: well under a millisecond.
pub(crate) const STEPS_PER_TURN: u32 = 1024;

/// Lets others run; those who look see by now how this operation goes about it.
pub(crate) fn yield_from<'c>(
    ctx: &'c OpCtx,
    exec: &Executor,
    coll: &Collection,
) -> impl Future<Output = Result<()>> + Send + use<'c> {
    if let Some(plan) = exec.plan() {
        ctx.show(|op| {
            if op.plan_summary.is_empty() {
                op.plan_summary = plan_use::summary(plan, coll);
            }
        });
    }
    ctx.yield_now()
}

/// What reads are carried out with.
pub(crate) struct Reads {
    pub(crate) instance: Arc<Instance>,
    pub(crate) storage: Storage,
    pub(crate) access: Access,
    pub(crate) replication: Arc<Replication>,
    /// Snapshots are those of the majority.
    majority_reads: bool,
    /// Temporary files of sorts and groups.
    spills: Arc<Spills>,
    /// What requests name is counted there.
    named: Arc<Named>,
}

impl Reads {
    pub(crate) fn new(
        config: &Config,
        instance: Arc<Instance>,
        storage: Storage,
        access: Access,
        replication: Arc<Replication>,
        spills: Arc<Spills>,
        named: Arc<Named>,
    ) -> Reads {
        let majority_reads = config.majority_reads;
        Reads { majority_reads, instance, storage, access, replication, spills, named }
    }
    /// Where a plan may put what is over its memory.
    pub(crate) fn resources(&self, allow_disk_use: Option<bool>) -> Resources {
        let params = &self.instance.params;
        let spills = allow_disk_use.unwrap_or_else(|| params.bool(Param::allowDiskUseByDefault));
        Resources { spill: spills.then(|| self.spills.clone() as _) }
    }
    /// After a query has run: index use, counters, the line's plan summary.
    pub(crate) fn note_plan(&self, ctx: &OpCtx, exec: &Executor, coll: &Collection) {
        let stats = exec.stats();
        let (keys, docs) = (stats.total_keys_examined(), stats.total_docs_examined());
        let documents = &self.instance.metrics.documents;
        documents.scanned_keys.add(keys);
        documents.scanned_docs.add(docs);
        let Some(plan) = exec.plan() else { return };
        plan_use::count_use(plan, coll);
        let (scans, not_tailing) = plan_use::collection_scans(plan);
        documents.collection_scans.add(scans);
        documents.collection_scans_not_tailing.add(not_tailing);
        coll.shared.scans.total.fetch_add(scans, Relaxed);
        coll.shared.scans.not_tailing.fetch_add(not_tailing, Relaxed);
        let sorts = plan.has_blocking_sort();
        if sorts {
            documents.sorted_in_memory.inc();
        }
        ctx.debug(|d| {
            d.plan_summary = plan_use::summary(plan, coll);
            d.keys_examined = Some(keys);
            d.docs_examined = Some(docs);
            d.has_sort_stage = sorts;
            d.used_disk = stats.used_disk();
            d.replanned = exec.replanned().map(str::to_owned);
        });
    }
}
