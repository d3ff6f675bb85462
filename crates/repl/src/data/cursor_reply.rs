//! What a source answers where the answer is a cursor.
//!
//! A reply that cannot be read is not an empty one: whoever took it for that would believe that a collection holds nothing,
//! or that its documents are gone.

use pando_base::{Error, ErrorCode};
use pando_bson::RawDoc;
use pando_rpc::{Failure, Kind};

pub(crate) struct CursorReply<'r> {
    /// 0: nothing follows.
    pub(crate) id: i64,
    /// What a `getMore` names.
    pub(crate) coll: &'r str,
    batch: &'r RawDoc,
}

fn unreadable(what: &str) -> Failure {
    let error = Error::new(ErrorCode::InvalidSyncSource, format!("a reply of the source has no {what}"));
    Failure::new(Kind::Protocol, error)
}

impl<'r> CursorReply<'r> {
    /// `batch`: the name of the batch, `firstBatch` or `nextBatch`.
    pub(crate) fn of(reply: &'r RawDoc, batch: &str) -> Result<CursorReply<'r>, Failure> {
        let cursor = reply.get("cursor").and_then(|v| v.as_doc()).ok_or_else(|| unreadable("cursor"))?;
        let id = cursor.get("id").and_then(|v| v.as_i64()).ok_or_else(|| unreadable("cursor.id"))?;
        let ns = cursor.get("ns").and_then(|v| v.as_str()).and_then(|ns| ns.split_once('.'));
        let (_, coll) = ns.ok_or_else(|| unreadable("cursor.ns"))?;
        let batch = cursor.get(batch).and_then(|v| v.as_array()).ok_or_else(|| unreadable("batch"))?;
        if batch.iter().any(|e| e.value().as_doc().is_none()) {
            return Err(unreadable("batch of documents"));
        }
        Ok(CursorReply { id, coll, batch })
    }
    pub(crate) fn docs(&self) -> impl Iterator<Item = &'r RawDoc> + use<'r> {
        self.batch.iter().filter_map(|e| e.value().as_doc())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Bson, Document, doc};

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_nothing() {
        let cursor = |change: fn(&mut Document)| {
            let batch = vec![Bson::from(doc! { "_id": 1 })];
            let mut cursor = doc! { "id": 7i64, "ns": "db.c.d" };
            cursor.push("firstBatch", batch);
            change(&mut cursor);
            doc! { "cursor": cursor }.to_raw()
        };
        let whole = cursor(|_| {});
        let read = CursorReply::of(&whole, "firstBatch").unwrap();
        assert_eq!((read.id, read.coll, read.docs().count()), (7, "c.d", 1));
        assert!(CursorReply::of(&whole, "nextBatch").is_err());
        assert!(CursorReply::of(&doc! { "ok": 1 }.to_raw(), "firstBatch").is_err());
        let without: [fn(&mut Document); 4] = [
            |c| drop(c.remove("id")),
            |c| drop(c.remove("ns")),
            |c| drop(c.remove("firstBatch")),
            |c| c.set("firstBatch", vec![Bson::from(1)]),
        ];
        for change in without {
            assert!(CursorReply::of(&cursor(change), "firstBatch").is_err());
        }
    }
}
