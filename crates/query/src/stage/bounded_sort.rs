//! `$_internalBoundedSort`: a `$sort` by time over buckets that come nearly in order. Rows wait only until no later bucket
//! can hold an earlier one; when too many wait, it goes on as any sort.

use super::bucket_frontier::Frontier;
use super::row::Row;
use super::running::{Running, Start};
use super::step::Step;
use super::upstream::Upstream;
use crate::sort::{SortKeys, SortedRows, Sorter, SpillSpace};
use pando_base::limits::BOUNDED_SORT_SLACK_ROWS;
use pando_base::{Error, Result};
use pando_bson::Value;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

pub(super) struct BoundedSort {
    keys: SortKeys,
    time_field: String,
    frontier: Arc<Frontier>,
    spill: Option<Arc<dyn SpillSpace>>,
    /// Of rows that wait, and of those that are sorted after all.
    bytes_max: usize,
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// Of the rows that wait.
    bytes: usize,
    arrived: u64,
    /// How many more are wanted.
    left: Option<u64>,
    state: State,
}

enum State {
    Merging,
    /// Nothing more comes.
    Draining,
    Filling(Sorter<Row>),
    Sorted(SortedRows<Row>),
}

struct Waiting {
    key: Box<[u8]>,
    arrived: u64,
    group: u64,
    time: i64,
    row: Row,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.key.cmp(&other.key).then(self.arrived.cmp(&other.arrived))
    }
}

impl Waiting {
    fn byte_len(&self) -> usize {
        self.key.len() + self.row.bytes().len() + std::mem::size_of::<Waiting>()
    }
}

impl BoundedSort {
    pub(super) fn start(
        keys: SortKeys,
        limit: Option<u64>,
        time_field: String,
        run: &Start<'_>,
    ) -> Result<BoundedSort> {
        let frontier = run.frontier.clone().ok_or_else(|| Error::internal("no buckets to follow"))?;
        Ok(BoundedSort {
            keys,
            left: limit,
            time_field,
            frontier,
            spill: run.spill(),
            bytes_max: run.ctx.memory.sort,
            waiting: BinaryHeap::new(),
            bytes: 0,
            arrived: 0,
            state: State::Merging,
        })
    }
    fn take(&mut self, row: Row) -> Result<()> {
        let time = match row.doc().get(&self.time_field) {
            Some(Value::DateTime(ms)) => ms,
            // It waits for all others.
            _ if self.frontier.descending => i64::MIN,
            _ => i64::MAX,
        };
        let key = self.keys.key(row.doc(), None)?.into();
        let one = Waiting { key, arrived: self.arrived, group: self.frontier.group(), time, row };
        self.arrived += 1;
        self.bytes += one.byte_len();
        self.waiting.push(Reverse(one));
        self.drop_unwanted();
        if self.bytes > self.bytes_max {
            self.give_up()?;
        }
        Ok(())
    }

    /// Behind a limit only so many rows have to wait.
    fn drop_unwanted(&mut self) {
        let Some(wanted) = self.left.and_then(|n| usize::try_from(n).ok()) else { return };
        if self.waiting.len() < wanted.saturating_mul(2).saturating_add(BOUNDED_SORT_SLACK_ROWS) {
            return;
        }
        let mut all = std::mem::take(&mut self.waiting).into_vec();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.truncate(wanted);
        self.bytes = all.iter().map(|w| w.0.byte_len()).sum();
        self.waiting = all.into();
    }

    /// Too many rows overlap.
    fn give_up(&mut self) -> Result<()> {
        let limit = self.left.and_then(|n| usize::try_from(n).ok());
        let mut sorter = Sorter::new(limit, self.bytes_max, self.spill.clone());
        let mut all = std::mem::take(&mut self.waiting).into_vec();
        all.sort_unstable_by_key(|w| w.0.arrived);
        for Reverse(w) in all {
            sorter.add(&w.key, w.row)?;
        }
        self.state = State::Filling(sorter);
        Ok(())
    }

    /// The next row, if no later one can come before it.
    fn first(&mut self) -> Option<Row> {
        let Reverse(top) = self.waiting.peek()?;
        if !matches!(self.state, State::Draining) && !self.frontier.has_passed(top.group, top.time) {
            return None;
        }
        let Reverse(top) = self.waiting.pop()?;
        self.bytes -= top.byte_len();
        Some(top.row)
    }

    fn give(&mut self, row: Row) -> Step {
        self.left = self.left.map(|n| n - 1);
        Step::Row(row)
    }
}

