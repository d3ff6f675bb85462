//! `local.replset.minvalid`: up to where the log must be applied before this member's data is of one time.
//!
//! MongoDB keeps this as a document. Here the catalog keeps the mark with its definitions, and only while there is one (after a
//! rollback that fetched documents); without one the row says what MongoDB's says then, that nothing is waited for.

use pando_access::{Maintenance, Table};
use pando_base::{Namespace, OpTime, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, ObjectId};
use std::fmt;
use std::sync::Arc;

/// Every member's own.
const UUID: Uuid = Uuid::from_random(*b"pando.local.mval");

struct MinValidTable(Maintenance);

impl fmt::Debug for MinValidTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("local.replset.minvalid")
    }
}

/// There is one row.
fn id() -> DocBuilder {
    let mut b = DocBuilder::with_capacity(64);
    b.object_id("_id", ObjectId([0; 12]));
    b
}

impl Table for MinValidTable {
    fn ids(&self) -> Vec<DocBuf> {
        vec![id().finish()]
    }
    fn row(&self, _: &DocBuf) -> Result<Option<DocBuf>> {
        let none = OpTime::new(Timestamp::ZERO, -1);
        let at = self.0.min_valid()?.map_or(none, |mark| mark.at);
        let mut b = id();
        b.i64("t", at.t);
        b.timestamp("ts", at.ts);
        Ok(Some(b.finish()))
    }
}

/// On members of a set.
pub(crate) fn show_table(maintenance: &Maintenance) -> Result<()> {
    let ns = Namespace::unchecked("local", "replset.minvalid");
    maintenance.show_table(&ns, UUID, Arc::new(MinValidTable(maintenance.clone())))
}
