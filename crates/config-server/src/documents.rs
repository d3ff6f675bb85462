//! Documents with fields set or taken away: what other versions have written into them stays.

use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

/// `doc` with these fields, at their places where they are there already, else at the end; `None` takes one away.
pub(crate) fn with_fields(doc: &RawDoc, fields: &[(&str, Option<Value<'_>>)]) -> DocBuf {
    let of = |name: &[u8]| fields.iter().find(|(n, _)| n.as_bytes() == name);
    let mut out = DocBuilder::with_capacity(doc.byte_len() + 64);
    for e in doc {
        match of(e.name_bytes()) {
            None => out.elem(e),
            Some((name, Some(v))) => out.value(*name, *v),
            Some((_, None)) => &mut out,
        };
    }
    for (name, v) in fields.iter().filter(|(name, _)| doc.get(*name).is_none()) {
        if let Some(v) = v {
            out.value(*name, *v);
        }
    }
    out.finish()
}

/// `{_id: <name>}`
pub(crate) fn named(name: &str) -> DocBuf {
    let mut d = DocBuilder::new();
    d.str("_id", name);
    d.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn fields_keep_their_places_and_what_is_not_named_stays() {
        let old = doc! { "_id": "a", "x": 1, "y": 2, "of a later version": 3 }.to_raw();
        let new = with_fields(
            &old,
            &[("y", None), ("x", Some(Value::Int32(7))), ("z", Some(Value::Boolean(true)))],
        );
        assert_eq!(new, doc! { "_id": "a", "x": 7, "of a later version": 3, "z": true }.to_raw());
    }
}
