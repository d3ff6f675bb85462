//! What a donor keeps for its recipient while a range moves: which documents were written, and which are gone (SH-MIG-5, SH-MIG-7).
//!
//! ```text
//!   every write of this node ─► inserted, updated, deleted ─► keys, each once ─► help(1), help(2), … ─► the recipient
//!                                                                 ▲                    └ the same number again: the same helping
//!                                                                 └── not taken ──────┘
//! ```
//! What is kept are document keys (the shard key's values and `_id`, which need not be different on other shards). A document is read when it is
//! told, so one that was written many times is told once, as it is then.

use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, Elem, RawDoc};
use pando_routing::{KeyRange, ShardKey};
use std::collections::BTreeSet;

/// The changes that a recipient is told at once. What is gone goes first: its `_id` may be another document's by now.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Helping {
    pub gone: Vec<DocBuf>,
    pub written: Vec<DocBuf>,
}

impl Helping {
    pub fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.written.is_empty()
    }
}

/// The range of one migration.
pub struct RecordedRange {
    key: ShardKey,
    range: KeyRange,
    gone: BTreeSet<Vec<u8>>,
    written: BTreeSet<Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
    /// Something was forgotten for want of room.
    overflown: bool,
    receiver: Option<i64>,
    told: u64,
    last: Helping,
    scratch: KeyBuilder,
}

impl RecordedRange {
    /// `[min, max)` of a collection that is sharded by `key`.
    pub fn new(key: ShardKey, min: &RawDoc, max: &RawDoc) -> Result<RecordedRange> {
        let range = key.range(min, max)?;
        Ok(RecordedRange {
            key,
            range,
            gone: BTreeSet::new(),
            written: BTreeSet::new(),
            bytes: 0,
            bytes_max: limits::MIGRATION_RECORDED_BYTES_MAX,
            overflown: false,
            receiver: None,
            told: 0,
            last: Helping::default(),
            scratch: KeyBuilder::default(),
        })
    }

    pub fn inserted(&mut self, doc: &RawDoc) {
        if let Some(key) = self.key_in_range(doc) {
            self.keep(key, false);
        }
    }
    pub fn deleted(&mut self, doc: &RawDoc) {
        if let Some(key) = self.key_in_range(doc) {
            self.keep(key, true);
        }
    }
    /// An update may take a document out of the range, or into it.
    pub fn updated(&mut self, old: &RawDoc, new: &RawDoc) {
        let (before, after) = (self.key_in_range(old), self.key_in_range(new));
        if before != after
            && let Some(key) = before
        {
            self.keep(key, true);
        }
        if let Some(key) = after {
            self.keep(key, false);
        }
    }
    pub fn key(&self) -> &ShardKey {
        &self.key
    }
    /// How many documents are still to be told, and what is kept of them.
    pub fn left(&self) -> (usize, usize) {
        (self.gone.len() + self.written.len(), self.bytes)
    }

