//! The `$v: 2` document diff (R-OPLOG-7): how an update is written into the log as its result.
//!
//! ```text
//! { d: {gone: false}, u: {kept_in_place: v}, i: {appended: v}, s<field>: <diff of the sub-document> }
//! { a: true, l: <new length>, u<index>: v, s<index>: <diff> }                       (of an array)
//! ```
//!
//! [`apply`] may be repeated, and may meet a document that is already newer than the diff: a part whose path
//! is not there (or is of another kind) is left alone, so replaying a tail of the log from any earlier state
//! ends in the same document.
//!
//! [`compute`] walks both documents once, side by side. A sub-document is described by its own diff only when
//! that is shorter than the new value.

use pando_base::limits::ARRAY_BACKFILL_MAX;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, ElementType, RawDoc, Value};
use std::fmt::Write;

/// What a delta entry needs around its diff (`{$v: 2, diff: ..}`), as MongoDB counts it.
const DELTA_ENVELOPE_BYTES: usize = 15;

/// What makes `old` into `new`; `None` when logging `new` as a whole takes no more bytes (or when a field name
/// is repeated, which a diff cannot address). Equal documents give an empty diff.
pub fn compute(old: &RawDoc, new: &RawDoc) -> Option<DocBuf> {
    if old.as_bytes() == new.as_bytes() {
        return Some(DocBuf::new());
    }
    let diff = object_diff(old, new)?;
    (diff.byte_len() + DELTA_ENVELOPE_BYTES < new.byte_len()).then_some(diff)
}

fn object_diff(old: &RawDoc, new: &RawDoc) -> Option<DocBuf> {
    if has_repeated_names(old) || has_repeated_names(new) {
        return None;
    }
    let mut deletes: Vec<Elem<'_>> = Vec::new();
    let mut updates: Vec<Elem<'_>> = Vec::new();
    let mut subs: Vec<(&[u8], DocBuf)> = Vec::new();
    let (mut left, mut right) = (old.iter(), new.iter().peekable());
    while let Some(r) = right.peek().copied() {
        let Some(l) = left.next() else { break };
        if l.name_bytes() != r.name_bytes() {
            // Either gone or moved further back; then it turns up among the inserts.
            deletes.push(l);
            continue;
        }
        right.next();
        if same(l, r) {
            continue;
        }
        match sub_diff(l, r) {
            Some(sub) => subs.push((r.name_bytes(), sub)),
            None => updates.push(r),
        }
    }
    deletes.extend(left);
    let inserts: Vec<Elem<'_>> = right.collect();
    let mut inserted_names: Vec<&[u8]> = inserts.iter().map(|e| e.name_bytes()).collect();
    inserted_names.sort_unstable();
    deletes.retain(|e| inserted_names.binary_search(&e.name_bytes()).is_err());

    let mut diff = DocBuilder::new();
    if !deletes.is_empty() {
        diff.doc("d", |d| {
            for e in &deletes {
                d.raw(ElementType::Boolean, e.name_bytes(), &[0]);
            }
        });
    }
    for (section, elems) in [("u", &updates), ("i", &inserts)] {
        if !elems.is_empty() {
            diff.doc(section, |d| {
                for e in elems {
                    d.elem(*e);
                }
            });
        }
    }
    for (name, sub) in &subs {
        diff.raw_doc(&[b"s", *name].concat(), sub);
    }
    Some(diff.finish())
}

fn array_diff(old: &RawDoc, new: &RawDoc) -> DocBuf {
    let mut diff = DocBuilder::new();
    diff.bool("a", true);
    let new_len = new.count();
    if new_len < old.count() {
        diff.i32("l", new_len as i32);
    }
    let mut left = old.iter();
    for (index, r) in new.iter().enumerate() {
        let l = left.next();
        if l.is_some_and(|l| same(l, r)) {
            continue;
        }
        match l.and_then(|l| sub_diff(l, r)) {
            Some(sub) => diff.raw_doc(&format!("s{index}"), &sub),
            None => diff.raw(r.ty, &format!("u{index}"), r.data()),
        };
    }
    diff.finish()
}

