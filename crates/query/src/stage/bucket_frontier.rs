//! How far buckets that come in an order have come: the times that rows still to come may have.

use super::running::Start;
use crate::sort::{SortKeys, SortPattern};
use pando_base::Result;
use pando_bson::{RawDoc, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// What is known of all rows to come. Written where buckets are opened, read where rows wait; by one thread at a time.
pub(super) struct Frontier {
    pub(super) descending: bool,
    /// No later row has an earlier time; a later one if rows come downwards.
    time: AtomicI64,
    /// Counts the values of what rows are sorted by before the time: earlier ones have all come.
    group: AtomicU64,
}

impl Frontier {
    pub(super) fn new(descending: bool) -> Frontier {
        let time = if descending { i64::MAX } else { i64::MIN };
        Frontier { descending, time: time.into(), group: 0.into() }
    }
    pub(super) fn group(&self) -> u64 {
        self.group.load(Ordering::Relaxed)
    }
    /// Whether a row of this group and time comes before all later ones.
    pub(super) fn has_passed(&self, group: u64, time: i64) -> bool {
        let bound = self.time.load(Ordering::Relaxed);
        group < self.group() || if self.descending { time > bound } else { time < bound }
    }
}

/// What buckets are ordered by, which bounds the times of later ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Id,
    Min,
    Max,
}

/// The order that buckets come in, when it bounds the times of later rows.
#[derive(Clone, PartialEq)]
pub(super) struct BucketOrder {
    pub(super) descending: bool,
    pub(super) base: Base,
    /// `control.min.t` or `control.max.t`
    pub(super) time: String,
    pub(super) span_ms: i64,
    /// What comes before the time.
    pub(super) prefix: Arc<SortPattern>,
}

/// Reads the frontier off each bucket.
pub(super) struct FrontierReader {
    frontier: Arc<Frontier>,
    order: BucketOrder,
    prefix: SortKeys,
    last: Option<Vec<u8>>,
}

impl FrontierReader {
    /// The reader of a run, which tells the sort behind it.
    pub(super) fn start(order: BucketOrder, run: &mut Start<'_>) -> FrontierReader {
        let frontier = Arc::new(Frontier::new(order.descending));
        run.frontier = Some(frontier.clone());
        let prefix = SortKeys::new(order.prefix.clone(), run.ctx.collation.clone());
        FrontierReader { frontier, order, prefix, last: None }
    }
    pub(super) fn opens(&mut self, bucket: &RawDoc) -> Result<()> {
        let f = &self.frontier;
        if !self.prefix.pattern().is_empty() {
            let key = self.prefix.key(bucket, None)?;
            if self.last.as_deref() != Some(key) {
                self.last = Some(key.to_vec());
                f.group.fetch_add(1, Ordering::Relaxed);
            }
        }
        let unknown = if f.descending { i64::MAX } else { i64::MIN };
        let bound = match self.order.base {
            Base::Id => self.of_id(bucket),
            base => match bucket.get_path(&self.order.time) {
                Some(Value::DateTime(ms)) if f.descending && base == Base::Min => {
                    Some(ms.saturating_add(self.order.span_ms))
                }
                Some(Value::DateTime(ms)) => Some(ms),
                _ => None,
            },
        };
        f.time.store(bound.unwrap_or(unknown), Ordering::Relaxed);
        Ok(())
    }

    /// An `_id` begins with the least time in seconds, if these can tell it.
    fn of_id(&self, bucket: &RawDoc) -> Option<i64> {
        let Some(Value::ObjectId(id)) = bucket.get("_id") else { return None };
        let secs = u32::from_be_bytes(*id.0.first_chunk()?);
        let first = i64::from(secs) * 1000;
        match self.frontier.descending {
            false => (secs > 0).then_some(first),
            true => (secs < u32::MAX).then(|| first.saturating_add(999 + self.order.span_ms)),
        }
    }
}
