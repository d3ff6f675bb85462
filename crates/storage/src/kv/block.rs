//! The rows of one data block, read in place.
//!
//! ```text
//!   head ─ row ─ row ... head ─ row ... 255 │ offsets of the heads │ hash index │ trailer
//! ```
//!
//! A head holds its whole key, a row behind it only what differs from its head. Rows are decoded a *unit* at a time
//! (some sixteen), keys into one buffer, values as positions: a scan pays for a shared value only where it keeps
//! one. Long rows are all heads (see [`restart_interval`]), so their places are known beforehand and the processor
//! fetches all of a unit at once instead of waiting for memory row by row.
//!
//! The layout is that of table version 3 of the `lsm-tree` release that the manifest pins.

use super::Tree;
use byteview::ByteView;
use lsm_tree::Slice;

/// Rows that are decoded together.
const UNIT_ROWS: usize = 16;
/// Its length.
const TRAILER: usize = 31;
const REMOVED: u8 = 1;
const REMOVED_WEAKLY: u8 = 2;

/// Rows from one head to the next.
pub(super) fn restart_interval(tree: Tree) -> u8 {
    match tree {
        Tree::Records(_) => 1,
        Tree::Indexes | Tree::History => 16,
    }
}

#[derive(Clone, Copy)]
struct Row {
    key_end: u32,
    /// Where the value lies in the block.
    start: u32,
    end: u32,
    removed: bool,
    seqno: u64,
}

/// A block, and one of its units decoded.
#[derive(Default)]
pub(super) struct BlockRows {
    data: ByteView,
    /// Where the heads' offsets lie, how many bytes each takes, and how many there are.
    index: usize,
    step: usize,
    heads: usize,
    heads_per_unit: usize,
    keys: Vec<u8>,
    rows: Vec<Row>,
}

/// Reads one number of the variable-length kind.
#[inline]
fn varint(data: &[u8], at: &mut usize) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = *data.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
        if shift > 63 {
            return None;
        }
    }
}

#[inline]
fn length(data: &[u8], at: &mut usize) -> Option<usize> {
    usize::try_from(varint(data, at)?).ok()
}

fn u32_at(data: &[u8], at: usize) -> Option<usize> {
    data.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b) as usize)
}

