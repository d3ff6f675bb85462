//! Reads of everything that a filter finds, page by page, through one router; and words for sessions and times.

use crate::client::Client;
use crate::set::users::caller::{Caller, is_done};
use pando_base::Timestamp;
use pando_bson::{Binary, Bson, DocBuf, Document, RawDoc, doc};

/// Session of a user, by its kind: each kind numbers its writes by itself.
pub(crate) fn lsid(user: i64, kind: u8) -> Document {
    let mut bytes = vec![kind; 16];
    bytes[..8].copy_from_slice(&user.to_le_bytes());
    let mut lsid = Document::new();
    lsid.push("id", Bson::Binary(Binary { subtype: 4, bytes }));
    lsid
}

/// What a majority has, and no less than was acknowledged at a time.
pub(crate) fn after(at: Timestamp) -> Document {
    let mut concern = doc! { "level": "majority" };
    if !at.is_zero() {
        concern.push("afterClusterTime", at);
    }
    concern
}

fn batch(reply: &RawDoc) -> Vec<DocBuf> {
    let cursor = reply.get("cursor").and_then(|v| v.as_doc());
    let batch = cursor.and_then(|c| c.get("firstBatch").or(c.get("nextBatch"))).and_then(|v| v.as_array());
    batch.into_iter().flatten().filter_map(|e| e.value().as_doc()).map(RawDoc::to_buf).collect()
}
fn more(reply: &RawDoc, coll: &str, db: &str) -> Option<DocBuf> {
    let id = reply.get_path("cursor.id").and_then(|v| v.as_i64()).filter(|id| *id != 0)?;
    let mut body = doc! { "getMore": id, "collection": coll, "batchSize": 50 };
    body.push("$db", db);
    Some(body.to_raw())
}

/// Everything, or nothing when one of the pages did not come.
pub(crate) async fn all(
    c: &mut Caller,
    at: usize,
    find: &DocBuf,
    coll: &str,
    db: &str,
) -> Option<Vec<DocBuf>> {
    let mut reply = c.ask(at, find).await.filter(|r| is_done(r))?;
    let mut found = batch(&reply);
    while let Some(next) = more(&reply, coll, db) {
        reply = c.ask(at, &next).await.filter(|r| is_done(r))?;
        found.extend(batch(&reply));
    }
    Some(found)
}

/// The same of a client that asks for what must be answered.
pub(crate) async fn everything(
    c: &mut Client,
    find: &DocBuf,
    coll: &str,
    db: &str,
) -> Result<Vec<DocBuf>, String> {
    let mut body = find.clone();
    let mut found = Vec::new();
    loop {
        let reply = c.command(&body).await.map_err(|e| format!("{body}: {e}"))?;
        if !is_done(&reply) {
            return Err(format!("{body}: {reply}"));
        }
        found.extend(batch(&reply));
        match more(&reply, coll, db) {
            Some(next) => body = next,
            None => return Ok(found),
        }
    }
}
