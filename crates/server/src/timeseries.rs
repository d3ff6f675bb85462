//! Writes to a time series: measurements go into buckets, deletes and updates speak of sources.
//!
//! Each source has one open bucket, remembered by its `_id`. A measurement that does not fit into it (too late, too
//! early, full) opens the next. What a command brings for one bucket is written at once.

use crate::Server;
use crate::find_one::Lookup;
use crate::query_cursor::ReadPoint;
use crate::server::new_object_id;
use crate::statements::{DeleteStatement, UpdateStatement, Updated};
use crate::writes::{ByCtx, Retry, ends_command};
use pando_base::{Error, ErrorCode, HashMap, Namespace, OpTime, Result, Uuid, limits};
use pando_bson::{Bson, DocBuf, DocBuilder, ObjectId, RawDoc, Value};
use pando_catalog::lock::Lock;
use pando_catalog::{Named, WriteGuard, find_id, retry_conflicts};
use pando_command::OpCtx;
use pando_query::timeseries::{Bucket, TimeSeries, filter_on_meta, update_on_meta};
use pando_session::retryable::{Done, Kind};
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
    /// The measurements that are new in it, by their places in the command.
    new: Vec<usize>,
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
        retry: &mut Retry,
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
            if retry.done(i).is_some() {
                done.n += 1;
                continue;
            }
            if let Err(e) = self.put_measurement(&coll, &series.of, doc, i, &mut filled) {
                done.errors.push((i, e));
                if ordered {
                    break;
                }
            }
        }
        for f in filled {
            match self.write_bucket(ctx, &coll, &series.of, &f, docs, retry).await {
                Ok(last) => {
                    done.last = last.max(done.last);
                    done.n += f.new.len();
                }
                Err(e) if ends_command(&e) => return Err(e),
                Err(e) => done.errors.extend(f.new.iter().map(|i| (*i, e.clone()))),
            }
        }
        done.errors.sort_by_key(|(i, _)| *i);
        Ok(done)
    }

    /// Puts one measurement into a bucket in memory.
    fn put_measurement(
        &self,
        coll: &WriteGuard,
        series: &TimeSeries,
        doc: &RawDoc,
        at: usize,
        filled: &mut Vec<Filling>,
    ) -> Result<()> {
        let time = series.time_of(doc)?;
        let doc = self.catalog.fix_for_insert(doc)?;
        let source = Bucket::source_of(series, &doc);
        let fits = |b: &Bucket| b.has_room(series, time, doc.byte_len());
        if let Some(f) = filled.iter_mut().rev().find(|f| f.source == source) {
            if fits(&f.bucket) {
                f.bucket.add(series, &doc);
                f.new.push(at);
                return Ok(());
            }
        } else if let Some(stored) = self.open_bucket(coll, &source)? {
            let mut bucket = Bucket::from_doc(series, &stored)?;
            if fits(&bucket) {
                bucket.add(series, &doc);
                filled.push(Filling { source, bucket, stored: Some(stored), new: vec![at] });
                return Ok(());
            }
        }
        let mut bucket = Bucket::new(series, &doc, new_object_id(&self.env))?;
        bucket.add(series, &doc);
        self.open_buckets.put((coll.uuid, source.clone()), bucket.id);
        filled.push(Filling { source, bucket, stored: None, new: vec![at] });
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

    /// Writes it, with the statements that it holds as those of its entry.
    async fn write_bucket(
        &self,
        ctx: &OpCtx,
        coll: &WriteGuard,
        series: &TimeSeries,
        f: &Filling,
        docs: &[&RawDoc],
        retry: &mut Retry,
    ) -> Result<OpTime> {
        let statements: Vec<i32> = match retry.is_retryable() {
            true => f.new.iter().map(|i| retry.stmt_id(*i)).collect(),
            false => Vec::new(),
        };
        let written = match &f.stored {
            Some(stored) => self.grow_bucket(ctx, coll, f, stored, &statements, retry).await?,
            None => None,
        };
        let last = match written {
            Some(last) => last,
            None => {
                let bucket = match &f.stored {
                    None => f.bucket.to_doc(),
                    // Deleted or changed by its source meanwhile: what is new gets a bucket of its own.
                    Some(_) => self.bucket_of(coll, series, f, docs)?,
                };
                let op = retry.op(false);
                ctx.before_commit(op.session.is_some())?;
                let insert = || self.catalog.insert_of_statements(&op, coll, &bucket, &statements);
                retry_conflicts(&self.catalog, &ByCtx(ctx), insert).await?
            }
        };
        if !last.is_null() {
            for i in &f.new {
                retry.note(*i, Done { kind: Kind::Insert, inserted_id: None, image: None, op_time: last });
            }
        }
        Ok(last)
    }

    /// `None` when the stored bucket is not what it was.
    async fn grow_bucket(
        &self,
        ctx: &OpCtx,
        coll: &WriteGuard,
        f: &Filling,
        stored: &RawDoc,
        statements: &[i32],
        retry: &Retry,
    ) -> Result<Option<OpTime>> {
        let (op, doc) = (retry.op(false), f.bucket.to_doc());
        let (done, last) = self
            .in_unit(ctx, coll, |unit| {
                let Some(id) = stored.elem("_id") else { return Ok(false) };
                let found = find_id(unit.txn(), coll, id)?;
                let Some((rid, old)) = found.filter(|(_, old)| old[..] == stored.as_bytes()[..]) else {
                    return Ok(false);
                };
                ctx.before_commit(op.session.is_some())?;
                let form = pando_catalog::UpdateForm::Replacement;
                unit.update(&op, coll, &rid, RawDoc::trusted(&old), &doc, form, statements)?;
                Ok(true)
            })
            .await?;
        Ok(done.then_some(last))
    }

    /// A bucket of the new measurements alone.
    fn bucket_of(
        &self,
        coll: &WriteGuard,
        series: &TimeSeries,
        f: &Filling,
        docs: &[&RawDoc],
    ) -> Result<DocBuf> {
        let mut bucket: Option<Bucket> = None;
        for i in &f.new {
            let doc = self.catalog.fix_for_insert(docs[*i])?;
            let into = match &mut bucket {
                Some(bucket) => bucket,
                None => bucket.insert(Bucket::new(series, &doc, new_object_id(&self.env))?),
            };
            into.add(series, &doc);
        }
        let bucket = bucket.ok_or_else(|| Error::internal("a bucket without measurements"))?;
        self.open_buckets.put((coll.uuid, f.source.clone()), bucket.id);
        Ok(bucket.to_doc())
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
