//! How something that does not fit together is told: `{type, description, details}`.

use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

/// One of them. Whatever it is about, `details` begins with the name of the collection.
pub(super) fn wrong(kind: &str, text: &str, ns: &str, more: impl FnOnce(&mut DocBuilder)) -> DocBuf {
    let mut b = DocBuilder::new();
    b.str("type", kind).str("description", text);
    b.doc("details", |d| {
        d.str("namespace", ns);
        more(d);
    });
    b.finish()
}

/// The collection that it is about.
pub(super) fn namespace(wrong: &RawDoc) -> &str {
    wrong.get_path("details.namespace").and_then(|v| v.as_str()).unwrap_or_default()
}

/// A field of a document as text; nothing where it is something else.
pub(super) fn text<'a>(doc: &'a RawDoc, name: &str) -> &'a str {
    doc.get(name).and_then(|v| v.as_str()).unwrap_or_default()
}

/// Whether two values say the same: numbers are those of any type.
pub(super) fn same(a: Value<'_>, b: Value<'_>) -> bool {
    pando_bson::compare::cmp_values(a, b).is_eq()
}
