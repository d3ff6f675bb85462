//! One batch of a cursor, written straight into the reply.

use pando_base::limits;
use pando_bson::{DocBuf, DocBuilder, ElementType, Nested};

/// `cursor: {firstBatch | nextBatch: [...], id, ns}` under construction.
pub(crate) struct Batch<'b> {
    b: &'b mut DocBuilder,
    cursor: Nested,
    array: Nested,
    count: u32,
    docs_max: u64,
    started_at: usize,
    resume: Option<DocBuf>,
}

/// Type, digits of the position and the zero behind them.
const ELEMENT_OVERHEAD_MAX: usize = 12;

pub(crate) use pando_base::limits::FIRST_BATCH_DOCS;

impl<'b> Batch<'b> {
    /// `docs_max` limits the number of documents; their size is limited to 16 MiB.
    pub(crate) fn begin(b: &'b mut DocBuilder, name: &str, docs_max: u64) -> Batch<'b> {
        let cursor = b.open_nested(ElementType::Document, "cursor");
        let array = b.open_nested(ElementType::Array, name);
        let started_at = b.buffer_len();
        Batch { b, cursor, array, count: 0, docs_max, started_at, resume: None }
    }
    pub(crate) fn len(&self) -> u64 {
        u64::from(self.count)
    }
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.docs_max
    }
    /// One document always fits, however large.
    #[inline]
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.count == 0 || self.b.buffer_len() - self.started_at + bytes <= limits::BSON_USER_BYTES_MAX
    }
    #[inline]
    pub(crate) fn push(&mut self, doc: &[u8]) {
        let mut digits = [0u8; 10];
        let mut at = digits.len();
        let mut n = self.count;
        loop {
            at -= 1;
            digits[at] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                break;
            }
        }
        self.make_room(doc.len() + ELEMENT_OVERHEAD_MAX);
        self.b.raw(ElementType::Document, &digits[at..], doc);
        self.count += 1;
    }
    /// A batch that has become large will probably fill up: growing in two strides instead of by doubling copies
    /// it less often. Pages that are not written to cost nothing.
    #[inline]
    fn make_room(&mut self, bytes: usize) {
        const STRIDES: [usize; 2] = [1 << 20, limits::BSON_USER_BYTES_MAX + (64 << 10)];
        let len = self.b.buffer_len();
        if self.b.spare_capacity() < bytes && len > STRIDES[0] / 16 {
            let target = STRIDES.into_iter().find(|s| *s / 2 > len + bytes).unwrap_or(STRIDES[1]);
            self.b.reserve_exact(target.max(len + bytes) - len);
        }
    }
    /// Where the batch ends, for a reader that may have to go on elsewhere.
    pub(crate) fn tell_resume_token(&mut self, token: Option<DocBuf>) {
        self.resume = token;
    }
    /// Closes the batch; `more` adds fields behind `id` and `ns`.
    pub(crate) fn end(self, id: i64, ns: &str, more: impl FnOnce(&mut DocBuilder)) {
        self.b.close_nested(self.array);
        if let Some(token) = &self.resume {
            self.b.raw_doc("postBatchResumeToken", token);
        }
        self.b.i64("id", id);
        self.b.str("ns", ns);
        more(self.b);
        self.b.close_nested(self.cursor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{RawDoc, doc};

    #[test]
    fn documents_are_numbered_and_the_frame_is_whole() {
        let mut b = DocBuilder::new();
        let d = doc! { "x": 1 }.to_raw();
        let mut batch = Batch::begin(&mut b, "firstBatch", 12);
        for _ in 0..12 {
            assert!(!batch.is_full() && batch.has_room(d.byte_len()));
            batch.push(d.as_bytes());
        }
        assert!(batch.is_full());
        batch.end(7, "db.c", |_| {});
        b.f64("ok", 1.0);
        let out = b.finish();
        assert!(RawDoc::validate(out.as_bytes()).is_ok());
        let list = out.get_path("cursor.firstBatch").and_then(|v| v.as_array()).map(|a| a.count());
        assert_eq!((list, out.get_path("cursor.id").and_then(|v| v.as_i64())), (Some(12), Some(7)));
    }

    #[test]
    fn sixteen_mebibytes_end_a_batch_but_never_its_first_document() {
        let mut b = DocBuilder::new();
        let mut batch = Batch::begin(&mut b, "firstBatch", 101);
        assert!(batch.has_room(17 << 20));
        batch.push(doc! { "x": 1 }.to_raw().as_bytes());
        assert!(batch.has_room(1 << 20) && !batch.has_room(16 << 20));
    }
}
