//! Array paths that writers have met, on their way into the catalog's rows.

use crate::schema::collection::{Collection, Index};
use pando_base::panics::poisoned;
use pando_base::{HashMap, Uuid};
use std::sync::{Arc, Mutex};

/// Array paths that an index will have durably known once the unit commits.
pub(crate) struct PendingMarks {
    pub(crate) collection: Uuid,
    pub(crate) index: Arc<Index>,
    pub(crate) bits: Vec<u64>,
    pub(crate) paths: Vec<String>,
    /// A row that says so is among the unit's writes.
    pub(crate) written: bool,
}

/// Array paths met while a batch of entries was applied by several workers. The catalog rows that tell of them are
/// written once, at the batch's first timestamp ([`Catalog::finish_batch`](crate::Catalog::finish_batch)): a mark that comes early does no harm,
/// one that a checkpoint in the middle of the batch misses would.
#[derive(Clone, Default)]
pub struct Marks {
    pub(crate) arrays: Arc<Mutex<Vec<PendingMarks>>>,
    first_rids: Arc<Mutex<HashMap<Uuid, i64>>>,
}

impl Marks {
    /// No record had this id, or a higher one, before the batch: its workers meet new ones out of their order.
    pub(crate) fn first_rid(&self, coll: &Collection) -> i64 {
        let mut rids = self.first_rids.lock().unwrap_or_else(poisoned);
        *rids.entry(coll.uuid).or_insert_with(|| coll.shared.next_rid())
    }
}
