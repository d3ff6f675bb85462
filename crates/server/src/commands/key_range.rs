//! Ranges of an index's keys, as commands name them (`dataSize`, `splitVector`).

use super::prelude::*;
use pando_access::Index;
use pando_query::source::IndexKind;

/// The whole namespace that the command's own element names.
pub(super) fn full_namespace(req: &Request<'_>) -> Result<Namespace> {
    match req.first().value() {
        Value::String(s) | Value::Symbol(s) => Namespace::parse(s),
        v => Err(Error::bad_value(format!("collection name has invalid type {}", v.type_name()))),
    }
}

/// An index that has every document of its collection, under plain keys.
pub(super) fn has_all(index: &Index) -> bool {
    let spec = &index.spec;
    spec.kind == IndexKind::Btree && !spec.sparse && spec.partial.is_none() && !spec.hidden
}

/// The key with what it lacks of the index's fields: the least of each.
pub(super) fn bound(index: &Index, key: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    for field in index.spec.key.iter() {
        match key.elem(field.name_bytes()) {
            Some(e) => b.elem(e),
            None => b.value(field.name_bytes(), Value::MinKey),
        };
    }
    b.finish()
}
