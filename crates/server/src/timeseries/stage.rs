//! Where measurements go: into the bucket that their source writes to, into an older one that covers their time, or
//! into a new one.

use super::OpenBuckets;
use super::open_buckets::BucketCounts;
use pando_access::{Series, UpdateForm, WriteAcquisition, WriteOp, WriteUnit};
use pando_base::{HashMap, Result};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc};
use pando_query::source::RecordId;
use pando_query::timeseries::{Bucket, NoRoom};

/// One bucket with what is new in it.
pub(super) struct Filling {
    pub(super) bucket: Bucket,
    /// As it is stored; `None` for a new one.
    stored: Option<(RecordId, DocBuf)>,
    /// The measurements that are new in it, by their places in the command.
    pub(super) new: Vec<usize>,
}

/// Buckets that one unit of work writes.
pub(super) struct Stage<'a> {
    series: &'a Series,
    coll: &'a WriteAcquisition,
    known: &'a OpenBuckets,
    pub(super) fillings: Vec<Filling>,
    by_source: HashMap<DocBuf, Vec<usize>>,
    pub(super) counts: BucketCounts,
}

impl<'a> Stage<'a> {
    pub(super) fn new(series: &'a Series, coll: &'a WriteAcquisition, known: &'a OpenBuckets) -> Stage<'a> {
        let counts = BucketCounts::default();
        Stage { series, coll, known, fillings: Vec::new(), by_source: HashMap::default(), counts }
    }

    /// Puts measurement `at` of the command into a bucket in memory. `fresh` makes `_id`s.
    pub(super) fn put(
        &mut self,
        unit: &WriteUnit,
        at: usize,
        doc: &RawDoc,
        fresh: impl Fn() -> ObjectId,
    ) -> Result<()> {
        let time = self.series.of.time_of(doc)?;
        let source = Bucket::source_of(&self.series.of, doc);
        let filling = match self.staged(&source, time, doc.byte_len()) {
            Some(filling) => filling,
            None => match self.stored(unit, &source, time, doc.byte_len())? {
                Some(filling) => filling,
                None => {
                    let bucket = Bucket::new(&self.series.of, doc, fresh())?;
                    self.push(source, Filling { bucket, stored: None, new: Vec::new() })
                }
            },
        };
        let filling = &mut self.fillings[filling];
        filling.bucket.add(&self.series.of, doc);
        filling.new.push(at);
        Ok(())
    }

    fn push(&mut self, source: DocBuf, filling: Filling) -> usize {
        self.fillings.push(filling);
        let at = self.fillings.len() - 1;
        self.by_source.entry(source).or_default().push(at);
        at
    }

    fn staged(&self, source: &DocBuf, time: i64, bytes: usize) -> Option<usize> {
        let all = self.by_source.get(source)?;
        let fits = |at: &&usize| self.fillings[**at].bucket.room_for(&self.series.of, time, bytes).is_ok();
        all.iter().rev().find(fits).copied()
    }

    /// A stored bucket that takes the measurement.
    fn stored(
        &mut self,
        unit: &WriteUnit,
        source: &DocBuf,
        time: i64,
        bytes: usize,
    ) -> Result<Option<usize>> {
        let known = match self.by_source.contains_key(source) {
            true => None,
            false => self.known.get(self.coll.uuid, source),
        };
        match known {
            Some(id) => {
                if let Some(bucket) = self.by_id(unit, id)? {
                    let (rid, doc) = bucket;
                    match self.take(rid, doc, source, time, bytes) {
                        Some(Ok(at)) => return Ok(Some(at)),
                        Some(Err(why @ (NoRoom::Count | NoRoom::Size))) => {
                            self.counts.closed(why);
                            return Ok(None);
                        }
                        Some(Err(why)) => self.counts.closed(why),
                        None => {}
                    }
                }
            }
            None => self.counts.opened_due_to_metadata += i64::from(!self.by_source.contains_key(source)),
        }
        let series = &self.series.of;
        for (rid, doc) in self.coll.buckets_for(unit, series, source, time)? {
            if let Some(Ok(at)) = self.take(rid, doc, source, time, bytes) {
                self.counts.reopened += 1;
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn by_id(&self, unit: &WriteUnit, id: ObjectId) -> Result<Option<(RecordId, DocBuf)>> {
        let mut key = DocBuilder::new();
        key.object_id("_id", id);
        let key = key.finish();
        let Some(id) = key.first() else { return Ok(None) };
        Ok(self.coll.find_id(unit, id)?.map(|(rid, doc)| (rid, RawDoc::trusted(&doc).to_buf())))
    }

    /// Stages a stored bucket if it has room; `None` if it is staged already or not of this source.
    fn take(
        &mut self,
        rid: RecordId,
        doc: DocBuf,
        source: &DocBuf,
        time: i64,
        bytes: usize,
    ) -> Option<Result<usize, NoRoom>> {
        let bucket = Bucket::from_doc(&self.series.of, &doc)?;
        if bucket.source() != &**source || self.fillings.iter().any(|f| f.bucket.id == bucket.id) {
            return None;
        }
        if let Err(why) = bucket.room_for(&self.series.of, time, bytes) {
            return Some(Err(why));
        }
        let stored = Some((rid, doc));
        Some(Ok(self.push(source.clone(), Filling { bucket, stored, new: Vec::new() })))
    }

    /// Writes every bucket once.
    pub(super) fn write(
        &mut self,
        unit: &mut WriteUnit,
        op: &WriteOp<'_>,
        stmt_id: impl Fn(usize) -> Option<i32>,
    ) -> Result<()> {
        for f in &self.fillings {
            let statements: Vec<i32> = f.new.iter().filter_map(|i| stmt_id(*i)).collect();
            let doc = f.bucket.to_doc();
            match &f.stored {
                Some((rid, old)) => {
                    self.counts.updates += 1;
                    let form = UpdateForm::Diff(&f.bucket.diff());
                    unit.update(op, self.coll, rid, old, &doc, form, &statements)?;
                }
                None => {
                    self.counts.inserts += 1;
                    // Buckets are clustered: the record id is not used.
                    unit.insert(op, self.coll, &doc, 0, &statements)?;
                }
            }
            self.counts.commits += 1;
            self.counts.measurements += f.new.len() as i64;
        }
        Ok(())
    }

    /// Where each source goes on: its newest bucket.
    pub(super) fn newest(self) -> impl Iterator<Item = (DocBuf, ObjectId)> {
        let fillings = self.fillings;
        self.by_source.into_iter().filter_map(move |(source, all)| {
            let newest = all.iter().map(|at| &fillings[*at].bucket).max_by_key(|b| b.start_ms())?;
            Some((source, newest.id))
        })
    }
}
