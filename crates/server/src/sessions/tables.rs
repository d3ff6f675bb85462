//! `config.transactions` and `config.image_collection`: what the log says of each session's newest number.
//!
//! MongoDB keeps these records as documents. Here they are the table of sessions in memory, which every node makes from
//! its log. The catalog shows them as collections on every member of a set ([`pando_access::Table`]).

use super::LogicalSessions;
use pando_access::Table;
use pando_base::{Millis, Namespace, OpTime, Result, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::SessionId;
use pando_oplog::entry::EntryView;
use pando_oplog::session::lsid_doc;
use pando_oplog::session::lsid_of;
use pando_repl::data::metadata::append_op_time;
use pando_session::transaction::State;
use std::fmt;
use std::sync::{Arc, Weak};

/// Fixed, so that all members show the same.
const TRANSACTIONS_UUID: Uuid = Uuid::from_random(*b"pando.config.txn");
const IMAGES_UUID: Uuid = Uuid::from_random(*b"pando.config.img");

struct Transactions(Weak<LogicalSessions>);
struct Images(Weak<LogicalSessions>);

impl fmt::Debug for Transactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("config.transactions")
    }
}

impl fmt::Debug for Images {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("config.image_collection")
    }
}

fn id_of_session(id: SessionId) -> DocBuf {
    let mut b = DocBuilder::with_capacity(96);
    b.raw_doc("_id", &lsid_doc(&id));
    b.finish()
}

/// The session that `{_id: ...}` names.
fn session_of(id: &RawDoc) -> Option<SessionId> {
    lsid_of(id.get("_id")?.as_doc()?)
}

impl Table for Transactions {
    fn ids(&self) -> Vec<DocBuf> {
        let Some(sessions) = self.0.upgrade() else { return Vec::new() };
        sessions.retryable.states().into_iter().map(|(id, ..)| id_of_session(id)).collect()
    }
    fn row(&self, id: &DocBuf) -> Result<Option<DocBuf>> {
        match (self.0.upgrade(), session_of(id)) {
            (Some(sessions), Some(session)) => sessions.transaction_record(session),
            _ => Ok(None),
        }
    }
}

impl Table for Images {
    fn ids(&self) -> Vec<DocBuf> {
        let Some(sessions) = self.0.upgrade() else { return Vec::new() };
        sessions.retryable.find_and_modifies().into_iter().map(|(id, ..)| id_of_session(id)).collect()
    }
    fn row(&self, id: &DocBuf) -> Result<Option<DocBuf>> {
        match (self.0.upgrade(), session_of(id)) {
            (Some(sessions), Some(session)) => sessions.image_record(session),
            _ => Ok(None),
        }
    }
}

impl LogicalSessions {
    /// On members of a set, whose logs tell what sessions did.
    pub(crate) fn show_tables(self: &Arc<Self>) -> Result<()> {
        let of = |coll: &str| Namespace::unchecked("config", coll);
        let weak = || Arc::downgrade(self);
        self.maintenance.show_table(
            &of("transactions"),
            TRANSACTIONS_UUID,
            Arc::new(Transactions(weak())),
        )?;
        self.maintenance.show_table(&of("image_collection"), IMAGES_UUID, Arc::new(Images(weak())))
    }
    fn transaction_record(&self, session: SessionId) -> Result<Option<DocBuf>> {
        let Some((number, state, last)) = self.retryable.state_of(&session) else { return Ok(None) };
        let (wall, start) = self.of_entry(last, state)?;
        let mut b = DocBuilder::with_capacity(256);
        b.raw_doc("_id", &lsid_doc(&session));
        b.i64("txnNum", number);
        append_op_time(&mut b, "lastWriteOpTime", last);
        b.date("lastWriteDate", wall);
        if let Some(text) = state.text() {
            b.str("state", text);
        }
        if let Some(start) = start {
            append_op_time(&mut b, "startOpTime", start);
        }
        Ok(Some(b.finish()))
    }
    /// When the entry was made, and where the chain begins that it is the newest part of. Of an entry that this member's log
    /// never had (its copy of the set begins later), or has no more, the second is known that its timestamp names.
    fn of_entry(&self, at: OpTime, state: State) -> Result<(Millis, Option<OpTime>)> {
        let found = self.storage.log().first_from(at.ts)?;
        let Some((_, entry)) = found.filter(|(ts, _)| *ts == at.ts) else {
            return Ok((i64::from(at.ts.secs()) * 1000, None));
        };
        let entry = EntryView::parse(RawDoc::trusted(&entry))?;
        if !matches!(state, State::InProgress | State::Prepared) {
            return Ok((entry.wall, None));
        }
        let start = match self.maintenance.earlier_parts(entry.doc)?.first() {
            Some(first) => EntryView::parse(RawDoc::trusted(first))?.op_time(),
            None => at,
        };
        Ok((entry.wall, Some(start)))
    }
}
