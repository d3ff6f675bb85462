//! What queries read within a transaction: its snapshot with its own writes.

use super::OpenTxn;
use bytes::Bytes;
use pando_base::{Result, Timestamp};
use pando_catalog::{Collection, CollectionSource};
use pando_query::source::{
    CollectionInfo, IndexCursor, IndexScan, RecordCursor, RecordId, RecordScan, Source,
};
use std::sync::Arc;

pub(crate) struct TxnSource {
    open: Arc<OpenTxn>,
    coll: Arc<Collection>,
    info: Arc<CollectionInfo>,
    read_ts: Timestamp,
}

impl TxnSource {
    pub(crate) fn new(open: Arc<OpenTxn>, coll: Arc<Collection>) -> Result<TxnSource> {
        let (info, read_ts) = open.with(|unit| {
            let source = CollectionSource::within(coll.clone(), unit.txn());
            Ok((source.collection().clone(), source.read_ts()))
        })?;
        Ok(TxnSource { open, coll, info, read_ts })
    }
}

impl Source for TxnSource {
    fn collection(&self) -> &Arc<CollectionInfo> {
        &self.info
    }
    fn read_ts(&self) -> Timestamp {
        self.read_ts
    }
    fn record_count(&self) -> u64 {
        self.coll.count()
    }
    fn fetch(&mut self, rid: &RecordId) -> Result<Option<Bytes>> {
        self.open.with(|unit| CollectionSource::within(self.coll.clone(), unit.txn()).fetch(rid))
    }
    fn scan_records(&mut self, scan: RecordScan<'_>) -> Result<Box<dyn RecordCursor>> {
        self.open.with(|unit| CollectionSource::within(self.coll.clone(), unit.txn()).scan_records(scan))
    }
    fn scan_index(&mut self, scan: IndexScan<'_>) -> Result<Box<dyn IndexCursor>> {
        self.open.with(|unit| CollectionSource::within(self.coll.clone(), unit.txn()).scan_index(scan))
    }
}
