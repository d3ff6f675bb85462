//! Any bytes as a document: refused, or readable in every way with every way agreeing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_bson::{Bson, Document, RawDoc, Value, cmp_bson, cmp_docs, hash_bson, hash_value};
use std::cmp::Ordering;

fn walk(doc: &RawDoc, depth: usize) -> usize {
    if depth > 220 {
        return 0;
    }
    doc.iter()
        .map(|e| match e.value() {
            Value::Document(d) | Value::Array(d) => walk(d, depth + 1),
            Value::JavaScriptWithScope { scope, .. } => walk(scope, depth + 1),
            v => v.type_name().len(),
        })
        .sum()
}

fuzz_target!(|data: &[u8]| {
    // Unvalidated bytes must still be safe to look at.
    let trusted = RawDoc::trusted(data);
    walk(trusted, 0);
    assert_eq!(cmp_docs(trusted, trusted), Ordering::Equal);

    let Ok(doc) = RawDoc::validate(data) else { return };
    let tree = Document::from(doc);
    let back = tree.to_raw();
    assert_eq!(cmp_docs(doc, &back), Ordering::Equal);
    assert!(RawDoc::validate(back.as_bytes()).is_ok());
    let owned = Bson::Document(tree);
    assert_eq!(cmp_bson(&owned, &owned), Ordering::Equal);
    assert_eq!(hash_bson(&owned), hash_value(Value::Document(doc)));
    let _ = doc.to_string();
});
