//! Deletes and updates of sources: what they say of the meta field, said of the buckets.

use crate::aggregation::hint_on_buckets;
use crate::write::Writes;
use crate::write::find_one::Lookup;
use crate::write::statements::Updated;
use crate::write::writes::Retry;
use pando_access::{Missing, Series};
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{Bson, DocBuilder, RawDoc, Value};
use pando_command::OpCtx;
use pando_query::matcher::Place;
use pando_query::plan::Hint;
use pando_query::timeseries::{filter_on_meta, has_source, measurements_in, update_on_meta};
use pando_request::{DeleteStatement, UpdateStatement};

impl Writes {
    /// A delete. Returns how many measurements went.
    pub(crate) async fn delete_measurements(
        &self,
        ctx: &OpCtx,
        series: &Series,
        s: &DeleteStatement<'_>,
        retry: &mut Retry,
    ) -> Result<u64> {
        let filter = match filter_on_meta(&series.of, s.filter) {
            Ok(filter) if s.multi => filter,
            _ => return self.delete_measured(ctx, series, s, retry).await,
        };
        let hint = hint_on_buckets(s.hint.clone(), &series.of)?;
        let found = self.matching_buckets(ctx, series, &filter, hint.clone()).await?;
        let n = found.iter().map(|(_, n)| n).sum();
        let s = DeleteStatement { filter: &filter, hint, ..s.clone() };
        self.delete_statement(ctx, &series.buckets, &s, retry).await?;
        Ok(n)
    }

    /// An update of sources.
    pub(crate) async fn update_measurements(
        &self,
        ctx: &OpCtx,
        series: &Series,
        s: &UpdateStatement<'_>,
        retry: &mut Retry,
    ) -> Result<Updated> {
        let refuse = |text: &'static str| Err(Error::new(ErrorCode::InvalidOptions, text));
        has_source(&series.of)?;
        if s.upsert {
            return refuse("Cannot perform an upsert on a time-series collection");
        }
        if !s.multi {
            return refuse("Cannot perform a non-multi update on a time-series collection");
        }
        let filter = filter_on_meta(&series.of, s.filter)?;
        let hint = hint_on_buckets(s.hint.clone(), &series.of)?;
        let update = update_on_meta(&series.of, s.update)?;
        let mut total = Updated::default();
        for (id, n) in self.matching_buckets(ctx, series, &filter, hint).await? {
            let mut one = DocBuilder::new();
            one.bson("_id", &id);
            let one = one.finish();
            let update = Value::Document(&update);
            let s = UpdateStatement { filter: &one, update, multi: false, hint: None, ..s.clone() };
            let done = self.update_statement(ctx, &series.buckets, &s, retry).await?;
            total.matched += done.matched * n;
            total.modified += done.modified * n;
        }
        Ok(total)
    }

    /// The buckets of some sources, with how many measurements each has.
    async fn matching_buckets(
        &self,
        ctx: &OpCtx,
        series: &Series,
        filter: &RawDoc,
        hint: Option<Hint>,
    ) -> Result<Vec<(Bson, u64)>> {
        let Some(coll) = self.reads.access.write(ctx, &series.buckets, Missing::Nothing).await? else {
            return Ok(Vec::new());
        };
        let q = self.reads.query_ctx(ctx, Some(coll.collection()), None, None)?;
        let lookup = Lookup::new(Place::Query, filter, hint, None, q, coll.collection())?;
        let mut candidates = lookup.all(&self.reads, ctx, &coll).await?;
        let mut out = Vec::new();
        loop {
            let batch = candidates.next_batch(ctx, &coll, limits::MULTI_WRITE_UNIT_DOCS).await?;
            if batch.is_empty() {
                return Ok(out);
            }
            let mut source = self.reads.access.decided_source(ctx, &coll)?;
            for rid in &batch {
                let Some(doc) = source.fetch(rid)? else { continue };
                let bucket = RawDoc::trusted(&doc);
                if let Some(id) = bucket.get("_id") {
                    out.push((Bson::from(id), measurements_in(&series.of, bucket)));
                }
            }
        }
    }
}
