//! Sessions as log entries and records name them: `{id, uid}`, and of child sessions `{id, uid, txnNumber, txnUUID}`.

use pando_base::SessionId;
use pando_base::session_id::{Child, NO_USER_DIGEST};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

pub fn lsid_doc(lsid: &SessionId) -> DocBuf {
    let mut b = DocBuilder::with_capacity(80);
    b.uuid("id", &lsid.id);
    b.binary("uid", 0, &lsid.uid);
    if let Some(child) = &lsid.child {
        if let Some(number) = child.txn_number {
            b.i64("txnNumber", number);
        }
        b.uuid("txnUUID", &child.uuid);
    }
    b.finish()
}

/// `None` for what names no session. Without a `uid` it belongs to nobody in particular.
pub fn lsid_of(doc: &RawDoc) -> Option<SessionId> {
    let Value::Binary { bytes, .. } = doc.get("id")? else { return None };
    let uid = match doc.get("uid") {
        Some(Value::Binary { bytes, .. }) => bytes.try_into().ok()?,
        Some(_) => return None,
        None => NO_USER_DIGEST,
    };
    let child = match doc.get("txnUUID") {
        Some(Value::Binary { bytes, .. }) => {
            let txn_number = doc.get("txnNumber").and_then(|v| v.as_i64());
            Some(Child { uuid: bytes.try_into().ok()?, txn_number })
        }
        Some(_) => return None,
        None => None,
    };
    Some(SessionId { id: bytes.try_into().ok()?, uid, child })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn a_document_tells_the_whole_session() {
        let parent = SessionId::of_user([1; 16], [2; 32]);
        let child = |txn_number| SessionId { child: Some(Child { uuid: [3; 16], txn_number }), ..parent };
        for id in [SessionId::of([1; 16]), parent, child(None), child(Some(5))] {
            assert_eq!(lsid_of(&lsid_doc(&id)), Some(id));
        }
        assert_eq!(lsid_of(&doc! {}.to_raw()), None);
        let mut wrong = DocBuilder::new();
        wrong.uuid("id", &[1; 16]).i32("txnUUID", 1);
        assert_eq!(lsid_of(&wrong.finish()), None);
    }
}
