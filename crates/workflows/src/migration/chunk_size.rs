//! How many documents one migration moves: sizes are told by documents, at their mean size, as MongoDB does (SH-MIG-3).

use super::Migration;
use pando_base::{Error, ErrorCode, limits};

/// What is taken for the size of a document where all of them together come to less than their number.
const SMALLEST_MEAN: u64 = 5;
/// A range of more than so many times of what fills a chunk is too large: sizes differ.
const SLACK: u64 = 2;

/// A chunk of the largest size, in documents of one collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkSize {
    max_bytes: u64,
    mean: u64,
    /// Of a full chunk.
    documents: u64,
}

impl ChunkSize {
    /// Of a collection that has `bytes` in `count` documents here.
    pub fn of(max_bytes: u64, bytes: u64, count: u64) -> ChunkSize {
        let mean = bytes.checked_div(count).map_or(0, |mean| mean.max(SMALLEST_MEAN));
        let documents =
            max_bytes.checked_div(mean).map_or(limits::MIGRATION_DOCUMENTS_MAX as u64, |n| n.max(1));
        ChunkSize { max_bytes, mean, documents }
    }
    /// A part of a larger range has so many documents: one less than fill a chunk, as 6.0.5 cuts it.
    pub fn cut_behind(self) -> usize {
        usize::try_from(self.documents - 1).unwrap_or(usize::MAX).max(1)
    }
    /// A range of more is refused.
    pub fn documents_max(self) -> usize {
        usize::try_from(self.documents.saturating_mul(SLACK)).unwrap_or(usize::MAX)
    }
    /// What a donor says of a range of so many documents.
    pub fn refusal(self, m: &Migration, found: usize) -> Error {
        let text = format!(
            "Cannot move chunk: the maximum number of documents for a chunk is {}, the maximum chunk size is {}, average document \
             size is {}. Found {found} documents in chunk  ns: {} {} -> {}",
            self.documents_max(),
            self.max_bytes,
            self.mean,
            m.ns,
            m.min,
            m.max
        );
        Error::new(ErrorCode::ChunkTooBig, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::{Namespace, Uuid};
    use pando_bson::{Bson, DocBuf, doc};

    #[test]
    fn a_range_may_have_twice_the_documents_of_a_full_chunk() {
        // 100 documents of 32797 bytes, as 6.0.5 answers for them.
        let size = ChunkSize::of(1 << 20, 100 * 32_797, 100);
        assert_eq!((size.documents_max(), size.cut_behind()), (62, 30));
        let m = Migration {
            id: Uuid([1; 16]),
            ns: Namespace::parse("t.j").unwrap(),
            uuid: Uuid([2; 16]),
            donor: "sa".to_owned(),
            recipient: "sb".to_owned(),
            min: doc! { "k": Bson::MinKey }.to_raw(),
            max: doc! { "k": Bson::MaxKey }.to_raw(),
            key: DocBuf::default(),
        };
        let refusal = size.refusal(&m, 100);
        assert_eq!(refusal.code, ErrorCode::ChunkTooBig);
        assert_eq!(
            refusal.message,
            "Cannot move chunk: the maximum number of documents for a chunk is 62, the maximum chunk size is 1048576, average \
             document size is 32797. Found 100 documents in chunk  ns: t.j { k: MinKey } -> { k: MaxKey }"
        );
    }

    #[test]
    fn there_is_always_something_that_may_move() {
        let tiny = ChunkSize::of(1, 1 << 20, 2);
        assert_eq!((tiny.documents_max(), tiny.cut_behind()), (2, 1));
        let nothing_there = ChunkSize::of(1 << 20, 0, 0);
        assert!(nothing_there.documents_max() >= limits::MIGRATION_DOCUMENTS_MAX);
        assert_eq!(ChunkSize::of(100, 3, 10).documents_max(), 40, "no document is smaller than an empty one");
    }
}
