//! The keys of one document in one index, as bytes that compare like the values.

use pando_base::limits;
use pando_bson::keystring::KeyBuilder;
use std::ops::Range;

/// The keys of one document, ascending and without duplicates. Reuse it from document to document.
#[derive(Debug, Default)]
pub struct KeySet {
    buf: Vec<u8>,
    keys: Vec<KeyRef>,
    /// Per field of the pattern: bit `i` says that the first `i + 1` path components reached an array.
    pub marks: Vec<u64>,
    /// An array was met.
    pub multikey: bool,
    /// Wildcard indexes: paths that held an array.
    pub wild_paths: Vec<String>,
    /// The keys took more than one document's may; the rest was not made.
    pub(crate) too_large: bool,
}

#[derive(Clone, Debug)]
struct KeyRef {
    key: Range<usize>,
    bits: Range<usize>,
}

/// One key and its type bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key<'a> {
    /// Order-preserving bytes of the values.
    pub bytes: &'a [u8],
    /// What the bytes leave out: numeric types and the like.
    pub type_bits: &'a [u8],
}

impl KeySet {
    /// Forgets all keys and keeps the memory.
    pub fn clear(&mut self) {
        self.buf.clear();
        self.keys.clear();
        self.marks.clear();
        self.multikey = false;
        self.wild_paths.clear();
        self.too_large = false;
    }
    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }
    /// Whether the index does not hold the document.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
    /// The key at this place of the order.
    pub fn get(&self, i: usize) -> Option<Key<'_>> {
        let r = self.keys.get(i)?;
        Some(Key { bytes: &self.buf[r.key.clone()], type_bits: &self.buf[r.bits.clone()] })
    }
    /// The keys, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Key<'_>> {
        self.keys
            .iter()
            .map(|r| Key { bytes: &self.buf[r.key.clone()], type_bits: &self.buf[r.bits.clone()] })
    }
    pub(crate) fn push(&mut self, b: &KeyBuilder) {
        let start = self.buf.len();
        self.too_large |= start + b.bytes().len() > limits::DOCUMENT_KEYS_BYTES_MAX;
        if self.too_large {
            return;
        }
        self.buf.extend_from_slice(b.bytes());
        let end = self.buf.len();
        self.buf.extend_from_slice(b.type_bits());
        self.keys.push(KeyRef { key: start..end, bits: end..self.buf.len() });
    }
    pub(crate) fn sort(&mut self) {
        if self.keys.len() > 1 {
            let buf = &self.buf;
            self.keys.sort_by(|a, b| buf[a.key.clone()].cmp(&buf[b.key.clone()]));
            self.keys.dedup_by(|a, b| buf[a.key.clone()] == buf[b.key.clone()]);
        }
    }
    pub(crate) fn mark(&mut self, fields: usize, field: usize, component: usize) {
        self.multikey = true;
        if self.marks.len() < fields {
            self.marks.resize(fields, 0);
        }
        self.marks[field] |= 1 << component.min(63);
    }
}

/// What an update does to an index: keys to remove, and keys to write.
///
/// Keys of `old` that are not in `new` and the other way round; both are ascending.
pub fn changes<'a>(old: &'a KeySet, new: &'a KeySet) -> (Vec<Key<'a>>, Vec<Key<'a>>) {
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    loop {
        match (old.get(i), new.get(j)) {
            (None, None) => return (removed, added),
            (Some(a), None) => {
                removed.push(a);
                i += 1;
            }
            (None, Some(b)) => {
                added.push(b);
                j += 1;
            }
            (Some(a), Some(b)) => match a.bytes.cmp(b.bytes) {
                std::cmp::Ordering::Less => {
                    removed.push(a);
                    i += 1;
                }
                std::cmp::Ordering::Greater => {
                    added.push(b);
                    j += 1;
                }
                std::cmp::Ordering::Equal => {
                    // The same key with other numeric types: rewritten in place.
                    if a.type_bits != b.type_bits {
                        added.push(b);
                    }
                    i += 1;
                    j += 1;
                }
            },
        }
    }
}
