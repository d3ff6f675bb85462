//! Writes to a time series: measurements go into buckets, deletes and updates speak of sources.
//!
//! Each source has one open bucket, remembered by its `_id`. A measurement that does not fit into it (too late, too
//! early, full) opens the next. What a command brings for one bucket is written at once.

use crate::Server;
use crate::find_one::Lookup;
use crate::query_cursor::ReadPoint;
use crate::server::new_object_id;
use crate::statements::{DeleteStatement, UpdateStatement, Updated};
use crate::writes::{ByCtx, Retry};
use pando_base::{Error, ErrorCode, HashMap, Namespace, OpTime, Result, Uuid, limits};
use pando_bson::{Bson, DocBuf, DocBuilder, ObjectId, RawDoc, Value};
use pando_catalog::lock::Lock;
use pando_catalog::{Named, WriteGuard, find_id};
use pando_command::OpCtx;
use pando_query::timeseries::{Bucket, TimeSeries, filter_on_meta, update_on_meta};
use std::sync::{Mutex, PoisonError};

/// Open buckets: per collection of buckets and source.
pub(crate) struct OpenBuckets {
    known: Mutex<HashMap<(Uuid, Vec<u8>), ObjectId>>,
    /// Inserts of measurements go one after the other: they read a bucket and write it.
    turn: Lock,
}

impl Default for OpenBuckets {
    fn default() -> OpenBuckets {
        OpenBuckets { known: Mutex::default(), turn: Lock::new() }
    }
}

impl OpenBuckets {
    fn get(&self, key: &(Uuid, Vec<u8>)) -> Option<ObjectId> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }
    fn put(&self, key: (Uuid, Vec<u8>), id: ObjectId) {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // What is forgotten costs a bucket that is not full.
        if all.len() >= limits::OPEN_BUCKETS_MAX {
            all.clear();
        }
        all.insert(key, id);
    }
}

/// A time series by its name.
pub(crate) struct Series {
    pub(crate) of: TimeSeries,
    pub(crate) buckets: Namespace,
}

/// One bucket with what a command adds to it.
struct Filling {
    source: Vec<u8>,
    bucket: Bucket,
    /// As it is stored; `None` for a new one.
    stored: Option<DocBuf>,
}

#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) n: usize,
    pub(crate) errors: Vec<(usize, Error)>,
    pub(crate) last: OpTime,
}

impl Server {
    /// The time series of that name, if it is one.
    pub(crate) fn time_series(&self, ns: &Namespace) -> Option<Series> {
        let snapshot = self.catalog.snapshot();
        let Some(Named::View(view)) = snapshot.get(ns) else { return None };
        if !view.on.coll().starts_with("system.buckets.") {
            return None;
        }
        let coll = snapshot.collection(&view.on)?;
        Some(Series { of: coll.options.time_series.clone()?, buckets: view.on.clone() })
    }

    /// Inserts measurements.
    pub(crate) async fn insert_measurements(
        &self,
        ctx: &OpCtx,
        series: &Series,
        docs: &[&RawDoc],
        ordered: bool,
    ) -> Result<Measured> {
        if ctx.in_txn() {
            return Err(Error::new(
                ErrorCode::OperationNotSupportedInTransaction,
                "Cannot insert into a time-series collection in a multi-document transaction",
            ));
        }
        let mut done = Measured::default();
        let _turn = ctx.interruptible(self.open_buckets.turn.exclusive()).await?;
        let Some(coll) = self.lock_for_write(ctx, &series.buckets).await? else {
            return Err(Error::internal("a time series without its buckets"));
        };
        let mut filled: Vec<Filling> = Vec::new();
        for (i, doc) in docs.iter().enumerate() {
            match self.put_measurement(&coll, &series.of, doc, &mut filled) {
                Ok(()) => done.n += 1,
                Err(e) => {
                    done.errors.push((i, e));
                    if ordered {
                        break;
                    }
                }
            }
        }
        for f in filled {
            done.last = self.write_bucket(ctx, &coll, f).await?.max(done.last);
        }
        Ok(done)
    }

    /// Puts one measurement into a bucket in memory.
    fn put_measurement(
        &self,
        coll: &WriteGuard,
        series: &TimeSeries,
        doc: &RawDoc,
        filled: &mut Vec<Filling>,
    ) -> Result<()> {
        let time = series.time_of(doc)?;
        let doc = self.catalog.fix_for_insert(doc)?;
        let source = Bucket::source_of(series, &doc);
        let fits = |b: &Bucket| b.has_room(series, time, doc.byte_len());
        if let Some(f) = filled.iter_mut().rev().find(|f| f.source == source) {
            if fits(&f.bucket) {
                f.bucket.add(series, &doc);
                return Ok(());
            }
        } else if let Some(stored) = self.open_bucket(coll, &source)? {
            let mut bucket = Bucket::from_doc(series, &stored)?;
            if fits(&bucket) {
                bucket.add(series, &doc);
                filled.push(Filling { source, bucket, stored: Some(stored) });
                return Ok(());
            }
        }
        let mut bucket = Bucket::new(series, &doc, new_object_id(&self.env))?;
        bucket.add(series, &doc);
        self.open_buckets.put((coll.uuid, source.clone()), bucket.id);
        filled.push(Filling { source, bucket, stored: None });
        Ok(())
    }

