//! Which indexes an update can leave alone: the difference that goes into the log says what has changed.

use crate::schema::collection::Index;
use crate::write::crud::UpdateForm;
use pando_bson::RawDoc;
use pando_query::source::FieldKind;

/// False when the index has the same keys for the old and the new document.
pub(crate) fn may_change_keys(index: &Index, form: UpdateForm<'_>) -> bool {
    let UpdateForm::Diff(diff) = form else { return true };
    // Those look at more than their fields.
    if index.wildcard.is_some() || index.keys.partial.is_some() {
        return true;
    }
    index.spec.fields.iter().any(|f| f.kind == FieldKind::Text || may_differ(diff, &f.path))
}

/// Whether the diff changes anything at, above or below a dotted path.
fn may_differ(diff: &RawDoc, path: &str) -> bool {
    // Elements of an array are not told apart.
    if diff.first().is_some_and(|e| e.name_bytes() == b"a") {
        return true;
    }
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    diff.iter().any(|e| match (e.name_bytes(), e.value().as_doc()) {
        (b"d" | b"u" | b"i", Some(fields)) => fields.elem(first).is_some(),
        (name, Some(sub)) => {
            name.strip_prefix(b"s") == Some(first.as_bytes()) && rest.is_none_or(|rest| may_differ(sub, rest))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Document, doc};

    fn differs(old: Document, new: Document, path: &str) -> bool {
        let mut pad = (doc! { "pad": "x".repeat(200) }, doc! { "pad": "x".repeat(200) });
        for (k, v) in old {
            pad.0.push(k, v);
        }
        for (k, v) in new {
            pad.1.push(k, v);
        }
        let diff = pando_oplog::diff::compute(&pad.0.to_raw(), &pad.1.to_raw()).expect("short enough");
        may_differ(&diff, path)
    }

    #[test]
    fn a_change_is_seen_at_above_and_below_its_path_only() {
        let old = || doc! { "a": { "b": { "c": 1 }, "d": 2, "t": "a long text that stays" }, "s": 1 };
        let new = || doc! { "a": { "b": { "c": 5 }, "d": 2, "t": "a long text that stays" }, "s": 1 };
        for path in ["a", "a.b", "a.b.c", "a.b.c.x"] {
            assert!(differs(old(), new(), path), "{path}");
        }
        for path in ["s", "sa", "b", "a.d", "a.x", "u"] {
            assert!(!differs(old(), new(), path), "{path}");
        }
    }

    #[test]
    fn additions_removals_and_elements_are_changes() {
        assert!(differs(doc! {}, doc! { "n": 1 }, "n"));
        assert!(differs(doc! { "n": 1 }, doc! {}, "n.x"));
        assert!(differs(
            doc! { "l": [1, 2, "some more text"] },
            doc! { "l": [1, 3, "some more text"] },
            "l.x"
        ));
        assert!(!differs(
            doc! { "l": [1, 2, "some more text"] },
            doc! { "l": [1, 3, "some more text"] },
            "n"
        ));
    }
}