impl BlockRows {
    /// Takes another block; `None` when it is damaged.
    pub(super) fn open(&mut self, data: Slice) -> Option<()> {
        let trailer = data.len().checked_sub(TRAILER)?;
        let interval = usize::from(*data.get(trailer)?).max(1);
        self.step = usize::from(*data.get(trailer + 1)?);
        self.heads = u32_at(&data, trailer + 2)?;
        self.index = u32_at(&data, trailer + 6)?;
        self.heads_per_unit = (UNIT_ROWS / interval).max(1);
        self.data = data.into();
        self.rows.clear();
        let fits = self.index >= 1 && self.index + self.heads * self.step <= trailer;
        (fits && matches!(self.step, 2 | 4)).then_some(())
    }
    pub(super) fn units(&self) -> usize {
        self.heads.div_ceil(self.heads_per_unit)
    }
    #[inline]
    fn head(&self, n: usize) -> Option<usize> {
        let at = self.index + n * self.step;
        match self.step {
            2 => self.data.get(at..)?.first_chunk().map(|b| usize::from(u16::from_le_bytes(*b))),
            _ => u32_at(&self.data, at),
        }
    }
    fn head_key(&self, n: usize) -> Option<&[u8]> {
        let data = &*self.data;
        let mut at = self.head(n)? + 1;
        varint(data, &mut at)?;
        let len = length(data, &mut at)?;
        data.get(at..at.checked_add(len)?)
    }
    /// The unit in which `key` is or would be.
    pub(super) fn unit_of(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.heads);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.head_key(middle)? <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low.saturating_sub(1) / self.heads_per_unit)
    }

    /// Decodes a unit.
    pub(super) fn load(&mut self, unit: usize) -> Option<()> {
        self.keys.clear();
        self.rows.clear();
        let first = unit * self.heads_per_unit;
        let last = (first + self.heads_per_unit).min(self.heads);
        if self.heads_per_unit > 1 {
            self.touch(first, last)?;
        }
        for head in first..last {
            // A marker byte stands before the offsets.
            let end = if head + 1 < self.heads { self.head(head + 1)? } else { self.index - 1 };
            let mut at = self.head(head)?;
            let base = self.keys.len();
            at = self.decode(at, None)?;
            while at < end {
                at = self.decode(at, Some(base))?;
            }
        }
        Some(())
    }
    /// Asks for the first bytes of all these rows at once.
    fn touch(&self, first: usize, last: usize) -> Option<()> {
        /// A line of the processor's cache.
        const LINE: usize = 64;
        let data = &*self.data;
        let mut sum = 0u8;
        for head in first..last {
            let at = self.head(head)?;
            sum ^= *data.get(at)? ^ *data.get(at + LINE).unwrap_or(&0);
        }
        std::hint::black_box(sum);
        Some(())
    }
    /// Decodes the row at `at`, with the key of a head at `base` when it is not one; returns where the next one is.
    #[inline]
    fn decode(&mut self, mut at: usize, base: Option<usize>) -> Option<usize> {
        let data = &*self.data;
        let kind = *data.get(at)?;
        at += 1;
        let seqno = varint(data, &mut at)?;
        if let Some(base) = base {
            let shared = length(data, &mut at)?;
            let from = base..base.checked_add(shared)?;
            if from.end > self.keys.len() {
                return None;
            }
            self.keys.extend_from_within(from);
        }
        let len = length(data, &mut at)?;
        self.keys.extend_from_slice(data.get(at..at.checked_add(len)?)?);
        at += len;
        let removed = matches!(kind, REMOVED | REMOVED_WEAKLY);
        let len = if removed { 0 } else { length(data, &mut at)? };
        let (start, end) = (at, at.checked_add(len)?);
        data.get(start..end)?;
        let row =
            Row { key_end: self.keys.len() as u32, start: start as u32, end: end as u32, removed, seqno };
        self.rows.push(row);
        Some(end)
    }

    /// Rows of the unit.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
    #[inline]
    pub(super) fn key(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.rows[row - 1].key_end as usize };
        &self.keys[start..self.rows[row].key_end as usize]
    }
    #[inline]
    pub(super) fn seqno(&self, row: usize) -> u64 {
        self.rows[row].seqno
    }
    /// `None`: the row removes its key.
    #[inline]
    pub(super) fn value(&self, row: usize) -> Option<&[u8]> {
        let row = &self.rows[row];
        (!row.removed).then(|| &self.data[row.start as usize..row.end as usize])
    }
    /// The value without copying it.
    pub(super) fn share(&self, row: usize) -> Slice {
        let row = &self.rows[row];
        self.data.slice(row.start as usize..row.end as usize).into()
    }
    /// The first row for which `before` is false.
    pub(super) fn partition_point(&self, before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.rows.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if before(self.key(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsm_tree::table::DataBlock;
    use lsm_tree::table::block::{Block, BlockType, Header};
    use lsm_tree::{Checksum, InternalValue, ValueType};

    fn encoded(rows: &[InternalValue], interval: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        DataBlock::encode_into(&mut bytes, rows, interval, 0.0).expect("encodes");
        bytes
    }

    /// The table crate's own walk over the same bytes.
    fn by_the_crate(bytes: &[u8]) -> Vec<(Vec<u8>, Option<Vec<u8>>, u64)> {
        let header = Header {
            block_type: BlockType::Data,
            checksum: Checksum::from_raw(0),
            data_length: bytes.len() as u32,
            uncompressed_length: bytes.len() as u32,
        };
        let block = DataBlock::new(Block { header, data: Slice::from(bytes) });
        let part = |s: &lsm_tree::table::util::SliceIndexes| bytes[s.0..s.1].to_vec();
        let row = |item: lsm_tree::table::data_block::DataBlockParsedItem| {
            let mut key = item.prefix.as_ref().map(part).unwrap_or_default();
            key.extend(part(&item.key));
            (key, item.value.as_ref().map(part), item.seqno)
        };
        block.iter().map(row).collect()
    }

    #[test]
    fn every_row_is_read_as_the_table_crate_reads_it() {
        let mut seed = 11u64;
        let mut draw = move |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for round in 0..300 {
            let interval = [1, 2, 5, 16][round % 4];
            let (mut rows, mut n) = (Vec::new(), 0u64);
            for _ in 0..1 + draw(60) {
                n += 1 + draw(300);
                let key = [&b"prefix"[..draw(2) as usize * 6], &n.to_be_bytes()].concat();
                let seqno = draw(1 << 40);
                rows.push(match draw(5) {
                    0 => InternalValue::new_tombstone(key, seqno),
                    _ => InternalValue::from_components(
                        key,
                        vec![7; draw(3000) as usize],
                        seqno,
                        ValueType::Value,
                    ),
                });
            }
            rows.sort_by(|a, b| a.key.user_key.cmp(&b.key.user_key));
            let bytes = encoded(&rows, interval);
            let want = by_the_crate(&bytes);
            assert_eq!(want.len(), rows.len());
            let mut block = BlockRows::default();
            block.open(Slice::from(&bytes[..])).expect("a block");
            let mut got = Vec::new();
            for unit in 0..block.units() {
                block.load(unit).expect("a unit");
                for row in 0..block.len() {
                    let value = block.value(row).map(|v| v.to_vec());
                    assert_eq!(value.clone().unwrap_or_default(), &*block.share(row));
                    got.push((block.key(row).to_vec(), value, block.seqno(row)));
                }
            }
            assert_eq!(got, want, "round {round}");
            for (key, ..) in &want {
                let unit = block.unit_of(key).expect("a unit");
                block.load(unit).expect("a unit");
                let at = block.partition_point(|k| k < &key[..]);
                assert_eq!(block.key(at), &key[..]);
            }
        }
    }

    #[test]
    fn damaged_blocks_are_refused_and_never_read_beyond() {
        let rows = [InternalValue::from_components("key", vec![1; 100], 5, ValueType::Value)];
        let good = encoded(&rows, 16);
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                let mut block = BlockRows::default();
                if block.open(Slice::from(&bytes[..])).is_some()
                    && block.units() == 1
                    && block.load(0).is_some()
                {
                    let read = (0..block.len()).map(|row| block.key(row).len() + block.share(row).len());
                    assert!(read.sum::<usize>() <= 2 * bytes.len());
                }
            }
        }
    }
}