    fn open_bucket(&self, coll: &WriteGuard, source: &[u8]) -> Result<Option<DocBuf>> {
        let Some(id) = self.open_buckets.get(&(coll.uuid, source.to_vec())) else { return Ok(None) };
        let mut key = DocBuilder::new();
        key.object_id("_id", id);
        let key = key.finish();
        let Some(id) = key.first() else { return Ok(None) };
        let txn = self.catalog.read_latest()?;
        Ok(find_id(&txn, coll, id)?.map(|(_, doc)| RawDoc::trusted(&doc).to_buf()))
    }

    async fn write_bucket(&self, ctx: &OpCtx, coll: &WriteGuard, f: Filling) -> Result<OpTime> {
        let doc = f.bucket.to_doc();
        let Some(stored) = f.stored else {
            let none: &[i32] = &[];
            let done =
                self.catalog.insert_many(&Default::default(), coll, &[&*doc], none, true, &ByCtx(ctx)).await;
            return match done.errors.into_iter().next() {
                Some((_, e)) => Err(e),
                None => Ok(done.last),
            };
        };
        let (_, last) = self
            .in_unit(ctx, coll, |unit| {
                let Some(id) = stored.elem("_id") else { return Ok(()) };
                let Some((rid, old)) = find_id(unit.txn(), coll, id)? else {
                    return Err(Error::new(ErrorCode::WriteConflict, "the bucket is gone"));
                };
                if old[..] != stored.as_bytes()[..] {
                    return Err(Error::new(ErrorCode::WriteConflict, "the bucket has changed meanwhile"));
                }
                let form = pando_catalog::UpdateForm::Replacement;
                unit.update(&Default::default(), coll, &rid, RawDoc::trusted(&old), &doc, form, &[])
            })
            .await?;
        Ok(last)
    }

    /// A delete by source. Returns how many measurements went.
    pub(crate) async fn delete_measurements(
        &self,
        ctx: &OpCtx,
        series: &Series,
        s: &DeleteStatement<'_>,
        retry: &mut Retry,
    ) -> Result<u64> {
        if !s.multi {
            return Err(Error::new(
                ErrorCode::IllegalOperation,
                "Cannot perform a non-multi delete on a time-series collection",
            ));
        }
        let filter = filter_on_meta(&series.of, s.filter)?;
        let n = self.matching_buckets(ctx, series, &filter).await?.iter().map(|(_, n)| n).sum();
        let s = DeleteStatement { filter: &filter, ..s.clone() };
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
        if s.upsert {
            return refuse("Cannot perform an upsert on a time-series collection");
        }
        if !s.multi {
            return refuse("Cannot perform a non-multi update on a time-series collection");
        }
        let filter = filter_on_meta(&series.of, s.filter)?;
        let update = update_on_meta(&series.of, s.update)?;
        let mut total = Updated::default();
        for (id, n) in self.matching_buckets(ctx, series, &filter).await? {
            let mut one = DocBuilder::new();
            one.bson("_id", &id);
            let one = one.finish();
            let update = Value::Document(&update);
            let s = UpdateStatement { filter: &one, update, multi: false, ..s.clone() };
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
    ) -> Result<Vec<(Bson, u64)>> {
        let Some(coll) = self.lock_for_write(ctx, &series.buckets).await? else { return Ok(Vec::new()) };
        let q = self.query_ctx(ctx, Some(coll.collection()), None, None)?;
        let lookup = Lookup::new(filter, None, None, q, coll.collection())?;
        let mut candidates = lookup.all(self, ctx, &coll).await?;
        let mut out = Vec::new();
        loop {
            let batch = candidates.next_batch(ctx, limits::MULTI_WRITE_UNIT_DOCS).await?;
            if batch.is_empty() {
                return Ok(out);
            }
            let mut source = self.open_source(ctx, coll.collection(), ReadPoint::Latest)?;
            for rid in &batch {
                let Some(doc) = source.fetch(rid)? else { continue };
                let bucket = RawDoc::trusted(&doc);
                if let Some(id) = bucket.get("_id") {
                    out.push((Bson::from(id), measurements(&series.of, bucket)));
                }
            }
        }
    }
}

fn measurements(series: &TimeSeries, bucket: &RawDoc) -> u64 {
    let times = bucket.get("data").and_then(|d| d.as_doc()?.get(&series.time_field)?.as_doc());
    times.map_or(0, |t| t.count() as u64)
}
