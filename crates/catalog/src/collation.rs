//! The stored form of a collation: every field present, so that a later change of defaults changes nothing.

use pando_base::Result;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_query::collation::Collation;

/// The ICU version drivers see in collation documents.
const VERSION: &str = "57.1";

/// Checks a collation document and fills in what it leaves out; `None` is the simple collation.
pub fn full_form(spec: &RawDoc) -> Result<Option<DocBuf>> {
    if Collation::parse(spec)?.is_none() {
        return Ok(None);
    }
    let locale = spec.get("locale").and_then(|v| v.as_str()).unwrap_or_default();
    let mut b = DocBuilder::new();
    b.str("locale", locale);
    let defaults = [
        ("caseLevel", Value::Boolean(false)),
        ("caseFirst", Value::String("off")),
        ("strength", Value::Int32(3)),
        ("numericOrdering", Value::Boolean(false)),
        ("alternate", Value::String("non-ignorable")),
        ("maxVariable", Value::String("punct")),
        ("normalization", Value::Boolean(false)),
        ("backwards", Value::Boolean(locale == "fr_CA")),
    ];
    for (name, default) in defaults {
        b.value(name, spec.get(name).unwrap_or(default));
    }
    b.str("version", VERSION);
    Ok(Some(b.finish()))
}
