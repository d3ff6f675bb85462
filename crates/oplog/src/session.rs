//! Sessions as log entries and records name them: `{id, uid}`.

use pando_base::Lsid;
use pando_base::lsid::NO_USER_DIGEST;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

pub fn lsid_doc(lsid: &Lsid) -> DocBuf {
    let mut b = DocBuilder::with_capacity(80);
    b.uuid("id", &lsid.id);
    b.binary("uid", 0, &lsid.uid);
    b.finish()
}

/// `None` for what names no session. Without a `uid` it belongs to nobody in particular.
pub fn lsid_of(doc: &RawDoc) -> Option<Lsid> {
    let Value::Binary { bytes, .. } = doc.get("id")? else { return None };
    let uid = match doc.get("uid") {
        Some(Value::Binary { bytes, .. }) => bytes.try_into().ok()?,
        Some(_) => return None,
        None => NO_USER_DIGEST,
    };
    Some(Lsid { id: bytes.try_into().ok()?, uid })
}
