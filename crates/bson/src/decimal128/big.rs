//! Just enough big integers for exact conversions: little-endian 64-bit limbs, no trailing zero limb.

use std::cmp::Ordering;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Big(Vec<u64>);

impl Big {
    pub(crate) fn from_u128(n: u128) -> Big {
        let mut b = Big(vec![n as u64, (n >> 64) as u64]);
        b.trim();
        b
    }
    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
    pub(crate) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn bit_len(&self) -> u32 {
        match self.0.last() {
            Some(top) => self.0.len() as u32 * 64 - top.leading_zeros(),
            None => 0,
        }
    }
    pub(crate) fn mul_small(&mut self, factor: u64) {
        let mut carry = 0u128;
        for limb in &mut self.0 {
            let wide = u128::from(*limb) * u128::from(factor) + carry;
            *limb = wide as u64;
            carry = wide >> 64;
        }
        if carry != 0 {
            self.0.push(carry as u64);
        }
        self.trim();
    }
    pub(crate) fn mul_pow10(&mut self, mut power: u32) {
        while power >= 19 {
            self.mul_small(10u64.pow(19));
            power -= 19;
        }
        self.mul_small(10u64.pow(power));
    }
    pub(crate) fn shl(&mut self, bits: u32) {
        if self.is_zero() || bits == 0 {
            return;
        }
        let (limbs, bits) = ((bits / 64) as usize, bits % 64);
        if bits != 0 {
            let mut carry = 0;
            for limb in &mut self.0 {
                let high = *limb >> (64 - bits);
                *limb = *limb << bits | carry;
                carry = high;
            }
            if carry != 0 {
                self.0.push(carry);
            }
        }
        self.0.splice(0..0, std::iter::repeat_n(0, limbs));
    }
    /// The bits from `shift` upwards as a `u128` (the caller knows they fit), and whether any lower bit is set.
    pub(crate) fn top(&self, shift: u32) -> (u128, bool) {
        let (limb, bit) = ((shift / 64) as usize, shift % 64);
        let at = |i: usize| u128::from(self.0.get(i).copied().unwrap_or(0));
        let mut out = at(limb) >> bit | at(limb + 1) << (64 - bit);
        if bit != 0 {
            out |= at(limb + 2) << (128 - bit);
        }
        let low = self.0.iter().take(limb).any(|l| *l != 0)
            || (bit != 0 && at(limb) as u64 & ((1u64 << bit) - 1) != 0);
        (out, low)
    }
    /// `self -= other`; `other` must not be larger.
    pub(crate) fn sub(&mut self, other: &Big) {
        let mut borrow = false;
        for (i, limb) in self.0.iter_mut().enumerate() {
            let (x, b1) = limb.overflowing_sub(other.0.get(i).copied().unwrap_or(0));
            let (x, b2) = x.overflowing_sub(u64::from(borrow));
            *limb = x;
            borrow = b1 || b2;
        }
        debug_assert!(!borrow);
        self.trim();
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Big) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Big {
    fn cmp(&self, other: &Big) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_u128_where_both_fit() {
        for (n, p, s) in [(1u128, 0u32, 0u32), (7, 19, 3), (123_456_789, 10, 50), (u64::MAX as u128, 3, 1)] {
            let mut b = Big::from_u128(n);
            b.mul_pow10(p);
            b.shl(s);
            let expect = (n * 10u128.pow(p)) << s;
            assert_eq!(b.top(0).0, expect);
            assert_eq!(b.bit_len(), 128 - expect.leading_zeros());
            assert_eq!(b.top(5), (expect >> 5, expect & 31 != 0));
            let mut c = b.clone();
            c.sub(&Big::from_u128(expect - 1));
            assert_eq!(c, Big::from_u128(1));
        }
    }
}