    /// Everything is given to one receiver, in the order of the numbers from 1 on. The number of the last helping once more gives the same.
    ///
    /// # Errors
    /// 117 for another receiver; 2 for a number that is not its turn; 146 when changes were forgotten.
    pub fn help(&mut self, receiver: i64, number: u64) -> Result<&Helping> {
        self.give_to(receiver)?;
        if self.overflown {
            let text = format!("more than {} bytes of changes are left to be moved", self.bytes_max);
            return Err(Error::new(ErrorCode::ExceededMemoryLimit, text));
        }
        if number == self.told + 1 {
            self.told = number;
            self.last = self.take();
        } else if number != self.told || number == 0 {
            return Err(Error::bad_value(format!("helping {number} was asked for behind {}", self.told)));
        }
        Ok(&self.last)
    }
    /// Documents are given to one receiver as well.
    pub fn give_to(&mut self, receiver: i64) -> Result<()> {
        if *self.receiver.get_or_insert(receiver) != receiver {
            let text = "the range is given to another receiver already";
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        Ok(())
    }
    /// Of the last helping, only so many written documents were told: they are large.
    pub fn told_only(&mut self, written: usize) {
        for key in self.last.written.split_off(written.min(self.last.written.len())) {
            self.keep_again(key);
        }
    }

    fn key_in_range(&mut self, doc: &RawDoc) -> Option<Vec<u8>> {
        let id: Elem<'_> = doc.elem("_id")?;
        self.scratch.clear();
        self.key.key_of(doc, &mut self.scratch).ok()?;
        let at = self.scratch.bytes();
        if !self.range.holds(at) {
            return None;
        }
        Some(self.key.document_key(doc, id).into_bytes())
    }
    fn keep(&mut self, key: Vec<u8>, gone: bool) {
        let (into, other) = match gone {
            true => (&mut self.gone, &mut self.written),
            false => (&mut self.written, &mut self.gone),
        };
        // What is written again is told once: that it was gone before, and what it is now, comes to what it is now.
        let known = other.remove(&key);
        let size = key.len();
        if known || self.bytes + size <= self.bytes_max {
            if into.insert(key) && !known {
                self.bytes += size;
            }
        } else if !into.contains(&key) {
            self.overflown = true;
        }
    }
    /// Unless something newer is known of it.
    fn keep_again(&mut self, key: DocBuf) {
        let key = key.into_bytes();
        if !self.gone.contains(&key) {
            self.keep(key, false);
        }
    }
    fn take(&mut self) -> Helping {
        let mut room = limits::MIGRATION_HELPING_DOCUMENTS_MAX;
        let mut next = |from: &mut BTreeSet<Vec<u8>>, bytes: &mut usize| {
            let mut out = Vec::new();
            while room > 0
                && let Some(key) = from.pop_first()
            {
                room -= 1;
                *bytes -= key.len();
                // These are documents that this node has put together.
                out.push(DocBuf::from_trusted(key));
            }
            out
        };
        let gone = next(&mut self.gone, &mut self.bytes);
        Helping { gone, written: next(&mut self.written, &mut self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn range() -> RecordedRange {
        let key = ShardKey::parse(&doc! { "k": 1 }.to_raw()).unwrap();
        RecordedRange::new(key, &doc! { "k": 0 }.to_raw(), &doc! { "k": 10 }.to_raw()).unwrap()
    }
    fn at(k: i32, id: i32) -> DocBuf {
        doc! { "_id": id, "k": k, "x": "more" }.to_raw()
    }
    fn key(k: i32, id: i32) -> DocBuf {
        doc! { "k": k, "_id": id }.to_raw()
    }

    #[test]
    fn what_is_written_in_the_range_is_told_once_as_it_is_at_last() {
        let mut r = range();
        r.inserted(&at(1, 1));
        r.updated(&at(1, 1), &at(1, 1));
        r.inserted(&at(-1, 2));
        r.inserted(&at(10, 3));
        r.inserted(&at(2, 4));
        r.deleted(&at(2, 4));
        r.deleted(&at(3, 5));
        r.inserted(&at(3, 5));
        assert_eq!(r.left().0, 3);
        let told = r.help(7, 1).unwrap().clone();
        assert_eq!(told, Helping { gone: vec![key(2, 4)], written: vec![key(1, 1), key(3, 5)] });
        assert_eq!(r.left(), (0, 0));
        assert!(r.help(7, 2).unwrap().is_empty());
    }
    #[test]
    fn a_document_that_leaves_the_range_is_gone_and_one_that_comes_is_written() {
        let mut r = range();
        r.updated(&at(1, 1), &at(11, 1));
        r.updated(&at(-5, 2), &at(5, 2));
        r.updated(&at(3, 3), &at(4, 3));
        let told = r.help(7, 1).unwrap();
        assert_eq!(told.gone, [key(1, 1), key(3, 3)]);
        assert_eq!(told.written, [key(4, 3), key(5, 2)]);
    }
    #[test]
    fn a_helping_whose_answer_is_lost_is_asked_for_again_and_no_other_receiver_gets_any() {
        let mut r = range();
        r.inserted(&at(1, 1));
        let first = r.help(7, 1).unwrap().clone();
        r.inserted(&at(2, 2));
        assert_eq!(*r.help(7, 1).unwrap(), first);
        assert_eq!(r.help(8, 2).unwrap_err().code, ErrorCode::ConflictingOperationInProgress);
        assert_eq!(r.help(7, 3).unwrap_err().code, ErrorCode::BadValue);
        assert_eq!(r.help(7, 2).unwrap().written, [key(2, 2)]);
        assert_eq!(r.help(7, 0).unwrap_err().code, ErrorCode::BadValue);
    }
    #[test]
    fn what_had_no_room_in_a_reply_comes_later_unless_it_is_gone_by_then() {
        let mut r = range();
        (1..=4).for_each(|k| r.inserted(&at(k, k)));
        r.help(7, 1).unwrap();
        r.deleted(&at(4, 4));
        r.told_only(2);
        assert_eq!(r.help(7, 1).unwrap().written, [key(1, 1), key(2, 2)]);
        let next = r.help(7, 2).unwrap();
        assert_eq!((next.gone.clone(), next.written.clone()), (vec![key(4, 4)], vec![key(3, 3)]));
    }
    #[test]
    fn too_many_changes_end_the_migration_and_take_no_more_room() {
        let mut r = range();
        r.bytes_max = 100;
        (0..1000).for_each(|id| r.inserted(&at(1, id)));
        assert!(r.left().1 <= 100);
        assert_eq!(r.help(7, 1).unwrap_err().code, ErrorCode::ExceededMemoryLimit);
    }
}
