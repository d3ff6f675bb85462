//! Capped collections: the oldest documents make room, in the unit that brings the new one in.

use crate::schema::collection::Collection;
use crate::schema::sizes::Totals;
use crate::write::op::WriteOp;
use crate::write::record_id::{self, long_key};
use crate::write::unit::WriteUnit;
use pando_base::Result;
use pando_base::panics::poisoned;
use pando_bson::RawDoc;
use pando_query::source::RecordId;
use pando_storage::Dir;
use std::ops::Bound;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

/// The turn to insert: records of a capped collection become visible in their order.
pub(crate) fn turn(coll: &Collection) -> MutexGuard<'_, ()> {
    coll.shared.capped_turn.lock().unwrap_or_else(poisoned)
}

/// Deletes from the front until the bounds hold, the document just inserted always staying.
pub(crate) fn trim(unit: &mut WriteUnit, op: &WriteOp<'_>, coll: &Collection) -> Result<()> {
    let Some(bounds) = coll.options.capped else { return Ok(()) };
    let over = |t: Totals| t.bytes > bounds.size || bounds.max.is_some_and(|max| t.count > max);
    let mut totals = unit.totals_of(coll);
    if !over(totals) {
        return Ok(());
    }
    // Deleted records leave marks behind that a scan from the very front would walk over again and again.
    let front = long_key(coll.shared.capped_front.load(Ordering::Relaxed));
    let mut cursor = unit.txn.scan(coll.records, Bound::Included(&front), Bound::Unbounded, Dir::Forward)?;
    let quiet = WriteOp { session: None, ..*op };
    let mut last = None;
    while over(totals) && totals.count > 1 {
        let Some((key, doc)) = cursor.next()? else { break };
        let rid = record_id::from_storage_key(false, &key)?;
        unit.delete(&quiet, coll, &rid, RawDoc::trusted(&doc), &[])?;
        totals.count -= 1;
        totals.bytes -= doc.len() as i64;
        last = Some(rid);
    }
    if let Some(RecordId::Long(rid)) = last {
        let shared = coll.shared.clone();
        unit.after_commit(move |_| {
            shared.capped_front.fetch_max(rid + 1, Ordering::Relaxed);
        });
    }
    Ok(())
}
