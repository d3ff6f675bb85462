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
    /// The number modulo 2^64.
    pub(crate) fn low(&self) -> u64 {
        self.0.first().copied().unwrap_or(0)
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
    /// Whether any of the lowest bits is set.
    pub(crate) fn has_below(&self, bits: u32) -> bool {
        self.top(bits).1
    }
    pub(crate) fn shr(&mut self, bits: u32) {
        let (limbs, bits) = ((bits / 64) as usize, bits % 64);
        self.0.drain(..limbs.min(self.0.len()));
        if bits != 0 {
            let mut carry = 0;
            for limb in self.0.iter_mut().rev() {
                let low = *limb << (64 - bits);
                *limb = *limb >> bits | carry;
                carry = low;
            }
        }
        self.trim();
    }
    pub(crate) fn add(&mut self, other: &Big) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let mut carry = false;
        for (i, limb) in self.0.iter_mut().enumerate() {
            let (x, c1) = limb.overflowing_add(other.0.get(i).copied().unwrap_or(0));
            let (x, c2) = x.overflowing_add(u64::from(carry));
            *limb = x;
            carry = c1 || c2;
        }
        if carry {
            self.0.push(1);
        }
    }
    pub(crate) fn mul(&self, other: &Big) -> Big {
        let mut out = vec![0u64; self.0.len() + other.0.len()];
        for (i, x) in self.0.iter().enumerate() {
            let mut carry = 0u128;
            for (j, y) in other.0.iter().enumerate() {
                let sum = u128::from(*x) * u128::from(*y) + u128::from(out[i + j]) + carry;
                out[i + j] = sum as u64;
                carry = sum >> 64;
            }
            out[i + other.0.len()] = carry as u64;
        }
        let mut out = Big(out);
        out.trim();
        out
    }
    /// Divides by a small number, in place; returns the remainder.
    pub(crate) fn div_small(&mut self, divisor: u64) -> u64 {
        let mut rest = 0u128;
        for limb in self.0.iter_mut().rev() {
            let wide = rest << 64 | u128::from(*limb);
            *limb = (wide / u128::from(divisor)) as u64;
            rest = wide % u128::from(divisor);
        }
        self.trim();
        rest as u64
    }
    /// Quotient and remainder; `divisor` is not zero.
    pub(crate) fn div_rem(&self, divisor: &Big) -> (Big, Big) {
        if self < divisor {
            return (Big(Vec::new()), self.clone());
        }
        if let [small] = divisor.0[..] {
            let mut q = self.clone();
            let rest = q.div_small(small);
            return (q, Big::from_u128(u128::from(rest)));
        }
        // Schoolbook: shift until the divisor's top bit is set, then guess each limb from the top two.
        let shift = divisor.0.last().map_or(0, |top| top.leading_zeros());
        let (mut d, mut r) = (divisor.clone(), self.clone());
        d.shl(shift);
        r.shl(shift);
        let n = d.0.len();
        r.0.resize(self.0.len() + 1, 0);
        let mut q = vec![0u64; r.0.len() - n];
        let top = u128::from(d.0[n - 1]);
        for j in (0..q.len()).rev() {
            let head = u128::from(r.0[j + n]) << 64 | u128::from(r.0[j + n - 1]);
            let mut guess = (head / top).min(u128::from(u64::MAX)) as u64;
            // The guess is at most two too large.
            while !sub_mul(&mut r.0[j..=j + n], &d.0, guess) {
                add_back(&mut r.0[j..=j + n], &d.0, guess);
                guess -= 1;
            }
            q[j] = guess;
        }
        let (mut q, mut r) = (Big(q), r);
        q.trim();
        r.trim();
        r.shr(shift);
        (q, r)
    }
    /// The whole part of the square root.
    pub(crate) fn sqrt(&self) -> Big {
        if self.is_zero() {
            return self.clone();
        }
        // Newton from above: falls until it stands still.
        let mut x = Big::from_u128(1);
        x.shl(self.bit_len().div_ceil(2));
        loop {
            let mut y = self.div_rem(&x).0;
            y.add(&x);
            y.shr(1);
            if y >= x {
                return x;
            }
            x = y;
        }
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

/// `r -= d × factor` over one limb more than `d`; false if that went below zero.
fn sub_mul(r: &mut [u64], d: &[u64], factor: u64) -> bool {
    let (mut carry, mut borrow) = (0u128, false);
    for (i, limb) in r.iter_mut().enumerate() {
        carry += u128::from(d.get(i).copied().unwrap_or(0)) * u128::from(factor);
        let (x, b1) = limb.overflowing_sub(carry as u64);
        let (x, b2) = x.overflowing_sub(u64::from(borrow));
        *limb = x;
        borrow = b1 || b2;
        carry >>= 64;
    }
    !borrow
}

/// Undoes [`sub_mul`].
fn add_back(r: &mut [u64], d: &[u64], factor: u64) {
    let mut carry = 0u128;
    for (i, limb) in r.iter_mut().enumerate() {
        carry += u128::from(d.get(i).copied().unwrap_or(0)) * u128::from(factor) + u128::from(*limb);
        *limb = carry as u64;
        carry >>= 64;
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

    #[test]
    fn division_and_roots_undo_multiplication() {
        let mut seed = 1u64;
        let mut next = move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Long runs of ones and zeros reach the rare corrections of the quotient's guess.
            match seed >> 62 {
                0 => u64::MAX,
                1 => 0,
                _ => seed,
            }
        };
        for round in 0..20_000 {
            let mut big = |n: usize| {
                let mut b = Big((0..n).map(|_| next()).collect());
                b.0.push(1 + round);
                b.trim();
                b
            };
            let (a, b) = (big(1 + round as usize % 7), big(round as usize % 4));
            let (q, r) = a.div_rem(&b);
            assert!(r < b);
            let mut back = q.mul(&b);
            back.add(&r);
            assert_eq!(back, a);
            if round % 50 == 0 {
                let root = a.sqrt();
                let mut above = root.clone();
                above.add(&Big::from_u128(1));
                assert!(root.mul(&root) <= a && above.mul(&above) > a);
            }
        }
    }
}