impl Running for BoundedSort {
    fn held_bytes(&self) -> usize {
        let sorted = match &self.state {
            State::Filling(sorter) => sorter.held_bytes(),
            State::Sorted(rows) => rows.held_bytes(),
            State::Merging | State::Draining => 0,
        };
        self.bytes + sorted
    }
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            if self.left == Some(0) {
                return Ok(Step::Eof);
            }
            match &mut self.state {
                State::Merging | State::Draining => {
                    if let Some(row) = self.first() {
                        return Ok(self.give(row));
                    }
                    if matches!(self.state, State::Draining) {
                        return Ok(Step::Eof);
                    }
                    match up.next()? {
                        Step::Row(row) => self.take(row)?,
                        Step::NeedYield => return Ok(Step::NeedYield),
                        Step::Eof => self.state = State::Draining,
                    }
                }
                State::Filling(sorter) => match up.next()? {
                    Step::Row(row) => sorter.add(self.keys.key(row.doc(), None)?, row)?,
                    Step::NeedYield => return Ok(Step::NeedYield),
                    Step::Eof => {
                        if let State::Filling(sorter) = std::mem::replace(&mut self.state, State::Draining) {
                            self.state = State::Sorted(sorter.finish()?);
                        }
                    }
                },
                State::Sorted(rows) => {
                    return Ok(match rows.next_row()? {
                        Some((_, row)) => self.give(row),
                        None => Step::Eof,
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ctx::QueryCtx;
    use crate::sort::tests::MemSpill;
    use crate::source::CollectionInfo;
    use crate::stage::{Pipeline, Row, RunEnv, Step};
    use crate::timeseries::{Bucket, TimeSeries};
    use pando_bson::{DocBuf, ObjectId, Value, doc};
    use std::sync::Arc;

    /// Two buckets an hour apart, each with `n` measurements whose times run down.
    fn buckets(n: i64) -> Vec<DocBuf> {
        let series = TimeSeries::parse(&doc! { "timeField": "t" }.to_raw()).unwrap();
        let bucket = |hour: i64| {
            let row =
                |i: i64| doc! { "t": pando_bson::Bson::DateTime(hour * 3_600_000 + i), "x": "y".repeat(100) };
            let first = row(0).to_raw();
            let mut b = Bucket::new(&series, &first, ObjectId([hour as u8; 12])).unwrap();
            (0..n).rev().for_each(|i| b.add(&series, &row(i).to_raw()));
            b.to_doc()
        };
        vec![bucket(1), bucket(2)]
    }

    /// The times of the rows as they come.
    fn sorted(n: i64, limit: &str) -> Vec<i64> {
        let text = format!(
            r#"{{"p":[{{"$_internalUnpackBucket":{{"timeField":"t","bucketMaxSpanSeconds":3600}}}},{{"$sort":{{"t":1}}}}{limit}]}}"#
        );
        let raw = pando_bson::extjson::parse(&text).unwrap().to_raw();
        let mut ctx = QueryCtx::default();
        ctx.memory.sort = 16 * 1024;
        let mut pipeline = Pipeline::parse(raw.get("p").unwrap().as_array().unwrap(), &ctx).unwrap();
        let info = CollectionInfo { clustered: Some("_id_".to_owned()), ..CollectionInfo::default() };
        let mut query = pipeline.take_find().into_query("d.c", &info, &ctx, None).unwrap();
        pipeline.order_buckets(&mut query, &info).unwrap();
        assert!(query.sort.is_some());
        let mut runner = pipeline
            .start(&RunEnv { spill: Some(Arc::new(MemSpill::default())), collections: None })
            .unwrap();
        let mut input = buckets(n).into_iter().map(Row::from);
        let mut out = Vec::new();
        loop {
            match runner.next(&mut input).unwrap() {
                Step::Row(row) => match row.doc().get("t") {
                    Some(Value::DateTime(ms)) => out.push(ms),
                    other => panic!("{other:?}"),
                },
                Step::NeedYield => {}
                Step::Eof => return out,
            }
        }
    }

    #[test]
    fn rows_that_wait_in_great_number_are_sorted_as_any() {
        for n in [20, 300] {
            let times = sorted(n, "");
            let wanted: Vec<i64> =
                (1..3).flat_map(|hour| (0..n).map(move |i| hour * 3_600_000 + i)).collect();
            assert_eq!(times, wanted);
        }
    }

    #[test]
    fn a_limit_holds_for_rows_before_and_behind_the_turn() {
        for (n, limit) in [(20, 5), (300, 5), (300, 310), (20, 21)] {
            let rows = sorted(n, &format!(r#",{{"$limit":{{"$numberLong":"{limit}"}}}}"#));
            assert_eq!(rows.len(), limit);
            assert!(rows.windows(2).all(|w| w[0] < w[1]) && rows[0] == 3_600_000);
        }
    }
}
