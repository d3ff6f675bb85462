//! Many entries at once: what workers of a secondary do with their share of a batch.
//!
//! Entries about one document reach one worker, in order. A worker puts some dozens of them into one unit, each at
//! its own timestamp; readers see nothing of it until the batch is published. Workers may meet on index keys: the
//! later one then starts its unit over, entry by entry.

use crate::Catalog;
use crate::apply::applied::Applied;
use crate::apply::entry::{Applying, apply_to};
use crate::schema::collection::{Collection, KeyFormat};
use crate::schema::durable;
use crate::write::array_marks::{Marks, PendingMarks};
use pando_base::panics::poisoned;
use pando_base::{ErrorCode, Result, Timestamp, limits};
use pando_oplog::entry::{EntryView, OpType};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How entries of one collection may be spread over workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    ByDocument,
    /// The order between documents matters: record order of capped collections, keys of unique indexes that pass
    /// from one document to another, `_id`s that compare equal only under a collation.
    ByCollection,
}

impl Catalog {
    pub fn applied(&self) -> &Applied {
        &self.0.applied
    }
    pub fn spread_of(&self, e: &EntryView<'_>) -> Spread {
        let Some(coll) = e.ui.and_then(|u| self.lookup_uuid(u)) else { return Spread::ByCollection };
        let passes_keys =
            |c: &Collection| c.indexes.iter().any(|i| i.format == KeyFormat::Bare && !i.spec.is_id_index());
        if coll.is_capped() || coll.options.collation.is_some() || passes_keys(&coll) {
            Spread::ByCollection
        } else {
            Spread::ByDocument
        }
    }

    // tour: apply 6/9
    /// Applies `i`, `u`, `d` and `n` entries, or operations of transactions, in their order.
    pub fn apply_run(&self, entries: &[EntryView<'_>], why: Applying, marks: &Marks) -> Result<()> {
        let mut rest = entries;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(unit_len(rest, why));
            let counts = &self.0.applied;
            counts.units.inc();
            if self.apply_unit(now, why, marks)?.is_none() {
                counts.split.inc();
                for one in now.chunk_by(|a, b| a.ts == b.ts) {
                    while self.apply_unit(one, why, marks)?.is_none() {
                        pando_base::sync::yield_thread();
                    }
                }
            }
            rest = later;
        }
        Ok(())
    }

    /// `None`: another worker holds a key. Nothing has happened then.
    fn apply_unit(&self, entries: &[EntryView<'_>], why: Applying, marks: &Marks) -> Result<Option<()>> {
        let Some(first) = entries.first() else { return Ok(Some(())) };
        let mut unit = self.begin_applied_marking(first.ts, marks)?;
        let (mut last, mut first_rid): (Option<Arc<Collection>>, i64) = (None, i64::MAX);
        for e in entries.iter().filter(|e| e.op != OpType::Noop) {
            if last.as_ref().is_none_or(|c| Some(c.uuid) != e.ui) {
                last = self.target(e);
                first_rid = last.as_ref().map_or(i64::MAX, |c| marks.first_rid(c));
            }
            let Some(coll) = &last else {
                self.no_collection(e, why)?;
                continue;
            };
            unit.apply_at(e.ts);
            match apply_to(&mut unit, coll, e, why, first_rid) {
                Err(e) if e.code == ErrorCode::WriteConflict => return Ok(None),
                done => done.map_err(|err| err.context(format_args!("while applying {}", e.doc)))?,
            }
        }
        unit.commit().map(|_| Some(()))
    }

    /// Before a transaction is prepared: what it has met of arrays is noted in units of their own.
    pub(crate) async fn write_marks_early(&self, marks: Vec<PendingMarks>) -> Result<()> {
        let mut by_collection: BTreeMap<_, Vec<PendingMarks>> = BTreeMap::new();
        for m in marks {
            by_collection.entry(m.collection).or_default().push(m);
        }
        for (uuid, marks) in by_collection {
            let Some(coll) = self.lookup_uuid(uuid) else { continue };
            crate::retry_conflicts(self, &crate::write::interrupt::Uninterrupted, || {
                let mut unit = self.begin_write(&coll)?;
                unit.stamp();
                durable::put_row(&mut unit.txn, &coll, marks.iter())?;
                unit.log_noop("array paths of a transaction")?;
                unit.commit()
            })
            .await?;
            marks.iter().for_each(durable::mark_durable);
        }
        Ok(())
    }

    /// After all workers of a batch: what they met of arrays goes into the catalog rows, as of the batch's first
    /// entry. Then the batch may be published.
    pub fn finish_batch(&self, first: Timestamp, marks: &Marks) -> Result<()> {
        let met = std::mem::take(&mut *marks.arrays.lock().unwrap_or_else(poisoned));
        if met.is_empty() {
            return Ok(());
        }
        let mut by_collection: BTreeMap<_, Vec<PendingMarks>> = BTreeMap::new();
        for m in met {
            by_collection.entry(m.collection).or_default().push(m);
        }
        for (uuid, marks) in by_collection {
            let Some(coll) = self.lookup_uuid(uuid) else { continue };
            let mut unit = self.begin_applied(first)?;
            durable::put_row(&mut unit.txn, &coll, marks.iter())?;
            unit.commit()?;
            marks.iter().for_each(durable::mark_durable);
        }
        Ok(())
    }
}

fn unit_len(entries: &[EntryView<'_>], why: Applying) -> usize {
    let mut bytes = 0;
    let n = entries
        .iter()
        .take(limits::APPLY_UNIT_OPS_MAX)
        .take_while(|e| {
            bytes += e.doc.byte_len();
            bytes <= limits::APPLY_UNIT_BYTES_MAX
        })
        .count()
        .max(1);
    n + same_entry(&entries[n - 1..], why, |e| e.ts)
}

/// How many more than the first must share its unit: who skips what stands at an entry's timestamp already must not meet
/// an earlier operation of that same entry there.
pub fn same_entry<T, K: PartialEq>(rest: &[T], why: Applying, entry: impl Fn(&T) -> K) -> usize {
    match rest {
        [first, more @ ..] if why != Applying::Steady => {
            more.iter().take_while(|e| entry(e) == entry(first)).count()
        }
        _ => 0,
    }
}
