//! `config.transactions`: what the log says of each session's newest number.
//!
//! MongoDB keeps these records as documents. Here they are the table of sessions in memory, which every node makes from
//! its log; a find or an aggregation reads them as if they were a collection.

use super::lsid_doc;
use crate::Server;
use pando_base::{Millis, Namespace, OpTime, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::Lsid;
use pando_oplog::entry::EntryView;
use pando_repl::data::metadata::append_op_time;
use pando_session::transaction::State;
use std::ops::Bound;

const TRANSACTIONS: &str = "config.transactions";
const IMAGES: &str = "config.image_collection";

pub(crate) fn is_table(ns: &Namespace) -> bool {
    matches!(ns.as_str(), TRANSACTIONS | IMAGES)
}

impl Server {
    /// What a find reads in the place of a collection.
    pub(crate) fn table(&self, ns: &Namespace) -> Result<Vec<DocBuf>> {
        if ns.as_str() == IMAGES { self.image_records() } else { self.transaction_records() }
    }
    fn transaction_records(&self) -> Result<Vec<DocBuf>> {
        let mut records = Vec::new();
        for (id, number, state, last) in self.retryable.states() {
            let Some((wall, start)) = self.of_entry(last, state)? else { continue };
            let mut b = DocBuilder::with_capacity(256);
            b.raw_doc("_id", &lsid_doc(&Lsid { id, uid: None }));
            b.i64("txnNum", number);
            append_op_time(&mut b, "lastWriteOpTime", last);
            b.date("lastWriteDate", wall);
            if let Some(text) = state.text() {
                b.str("state", text);
            }
            if let Some(start) = start {
                append_op_time(&mut b, "startOpTime", start);
            }
            records.push(b.finish());
        }
        Ok(records)
    }
    /// When the entry was made, and where the chain begins that it is the newest part of. `None` when the log has lost it.
    fn of_entry(&self, at: OpTime, state: State) -> Result<Option<(Millis, Option<OpTime>)>> {
        let found = self.storage.log().read(Bound::Included(at.ts), false).next()?;
        let Some((_, entry)) = found.filter(|(ts, _)| *ts == at.ts) else { return Ok(None) };
        let entry = EntryView::parse(RawDoc::trusted(&entry))?;
        if !matches!(state, State::InProgress | State::Prepared) {
            return Ok(Some((entry.wall, None)));
        }
        let start = match self.catalog.earlier_parts(entry.doc)?.first() {
            Some(first) => EntryView::parse(RawDoc::trusted(first))?.op_time(),
            None => at,
        };
        Ok(Some((entry.wall, Some(start))))
    }
}
