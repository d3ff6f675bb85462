//! `local.oplog.rs`: the log read as if it were a collection (R-OPLOG-1).
//!
//! The record id of an entry is its timestamp, so a range of timestamps is a range of record ids and a reader
//! starts at any of them without a scan. Entries beyond the first hole are not there yet.

use crate::Catalog;
use crate::read::source::shared;
use crate::schema::collection::{Collection, NO_ROWS, Shared};
use crate::schema::durable::Parts;
use crate::schema::options::{Capped, CollectionOptions};
use crate::schema::sizes::Sizes;
use bytes::Bytes;
use pando_base::{Error, Namespace, Result, Timestamp, Uuid};
use pando_bson::RawDoc;
use pando_oplog::entry::for_clients;
use pando_query::source::{
    CollectionInfo, Direction, IndexCursor, IndexScan, RecordCursor, RecordId, RecordScan, Source,
};
use pando_storage::{OpLog, OplogCursor};
use std::ops::Bound;
use std::sync::Arc;

pub(crate) const OPLOG: &str = "oplog.rs";
/// Fixed, so that all members show the same.
const OPLOG_UUID: Uuid = Uuid::from_random(*b"pando.oplog.rs\0\0");

/// The record id of an entry.
pub fn rid_of(ts: Timestamp) -> RecordId {
    RecordId::Long(ts.0 as i64)
}

fn ts_of(rid: &RecordId) -> Timestamp {
    match rid {
        RecordId::Long(n) => Timestamp(*n as u64),
        RecordId::Key(_) => Timestamp::ZERO,
    }
}

/// The collection under which the log can be read; it has no rows of its own.
pub(crate) fn collection(size: i64) -> Result<Arc<Collection>> {
    Parts {
        ns: Namespace::unchecked("local", OPLOG),
        uuid: OPLOG_UUID,
        options: CollectionOptions {
            capped: Some(Capped { size, max: None }),
            ..CollectionOptions::default()
        },
        records: NO_ROWS,
        since: Timestamp::ZERO,
        replicated: false,
        indexes: Vec::new(),
        shared: Shared::new(1, Sizes::default()),
    }
    .assemble()
}

/// A reader of the log.
pub struct OplogSource {
    log: OpLog,
    info: Arc<CollectionInfo>,
    read_ts: Timestamp,
}

impl OplogSource {
    pub fn new(catalog: &Catalog, coll: Arc<Collection>) -> OplogSource {
        let log = catalog.storage().log().clone();
        OplogSource { read_ts: log.visible(), log, info: coll.info.clone() }
    }
}

impl Source for OplogSource {
    fn collection(&self) -> &Arc<CollectionInfo> {
        &self.info
    }
    fn read_ts(&self) -> Timestamp {
        self.read_ts
    }
    fn record_count(&self) -> u64 {
        // Between first and last there is about one entry per timestamp of a second; nobody counts exactly.
        let (first, last) = (self.log.first(), self.log.last());
        if last.is_zero() { 0 } else { last.0.saturating_sub(first.0).min(u64::from(u32::MAX)) + 1 }
    }
    fn fetch(&mut self, rid: &RecordId) -> Result<Option<Bytes>> {
        let want = ts_of(rid);
        let mut cursor = self.log.read(Bound::Included(want), false);
        Ok(cursor.next()?.filter(|(ts, _)| *ts == want).map(|(_, entry)| shown(entry)))
    }
    fn scan_records(&mut self, scan: RecordScan<'_>) -> Result<Box<dyn RecordCursor>> {
        let backward = scan.dir == Direction::Backward;
        let near_end = if backward { scan.max } else { scan.min };
        let from = match (scan.after, near_end) {
            (Some(after), _) => Bound::Excluded(ts_of(after)),
            (None, Some(end)) => Bound::Included(ts_of(end)),
            (None, None) => Bound::Unbounded,
        };
        let far_end = if backward { scan.min } else { scan.max };
        let stop = far_end.map(ts_of);
        Ok(Box::new(LogRecords { cursor: self.log.read(from, backward), backward, stop }))
    }
    fn scan_index(&mut self, _scan: IndexScan<'_>) -> Result<Box<dyn IndexCursor>> {
        Err(Error::internal("the oplog has no index"))
    }
}

/// An entry as clients read it.
fn shown(entry: pando_storage::Bytes) -> Bytes {
    match for_clients(RawDoc::trusted(&entry)) {
        Some(bare) => Bytes::from(bare.into_bytes()),
        None => shared(entry),
    }
}

struct LogRecords {
    cursor: OplogCursor,
    backward: bool,
    stop: Option<Timestamp>,
}

impl RecordCursor for LogRecords {
    fn next(&mut self) -> Result<Option<(RecordId, Bytes)>> {
        let Some((ts, entry)) = self.cursor.next()? else { return Ok(None) };
        let past = self.stop.is_some_and(|stop| if self.backward { ts < stop } else { ts > stop });
        Ok((!past).then(|| (rid_of(ts), shown(entry))))
    }
}
