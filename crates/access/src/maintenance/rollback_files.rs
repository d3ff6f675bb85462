//! Documents as this member holds them before a rollback takes them away.

use super::Maintenance;
use pando_base::{Result, Uuid};
use pando_bson::RawDoc;
use pando_catalog::{Collection, find_by_id};
use pando_storage::ReadAt;
use std::sync::Arc;

impl Maintenance {
    /// `None` when it was dropped.
    pub fn collection_to_roll_back(&self, uuid: Uuid) -> Option<Arc<Collection>> {
        self.catalog.lookup_uuid(uuid)
    }
    /// The document with the `_id` of `key` as it was applied last.
    pub fn applied_document(&self, coll: &Collection, key: &RawDoc) -> Result<Option<pando_storage::Bytes>> {
        let txn = self.catalog.begin_read(ReadAt::Applied)?;
        Ok(find_by_id(&txn, coll, key)?.map(|(_, doc)| doc))
    }
}
