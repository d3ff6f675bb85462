//! How deep documents and arrays lie within each other. Walked without recursion: it is asked in order to bound recursion.

use crate::raw::{Iter, RawDoc};
use crate::types::ElementType;

/// One byte for the type, a name and its end, a length, an end.
const BYTES_PER_LEVEL: usize = 7;

/// Levels of nesting; 1 for a document of scalars.
pub fn depth(doc: &RawDoc) -> usize {
    let mut deepest = 0;
    walk(doc, |levels| {
        deepest = deepest.max(levels);
        true
    });
    deepest
}

/// Whether there are more than `limit` levels. Small documents are not looked at.
pub fn is_deeper_than(doc: &RawDoc, limit: usize) -> bool {
    doc.byte_len() > limit * BYTES_PER_LEVEL && !walk(doc, |levels| levels <= limit)
}

/// Calls `goes_on` with the level of each document and array; false when that was its answer.
fn walk(doc: &RawDoc, mut goes_on: impl FnMut(usize) -> bool) -> bool {
    let mut open: Vec<Iter<'_>> = vec![doc.iter()];
    if !goes_on(1) {
        return false;
    }
    while let Some(iter) = open.last_mut() {
        match iter.next() {
            None => {
                open.pop();
            }
            Some(e) if matches!(e.ty, ElementType::Document | ElementType::Array) => {
                open.push(RawDoc::trusted(e.data()).iter());
                if !goes_on(open.len()) {
                    return false;
                }
            }
            Some(_) => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bson, DocBuf, DocBuilder, doc};

    fn nested(levels: usize) -> DocBuf {
        (1..levels).fold(doc! { "a": 1 }.to_raw(), |inner, _| {
            let mut b = DocBuilder::new();
            b.raw_doc("a", &inner);
            b.finish()
        })
    }

    #[test]
    fn levels_are_counted_through_documents_and_arrays() {
        assert_eq!(depth(RawDoc::empty()), 1);
        assert_eq!(depth(&doc! { "a": [1, { "b": [2] }], "c": {} }.to_raw()), 4);
        assert_eq!(depth(&nested(3000)), 3000);
        let wide = doc! { "a": Bson::Array(vec![Bson::Document(doc! { "x": 1 }); 5000]) };
        assert!(!is_deeper_than(&wide.to_raw(), 3));
        assert!(is_deeper_than(&nested(201), 200) && !is_deeper_than(&nested(200), 200));
    }
}