/// The diff of two sub-documents or two arrays, if it is shorter than the new one.
fn sub_diff(l: Elem<'_>, r: Elem<'_>) -> Option<DocBuf> {
    let diff = match (l.value(), r.value()) {
        (Value::Document(l), Value::Document(r)) => object_diff(l, r)?,
        (Value::Array(l), Value::Array(r)) => array_diff(l, r),
        _ => return None,
    };
    (diff.byte_len() < r.data().len()).then_some(diff)
}

fn same(a: Elem<'_>, b: Elem<'_>) -> bool {
    a.ty == b.ty && a.data() == b.data()
}

fn has_repeated_names(doc: &RawDoc) -> bool {
    let mut names: Vec<&[u8]> = doc.iter().map(|e| e.name_bytes()).collect();
    names.sort_unstable();
    names.windows(2).any(|w| w[0] == w[1])
}

/// One field's part of a diff.
#[derive(Clone, Copy)]
enum Change<'a> {
    Delete,
    Update(Elem<'a>),
    Insert(Elem<'a>),
    Sub(&'a RawDoc),
}

/// `doc` with `diff` applied. Code 4728000 when the diff is not one.
pub fn apply(doc: &RawDoc, diff: &RawDoc) -> Result<DocBuf> {
    let mut out = Vec::with_capacity(doc.byte_len() + diff.byte_len());
    apply_object(doc, diff, &mut out)?;
    Ok(DocBuf::from_trusted(out))
}

fn bad_diff(what: impl std::fmt::Display) -> Error {
    Error::location(4728000, format!("malformed document diff: {what}"))
}

fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

fn end(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let len = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

fn put_elem(out: &mut Vec<u8>, ty: ElementType, name: &[u8], data: &[u8]) {
    out.push(ty as u8);
    out.extend_from_slice(name);
    out.push(0);
    out.extend_from_slice(data);
}

fn object_changes(diff: &RawDoc) -> Result<Vec<(&[u8], Change<'_>)>> {
    let mut changes: Vec<(&[u8], Change<'_>)> = Vec::new();
    for e in diff {
        let Some(body) = e.value().as_doc() else {
            return Err(bad_diff(format_args!("'{}' is not an object", e.name())));
        };
        match e.name_bytes() {
            b"d" => changes.extend(body.iter().map(|f| (f.name_bytes(), Change::Delete))),
            b"u" => changes.extend(body.iter().map(|f| (f.name_bytes(), Change::Update(f)))),
            b"i" => changes.extend(body.iter().map(|f| (f.name_bytes(), Change::Insert(f)))),
            [b's', field @ ..] => changes.push((field, Change::Sub(body))),
            _ => return Err(bad_diff(format_args!("unexpected section '{}'", e.name()))),
        }
    }
    Ok(changes)
}

fn apply_object(doc: &RawDoc, diff: &RawDoc, out: &mut Vec<u8>) -> Result<()> {
    let changes = object_changes(diff)?;
    // Sorted by name for lookup; the original order decides where appended fields go.
    let mut by_name: Vec<usize> = (0..changes.len()).collect();
    by_name.sort_by_key(|&i| changes[i].0);
    if let Some(w) = by_name.windows(2).find(|w| changes[w[0]].0 == changes[w[1]].0) {
        let name = String::from_utf8_lossy(changes[w[0]].0);
        return Err(bad_diff(format_args!("field '{name}' occurs twice")));
    }
    let mut seen = vec![false; changes.len()];
    let start = begin(out);
    for e in doc {
        let Ok(at) = by_name.binary_search_by_key(&e.name_bytes(), |&i| changes[i].0) else {
            put_elem(out, e.ty, e.name_bytes(), e.data());
            continue;
        };
        let index = by_name[at];
        match changes[index].1 {
            Change::Delete | Change::Insert(_) => {}
            Change::Update(v) => {
                seen[index] = true;
                put_elem(out, v.ty, e.name_bytes(), v.data());
            }
            Change::Sub(sub) => apply_sub(e, e.name_bytes(), sub, out)?,
        }
    }
    for (i, (name, change)) in changes.iter().enumerate() {
        match change {
            Change::Insert(v) => put_elem(out, v.ty, name, v.data()),
            Change::Update(v) if !seen[i] => put_elem(out, v.ty, name, v.data()),
            _ => {}
        }
    }
    end(out, start);
    Ok(())
}

fn is_array_diff(diff: &RawDoc) -> bool {
    diff.first().is_some_and(|e| e.name_bytes() == b"a" && e.ty == ElementType::Boolean)
}

fn apply_sub(e: Elem<'_>, name: &[u8], diff: &RawDoc, out: &mut Vec<u8>) -> Result<()> {
    match e.value() {
        Value::Document(doc) if !is_array_diff(diff) => {
            put_elem(out, e.ty, name, &[]);
            apply_object(doc, diff, out)
        }
        Value::Array(array) if is_array_diff(diff) => {
            put_elem(out, e.ty, name, &[]);
            apply_array(array, diff, out)
        }
        _ => {
            put_elem(out, e.ty, name, e.data());
            Ok(())
        }
    }
}

/// The new length, if one is given, and the changes by index.
type ArrayChanges<'a> = (Option<usize>, Vec<(usize, Change<'a>)>);

fn array_changes(diff: &RawDoc) -> Result<ArrayChanges<'_>> {
    let mut resize = None;
    let mut changes = Vec::new();
    for e in diff.iter().skip(1) {
        let name = e.name();
        if name == "l" {
            let len = e.value().as_i64().and_then(|n| usize::try_from(n).ok());
            resize = Some(len.ok_or_else(|| bad_diff("'l' is not a length"))?);
            continue;
        }
        let index = name.get(1..).and_then(|digits| digits.parse().ok());
        let change = match (name.as_bytes().first(), e.value()) {
            (Some(b'u'), _) => Some(Change::Update(e)),
            (Some(b's'), Value::Document(sub)) => Some(Change::Sub(sub)),
            _ => None,
        };
        match (index, change) {
            (Some(index), Some(change)) => changes.push((index, change)),
            _ => return Err(bad_diff(format_args!("'{name}' in an array diff"))),
        }
    }
    changes.sort_by_key(|(index, _)| *index);
    Ok((resize, changes))
}

fn apply_array(array: &RawDoc, diff: &RawDoc, out: &mut Vec<u8>) -> Result<()> {
    let (resize, changes) = array_changes(diff)?;
    // Updates past the end extend the array with nulls; a sub-diff there has lost its element.
    let old_len = array.count();
    let kept = resize.map_or(old_len, |l| l.min(old_len));
    let past_end =
        changes.iter().rev().find(|(_, c)| matches!(c, Change::Update(_))).map_or(0, |(i, _)| i + 1);
    let len = resize.unwrap_or(kept).max(past_end);
    if len > old_len + changes.len() + ARRAY_BACKFILL_MAX {
        return Err(bad_diff(format_args!("array length {len} is too large")));
    }
    let start = begin(out);
    let mut elements = array.iter().take(kept);
    let mut next_change = changes.iter().peekable();
    let mut name = String::new();
    for index in 0..len {
        let old = elements.next();
        name.clear();
        // Writing to a String cannot fail.
        let _ = write!(name, "{index}");
        let change = next_change.next_if(|(i, _)| *i == index).map(|(_, c)| *c);
        match (change, old) {
            (Some(Change::Update(v)), _) => put_elem(out, v.ty, name.as_bytes(), v.data()),
            (Some(Change::Sub(sub)), Some(e)) => apply_sub(e, name.as_bytes(), sub, out)?,
            (_, Some(e)) => put_elem(out, e.ty, name.as_bytes(), e.data()),
            (_, None) => put_elem(out, ElementType::Null, name.as_bytes(), &[]),
        }
    }
    end(out, start);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Bson, Document, doc};

    fn padded(mut d: Document) -> Document {
        d.push("pad", "x".repeat(300));
        d
    }

    #[test]
    fn diffs_have_mongodbs_shape() {
        let old = padded(doc! { "_id": 1, "a": 1, "b": 2, "gone": 1 });
        let cases = [
            (padded(doc! { "_id": 1, "a": 5, "b": 2, "gone": 1 }), doc! { "u": { "a": 5 } }),
            (padded(doc! { "_id": 1, "a": 1, "b": 2 }), doc! { "d": { "gone": false } }),
        ];
        for (new, want) in cases {
            let diff = compute(&old.to_raw(), &new.to_raw()).expect("short diff");
            assert_eq!(Document::from(&*diff), want);
        }
        let long = "y".repeat(300);
        let old = doc! { "_id": 1, "p": long.as_str(), "a": [{ "x": 1, "y": long.as_str() }, 2, 3] }.to_raw();
        let new =
            doc! { "_id": 1, "p": long.as_str(), "a": [{ "x": 2, "y": long.as_str() }], "n": 1 }.to_raw();
        let diff = compute(&old, &new).expect("short diff");
        assert_eq!(
            Document::from(&*diff),
            doc! { "i": { "n": 1 }, "sa": { "a": true, "l": 1, "s0": { "u": { "x": 2 } } } }
        );
    }

    #[test]
    fn a_diff_no_shorter_than_the_document_is_not_used() {
        let old = doc! { "_id": 1, "a": 1 }.to_raw();
        let new = doc! { "_id": 1, "a": 2 }.to_raw();
        assert!(compute(&old, &new).is_none());
        assert_eq!(compute(&old, &old), Some(DocBuf::new()));
    }

    #[test]
    fn repeated_field_names_have_no_diff() {
        let mut old = padded(Document::new());
        old.push("a", 1);
        let mut new = old.clone();
        old.push("a", 1);
        new.push("a", 2);
        assert!(compute(&old.to_raw(), &new.to_raw()).is_none());
    }

    #[test]
    fn a_part_whose_path_is_missing_is_left_alone() {
        let diff =
            doc! { "d": { "zz": false }, "sa": { "u": { "b": 2 } }, "sl": { "a": true, "u1": 5 } }.to_raw();
        for doc in
            [doc! { "_id": 1 }, doc! { "_id": 1, "a": 5, "l": "x" }, doc! { "a": [1], "l": { "x": 1 } }]
        {
            let doc = doc.to_raw();
            assert_eq!(apply(&doc, &diff).expect("applies"), doc);
        }
        let lost_element = doc! { "sa": { "a": true, "s7": { "u": { "x": 1 } } } }.to_raw();
        let doc = doc! { "a": [1, 2] }.to_raw();
        assert_eq!(apply(&doc, &lost_element).expect("applies"), doc);
    }

    #[test]
    fn arrays_grow_with_nulls_and_shrink_to_their_length() {
        let array = |diff: Document| {
            let got = apply(&doc! { "a": [1, 2] }.to_raw(), &doc! { "sa": diff }.to_raw()).expect("applies");
            Document::from(&*got)
        };
        assert_eq!(array(doc! { "a": true, "u3": 9 }), doc! { "a": [1, 2, Bson::Null, 9] });
        assert_eq!(array(doc! { "a": true, "l": 3 }), doc! { "a": [1, 2, Bson::Null] });
        assert_eq!(array(doc! { "a": true, "l": 1 }), doc! { "a": [1] });
    }

    #[test]
    fn malformed_diffs_are_refused() {
        let bad = [
            doc! { "u": 5 },
            doc! { "x": { "a": 1 } },
            doc! { "u": { "a": 1 }, "i": { "a": 1 } },
            doc! { "sa": { "a": true, "l": "x" } },
            doc! { "sa": { "a": true, "ux": 1 } },
            doc! { "sa": { "a": true, "u4000000000": 1 } },
            doc! { "sa": { "a": true, "": 1 } },
            doc! { "sa": { "a": true, "é": 1 } },
        ];
        for diff in bad {
            let got = apply(&doc! { "a": [1] }.to_raw(), &diff.to_raw());
            assert!(got.is_err(), "{diff:?} gave {got:?}");
        }
    }

    /// SplitMix64: a fixed sequence per seed.
    struct Seq(u64);
    impl Seq {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) % n
        }
        fn value(&mut self, depth: u32) -> Bson {
            match self.below(if depth == 0 { 4 } else { 8 }) {
                0 => Bson::Int32(self.below(3) as i32),
                1 => Bson::Null,
                2 => Bson::Double(self.below(3) as f64),
                3 => Bson::String("long enough to make a diff worth while".repeat(self.below(3) as usize)),
                4 | 5 => Bson::Document(self.document(depth - 1)),
                _ => Bson::Array((0..self.below(5)).map(|_| self.value(depth - 1)).collect()),
            }
        }
        fn document(&mut self, depth: u32) -> Document {
            let mut d = Document::new();
            for name in ["a", "b", "c", "", "s", "u", "0", "1", "l"] {
                if self.below(2) == 0 {
                    let at = self.below(d.len() as u64 + 1) as usize;
                    d.insert_at(at, name, self.value(depth));
                }
            }
            d
        }
        /// Something near `d`, so that diffs have depth.
        fn edit(&mut self, d: &Document, depth: u32) -> Document {
            let mut out = Document::new();
            for (name, v) in d.iter() {
                match (self.below(6), v) {
                    (0, _) => {}
                    (1, _) => out.push(name, self.value(depth)),
                    (2 | 3, Bson::Document(sub)) => out.push(name, Bson::Document(self.edit(sub, depth))),
                    (2 | 3, Bson::Array(items)) => out.push(name, Bson::Array(self.edit_array(items, depth))),
                    _ => out.push(name, v.clone()),
                }
            }
            if self.below(3) == 0 && !out.contains("n") {
                out.push("n", self.value(depth));
            }
            if self.below(8) == 0 && out.len() > 1 {
                let (name, v) = out.fields()[out.len() - 1].clone();
                out.remove(&name);
                out.insert_at(0, name, v);
            }
            out
        }
        fn edit_array(&mut self, items: &[Bson], depth: u32) -> Vec<Bson> {
            let mut items = items.to_vec();
            items.truncate(self.below(items.len() as u64 + 1) as usize);
            if self.below(2) == 0 {
                items.push(self.value(depth));
            }
            for item in &mut items {
                if let Bson::Document(sub) = item {
                    *item = Bson::Document(self.edit(&sub.clone(), depth));
                }
            }
            items
        }
    }

    #[test]
    fn applying_a_computed_diff_gives_the_new_document_once_and_again() {
        let mut seq = Seq(7);
        let mut with_diff = 0;
        for _ in 0..3000 {
            let old = padded(seq.document(3));
            let new = seq.edit(&old, 3);
            let (old, new) = (old.to_raw(), new.to_raw());
            let diff = object_diff(&old, &new).expect("no repeated names");
            let once = apply(&old, &diff).expect("applies");
            assert_eq!(once, new, "old {old:?} diff {diff:?}");
            assert_eq!(apply(&once, &diff).expect("applies"), new, "second time, diff {diff:?}");
            with_diff += usize::from(compute(&old, &new).is_some());
        }
        assert!(with_diff > 1000, "{with_diff}");
    }

    #[test]
    fn replaying_the_whole_sequence_over_a_later_state_ends_in_the_same_document() {
        let mut seq = Seq(11);
        for _ in 0..500 {
            let mut states = vec![padded(seq.document(3))];
            for i in 0..4 {
                let next = seq.edit(&states[i], 3);
                states.push(next);
            }
            let raws: Vec<DocBuf> = states.iter().map(Document::to_raw).collect();
            let diffs: Vec<DocBuf> =
                raws.windows(2).map(|w| object_diff(&w[0], &w[1]).expect("no repeated names")).collect();
            for start in &raws {
                let mut doc = start.clone();
                for diff in &diffs {
                    doc = apply(&doc, diff).expect("applies");
                }
                assert_eq!(&doc, &raws[raws.len() - 1], "from {start:?} with {diffs:?}");
            }
        }
    }
}
