//! What the key itself forgets: numeric types, the sign of zero, a decimal's exponent, symbol or string.

/// Two bits per number; the commonest is zero so that it costs nothing.
pub(super) const INT32: u16 = 0;
pub(super) const DOUBLE: u16 = 1;
pub(super) const INT64: u16 = 2;
pub(super) const DECIMAL: u16 = 3;

/// A growing string of bits, lowest first; zeros at the end are not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeBits {
    bytes: Vec<u8>,
    len: usize,
}

impl TypeBits {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }
    #[inline]
    pub(super) fn push(&mut self, bits: u16, count: usize) {
        if bits != 0 {
            for i in 0..count {
                if bits >> i & 1 != 0 {
                    let at = self.len + i;
                    self.bytes.resize(self.bytes.len().max(at / 8 + 1), 0);
                    self.bytes[at / 8] |= 1 << (at % 8);
                }
            }
        }
        self.len += count;
    }
    /// The stored form: without the zero bytes at the end.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads bits back; beyond the stored end all are zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader { bytes, at: 0 }
    }
    pub(super) fn take(&mut self, count: usize) -> u16 {
        let mut out = 0;
        for i in 0..count {
            let at = self.at + i;
            let bit = self.bytes.get(at / 8).map_or(0, |b| b >> (at % 8) & 1);
            out |= u16::from(bit) << i;
        }
        self.at += count;
        out
    }
}
