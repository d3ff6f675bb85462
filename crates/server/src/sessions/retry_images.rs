//! What a retried findAndModify returns, and `config.image_collection`.
//!
//! MongoDB writes the document that such a command returned into a collection of its own. Here it lies in the log entry of
//! the write itself (`needsRetryImage`), so that it is there exactly as long as the write is: after a crash, on every
//! member, not after a rollback. Reading `config.image_collection` shows the newest of each session.

use super::LogicalSessions;
use pando_base::{Error, ErrorCode, OpTime, Result};
use pando_bson::{Bson, DocBuf, DocBuilder, RawDoc};
use pando_command::{Request, SessionId};
use pando_oplog::entry::{EntryView, ImageKind, for_clients};
use pando_oplog::session::lsid_doc;
use pando_session::retryable::{Done, Kind};

/// What an entry says was done to a document, by this shard or by the one that its range has come from.
fn carried_out(entry: &RawDoc) -> Result<EntryView<'_>> {
    let e = EntryView::parse(entry)?;
    Ok(e.moved_statement().unwrap_or(e))
}

impl LogicalSessions {
    /// The log's entry at that position.
    pub(super) fn entry_at(&self, at: OpTime) -> Result<Option<DocBuf>> {
        let found = self.storage.log().first_from(at.ts)?;
        let Some((ts, entry)) = found else { return Ok(None) };
        let entry = RawDoc::trusted(&entry);
        let same = ts == at.ts && EntryView::parse(entry)?.op_time() == at;
        Ok(same.then(|| entry.to_buf()))
    }
    /// What the findAndModify that left the entry at `at` returned.
    pub(crate) fn image_of_entry(&self, at: OpTime) -> Option<DocBuf> {
        let entry = self.entry_at(at).ok()??;
        carried_out(&entry).ok()?.retry_image().map(RawDoc::to_buf)
    }
    /// `_id` of the document that an upsert inserted; `None` when it changed one that was there.
    pub(crate) fn upserted_id(&self, done: &Done) -> Result<Option<Bson>> {
        if done.kind != Kind::Insert || done.inserted_id.is_some() {
            return Ok(done.inserted_id.clone());
        }
        let entry = self.entry_at(done.op_time)?;
        let id = entry.as_deref().and_then(|e| carried_out(e).ok()?.o.get("_id").map(Bson::from));
        id.map(Some).ok_or_else(|| {
            Error::new(
                ErrorCode::IncompleteTransactionHistory,
                "the _id of the document that the first try of this upsert inserted is no longer kept",
            )
        })
    }
    /// The whole document that the first try showed, if it showed one.
    pub(crate) fn retried_find_and_modify(
        &self,
        req: &Request<'_>,
        remove: bool,
        new: bool,
        upsert: bool,
        done: &Done,
    ) -> Result<Option<DocBuf>> {
        let code = match done.kind {
            Kind::Delete if !remove => 40_606,
            Kind::Insert if !upsert => 40_608,
            Kind::Delete if done.image.is_none() => 40_607,
            Kind::Update if done.image.is_none() => {
                if new {
                    40_611
                } else {
                    40_612
                }
            }
            Kind::Insert if !new => return Ok(None),
            _ => return self.first_shown(done).map(Some),
        };
        Err(self.other_retry(req, code, done))
    }
    /// Refuses the retry of an update where a delete was carried out under its number.
    pub(crate) fn check_retried_update(&self, done: &Done) -> Result<()> {
        if done.kind != Kind::Delete {
            return Ok(());
        }
        let text = format!(
            "update retry request is not compatible with previous write in the transaction of type: d, {}",
            self.shown_entry(done)
        );
        Err(Error::location(40_638, text))
    }
    /// `oplogTs: ..., oplog: {...}`
    fn shown_entry(&self, done: &Done) -> String {
        let entry = self.entry_at(done.op_time).ok().flatten();
        let shown = entry.map(|e| for_clients(&e).unwrap_or(e)).unwrap_or_default();
        format!("oplogTs: {}, oplog: {{ oplogEntry: {shown} }}", done.op_time.ts)
    }
    fn first_shown(&self, done: &Done) -> Result<DocBuf> {
        if let Some(doc) = done.image.as_ref().and_then(|i| i.doc.as_ref()) {
            return Ok((**doc).clone());
        }
        let entry = self.entry_at(done.op_time)?;
        let shown = entry.as_deref().and_then(|entry| {
            let e = carried_out(entry).ok()?;
            e.retry_image().or((done.kind == Kind::Insert).then_some(e.o)).map(RawDoc::to_buf)
        });
        shown.ok_or_else(|| {
            Error::new(
                ErrorCode::IncompleteTransactionHistory,
                "the document that the first try of this findAndModify returned is no longer kept",
            )
        })
    }
    /// Another statement was carried out under this number.
    fn other_retry(&self, req: &Request<'_>, code: i32, done: &Done) -> Error {
        let (request, at) = (retry_request(req.body), self.shown_entry(done));
        let kind = match done.kind {
            Kind::Insert => "i",
            Kind::Update => "u",
            Kind::Delete => "d",
        };
        let text = match code {
            40_607 => format!("No pre-image available for findAndModify retry request:{request}"),
            40_611 | 40_612 => {
                let (wanted, stored) = if code == 40_611 { ("after", "before") } else { ("before", "after") };
                format!(
                    "findAndModify retry request: {request} wants the document {wanted} update returned, but only \
                     {stored} update document is stored, {at}"
                )
            }
            _ => format!(
                "findAndModify retry request: {request} is not compatible with previous write in the transaction of \
                 type: {kind}, {at}"
            ),
        };
        Error::location(code, text)
    }

    /// A row of `config.image_collection`.
    pub(crate) fn image_record(&self, session: SessionId) -> Result<Option<DocBuf>> {
        let Some((number, done)) = self.retryable.find_and_modify_of(&session) else { return Ok(None) };
        let Some(image) = &done.image else { return Ok(None) };
        let doc = match &image.doc {
            Some(doc) => Some((**doc).clone()),
            None => self.image_of_entry(done.op_time),
        };
        Ok(Some(record(session, number, done.op_time, image.kind, doc.as_deref())))
    }
}

fn record(id: SessionId, number: i64, at: OpTime, kind: ImageKind, image: Option<&RawDoc>) -> DocBuf {
    let mut b = DocBuilder::with_capacity(256 + image.map_or(0, RawDoc::byte_len));
    b.raw_doc("_id", &lsid_doc(&id));
    b.i64("txnNum", number).timestamp("ts", at.ts);
    b.str("imageKind", kind.as_str());
    b.raw_doc("image", image.unwrap_or(RawDoc::empty()));
    b.bool("invalidated", image.is_none());
    if image.is_none() {
        b.str("invalidatedReason", "initial sync");
    }
    b.finish()
}

/// The request without what every command carries.
fn retry_request(body: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::with_capacity(body.byte_len());
    let generic = |name: &str| {
        matches!(name, "lsid" | "txnNumber" | "stmtId" | "writeConcern") || name.starts_with('$')
    };
    for e in body.iter().filter(|e| !generic(e.name())) {
        b.elem(e);
    }
    b.finish()
}
