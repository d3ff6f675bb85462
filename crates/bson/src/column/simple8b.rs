//! Blocks of 8 bytes, each with many small numbers.
//!
//! The lowest four bits, the selector, say how wide the numbers are. Two widths leave four bits over, which select widths
//! of numbers that come with a count of zero bits to put behind them. Selector 15 repeats the number before. All bits of
//! a number set: no number.

use super::malformed;
use pando_base::Result;

/// Widths by selector.
const WIDTHS: [u8; 15] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 60];
/// Of numbers whose count of zero bits takes four bits, by the extension of selector 7.
const SHIFTED_BY_BITS: [u8; 10] = [0, 2, 3, 4, 5, 7, 10, 14, 24, 52];
/// Of numbers whose count is of half bytes, by the extension of selector 8: it takes four bits, or five from the eighth on.
const SHIFTED_BY_NIBBLES: [u8; 14] = [0, 4, 5, 7, 10, 14, 24, 52, 4, 6, 9, 13, 23, 51];
const REPEAT: u64 = 15;
const REPEATED_AT_LEAST: u32 = 120;

/// What is left of one block.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    bits: u64,
    left: u32,
    /// Bits of a number with its count; 0 when the number before is repeated.
    width: u32,
    /// Bits of the count, and bits that one of it stands for.
    count_bits: u32,
    unit: u32,
}

impl Block {
    fn open(word: u64) -> Result<Block> {
        let (selector, extension) = (word & 15, (word >> 4 & 15) as usize);
        let plain = |width: u8, from: u32, room: u32| Block {
            bits: word >> from,
            left: room / u32::from(width),
            width: width.into(),
            count_bits: 0,
            unit: 0,
        };
        let shifted = |width: u8, count_bits: u32, unit: u32| {
            let total = u32::from(width) + count_bits;
            Block { bits: word >> 8, left: 56 / total, width: total, count_bits, unit }
        };
        let unknown = || malformed("an unknown selector");
        Ok(match (selector, extension) {
            (0, _) => return Err(unknown()),
            (REPEAT, n) => Block { left: (n as u32 + 1) * REPEATED_AT_LEAST, ..Block::default() },
            (7 | 8, 0) => plain(WIDTHS[selector as usize], 8, 56),
            (7, n) => shifted(*SHIFTED_BY_BITS.get(n).ok_or_else(unknown)?, 4, 1),
            (8, n) => {
                let width = *SHIFTED_BY_NIBBLES.get(n).ok_or_else(unknown)?;
                shifted(width, if n < 8 { 4 } else { 5 }, 4)
            }
            (n, _) => plain(WIDTHS[n as usize], 4, 60),
        })
    }

    /// `None` for a row without a number.
    fn next(&mut self) -> Option<u128> {
        let mask = (1u64 << self.width) - 1;
        let raw = self.bits & mask;
        self.bits >>= self.width;
        if raw == mask {
            return None;
        }
        let zeros = (raw & ((1 << self.count_bits) - 1)) as u32 * self.unit;
        Some(u128::from(raw >> self.count_bits) << zeros)
    }
}

/// The numbers of consecutive blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    words: Vec<u64>,
    at: usize,
    block: Block,
}

impl Numbers {
    pub(super) fn new(blocks: &[u8]) -> Numbers {
        let words = blocks.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        Numbers { words, at: 0, block: Block::default() }
    }

    pub(super) fn has_more(&self) -> bool {
        self.block.left > 0 || self.at < self.words.len()
    }

    /// The next number or gap; `last` is the one before, of this sequence of blocks or an earlier one.
    pub(super) fn next(&mut self, last: &mut Option<u128>) -> Result<Option<Option<u128>>> {
        while self.block.left == 0 {
            let Some(word) = self.words.get(self.at) else { return Ok(None) };
            self.block = Block::open(*word)?;
            self.at += 1;
        }
        self.block.left -= 1;
        if self.block.width > 0 {
            *last = self.block.next();
        }
        Ok(Some(*last))
    }
}
