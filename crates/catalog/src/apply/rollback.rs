//! Back to an earlier point of this node's own log (R-RB-4): rows and definitions of what is undone are forgotten.
//!
//! ```text
//!   log:     ... stable ........ common │ entries that no other member has
//!   rows:        └ kept    └ replayed   │ forgotten, then cut from the log
//! ```
//!
//! Rows first, then the cut: a crash between the two leaves tables at or below stable and the whole log, which the next
//! start replays; the node then parts from its source again and rolls back again. The other way round, tables that
//! a checkpoint took past stable could hold rows beyond the end of the log.

use crate::Catalog;
use crate::schema::collection::Collection;
use pando_base::mutants::{Mutant as Planted, broken as planted};
use pando_base::{Error, Result, Timestamp};
use std::sync::Arc;

impl Catalog {
    /// Nobody may read or write meanwhile, and no transaction be open. Returns how many entries were replayed.
    pub fn roll_back(&self, common: Timestamp) -> Result<u64> {
        let storage = self.storage();
        if storage.stable() > common {
            return Err(Error::internal(format!(
                "a rollback to {common}, before the stable timestamp {}",
                storage.stable()
            )));
        }
        let stable = storage.recover_to_stable()?;
        let one_more = u64::from(planted(Planted::RollbackKeepsOneEntry));
        storage.cut_log(Timestamp(common.0 + one_more))?;
        self.forget_definitions();
        storage.start_replay();
        let applied = self.load_rows(stable).and_then(|()| self.replay(stable));
        storage.end_replay();
        let applied = applied?;
        storage.log().publish(common);
        self.finish_rebuilds(common)?;
        self.drop_unnamed_rows()?;
        Ok(applied)
    }

    /// Every replicated collection and view disappears from the snapshot; rows are not touched.
    pub(crate) fn forget_definitions(&self) {
        let snapshot = self.snapshot();
        let gone: Vec<Arc<Collection>> =
            snapshot.all_collections().filter(|c| c.replicated && c.is_stored()).cloned().collect();
        self.publish(|s| {
            for db in s.databases() {
                s.views(&db).iter().for_each(|v| s.remove_view(&v.ns));
            }
            gone.iter().for_each(|c| s.remove(c));
        });
    }
}
