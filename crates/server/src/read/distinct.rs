//! The plan of a `distinct`.

use super::Reads;
use pando_base::Result;
use pando_bson::{DocBuf, DocBuilder};
use pando_query::exec::Executor;
use pando_query::plan::{Query, distinct_plan, reads_only};
use pando_query::projection::Projection;
use pando_query::source::Source;
use std::sync::Arc;

/// Steps from value to value in an index where one serves, else a find with the filter.
pub(crate) fn plan(reads: &Reads, mut query: Query, key: &str, source: &dyn Source) -> Result<Executor> {
    let resources = reads.resources(None);
    if reads_only(&query, key, source.collection()) {
        let mut only = DocBuilder::new();
        only.i32(key, 1);
        let reads = Projection::parse(&only.finish(), &query.ctx).ok();
        // Explain does not name it.
        query.reads = reads.map(|p| Arc::new(p.shown_as(DocBuf::new())));
    }
    // An index does not tell which of its values are of documents that this shard owns.
    let stepping = match source.owned() {
        None => distinct_plan(&query, key, source.collection()),
        Some(_) => None,
    };
    match stepping {
        Some(plan) => Ok(Executor::with_plan(query, plan, resources)),
        None => Executor::new(query, source, resources),
    }
}
