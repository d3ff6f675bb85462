//! For the tests of what is found.

use super::registered::Registered;
use pando_bson::{DocBuf, DocBuilder, RawDoc, extjson};

pub(super) fn doc(json: &str) -> DocBuf {
    let mut out = DocBuilder::new();
    out.document(&extjson::parse(json).expect(json));
    out.finish()
}

/// UUID of [`registered`].
pub(super) const UUID: [u8; 16] = [7; 16];

/// `db.c.d`, sharded by a key.
pub(super) fn registered(key: &str) -> Registered {
    let mut b = DocBuilder::new();
    b.str("_id", "db.c.d").uuid("uuid", &UUID).raw_doc("key", &doc(key));
    Registered::parse(b.finish()).expect(key)
}

/// What is told, in short: its type, and the fields of `details` behind those that say which collection it is about.
pub(super) fn told(found: &[DocBuf]) -> Vec<String> {
    let of_one = |f: &DocBuf| {
        let details = f.get("details").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
        let mut rest = DocBuilder::new();
        let more = details.iter().filter(|e| !matches!(e.name(), "namespace" | "collectionUUID"));
        more.for_each(|e| _ = rest.elem(e));
        format!("{} {}", super::wrong::text(f, "type"), rest.finish())
    };
    found.iter().map(of_one).collect()
}

/// The names of the fields of `details`.
pub(super) fn fields(found: &DocBuf) -> Vec<String> {
    let details = found.get("details").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
    details.iter().map(|e| e.name().to_owned()).collect()
}
