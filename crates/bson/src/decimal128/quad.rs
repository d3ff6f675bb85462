//! Quadruple floats: numbers of 113 binary digits.
//!
//! MongoDB computes functions of decimals with them: the argument is rounded to one, each step gives one again, and the
//! last is written with 34 digits. So the last digit of an answer may be one or two off, and clients see that. To be off
//! by the same, the steps here are rounded in the same places; a single function of a quadruple float is computed in
//! fixed point and rounded once.

use super::big::Big;
use super::math::{FRACTION, Fixed, ln2_fixed};
use super::round::pack;
use super::{Num, pack_exact};
use crate::types::Decimal128;
use std::cmp::Ordering;

/// Binary digits.
pub(super) const BITS: u32 = 113;
/// Binary digits of a quotient before it is rounded; what is left of a decimal beside its first 113 digits has so many.
const QUOTIENT_BITS: u32 = 400;
/// A sum of numbers further apart than this is the greater one.
const APART_MAX: i64 = 400;

/// `±bits × 2^exponent`; `bits` has 113 digits, or is zero. There are no infinities: callers stay within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quad {
    negative: bool,
    bits: u128,
    exponent: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// To the nearest, of two equally near ones to the even one.
    Nearest,
    /// To the nearest, of two equally near ones to the greater one: sums.
    NearestUp,
    TowardZero,
}

/// 113 digits of `size × 2^exponent`; `more`: it is a little larger than that.
fn rounded(negative: bool, size: &Big, exponent: i64, more: bool, cut: Cut) -> Quad {
    let len = size.bit_len();
    if len <= BITS {
        let (bits, up) = (size.top(0).0, BITS - len);
        return Quad {
            negative,
            bits: if len == 0 { 0 } else { bits << up },
            exponent: if len == 0 { 0 } else { exponent - i64::from(up) },
        };
    }
    let drop = len - BITS;
    // One digit more, to see on which side of the middle the rest lies.
    let (wide, low) = size.top(drop - 1);
    let (mut bits, half, low) = (wide >> 1, wide & 1 == 1, low || more);
    let mut exponent = exponent + i64::from(drop);
    let up = match cut {
        Cut::Nearest => half && (low || bits & 1 == 1),
        Cut::NearestUp => half,
        Cut::TowardZero => false,
    };
    if up {
        bits += 1;
        if bits >> BITS != 0 {
            bits >>= 1;
            exponent += 1;
        }
    }
    Quad { negative, bits, exponent }
}

/// `coefficient × 10^exponent` as `size × 2^n`, and whether it is a little larger.
fn binary(coefficient: u128, exponent: i32) -> (Big, i64, bool) {
    let mut size = Big::from_u128(coefficient);
    if exponent >= 0 {
        size.mul_pow10(exponent as u32);
        return (size, 0, false);
    }
    let mut divisor = Big::from_u128(1);
    divisor.mul_pow10(exponent.unsigned_abs());
    let shift = divisor.bit_len() + QUOTIENT_BITS;
    size.shl(shift);
    let (quotient, rest) = size.div_rem(&divisor);
    (quotient, -i64::from(shift), !rest.is_zero())
}

impl Quad {
    pub(super) const ONE: Quad = Quad { negative: false, bits: 1 << (BITS - 1), exponent: 1 - BITS as i64 };

    pub(super) fn of_decimal(negative: bool, coefficient: u128, exponent: i32) -> Quad {
        let (size, at, more) = binary(coefficient, exponent);
        rounded(negative, &size, at, more, Cut::Nearest)
    }
    /// Zero for what is not finite.
    pub(super) fn of(d: Decimal128) -> Quad {
        match d.unpack() {
            Num::Finite { negative, coefficient, exponent } => {
                Quad::of_decimal(negative, coefficient, exponent)
            }
            _ => Quad { negative: false, bits: 0, exponent: 0 },
        }
    }
    /// The first 113 digits, and what is left.
    pub(super) fn two_parts(negative: bool, coefficient: u128, exponent: i32) -> (Quad, Quad) {
        let (size, at, more) = binary(coefficient, exponent);
        let high = rounded(negative, &size, at, more, Cut::TowardZero);
        let mut rest = size;
        let mut taken = Big::from_u128(high.bits);
        // Of a short number nothing is left; its digits were moved up.
        if high.exponent < at {
            return (high, Quad { negative, bits: 0, exponent: 0 });
        }
        taken.shl((high.exponent - at) as u32);
        rest.sub(&taken);
        (high, rounded(negative, &rest, at, more, Cut::Nearest))
    }
    pub(super) fn of_fixed(x: &Fixed) -> Quad {
        rounded(x.negative, &x.size, -i64::from(FRACTION), false, Cut::Nearest)
    }
    /// The first 113 digits.
    pub(super) fn cut_fixed(x: &Fixed) -> Quad {
        rounded(x.negative, &x.size, -i64::from(FRACTION), false, Cut::TowardZero)
    }
    pub(super) fn of_int(n: i64) -> Quad {
        Quad::of_decimal(n < 0, u128::from(n.unsigned_abs()), 0)
    }
    /// What is below its places is lost.
    pub(super) fn fixed(self) -> Fixed {
        let mut size = Big::from_u128(self.bits);
        match self.exponent + i64::from(FRACTION) {
            up @ 0.. => size.shl(up as u32),
            down => size.shr(down.unsigned_abs().min(u64::from(BITS) + 64) as u32),
        }
        Fixed { negative: self.negative, size }
    }
    pub(super) fn is_zero(self) -> bool {
        self.bits == 0
    }
    pub(super) fn is_negative(self) -> bool {
        self.negative
    }
    pub(super) fn negated(self) -> Quad {
        self.signed(!self.negative)
    }
    /// The same size with this sign.
    pub(super) fn signed(self, negative: bool) -> Quad {
        Quad { negative, ..self }
    }
    pub(super) fn abs(self) -> Quad {
        self.signed(false)
    }
    pub(super) fn halved(self) -> Quad {
        Quad { exponent: self.exponent - 1, ..self }
    }
    /// Compares sizes.
    pub(super) fn cmp_size(self, other: Quad) -> Ordering {
        match (self.bits, other.bits) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Less,
            (_, 0) => Ordering::Greater,
            _ => self.exponent.cmp(&other.exponent).then(self.bits.cmp(&other.bits)),
        }
    }
    pub(super) fn mul(self, other: Quad) -> Quad {
        let size = Big::from_u128(self.bits).mul(&Big::from_u128(other.bits));
        rounded(self.negative != other.negative, &size, self.exponent + other.exponent, false, Cut::Nearest)
    }
    /// `other` is not zero.
    pub(super) fn div(self, other: Quad) -> Quad {
        let mut size = Big::from_u128(self.bits);
        size.shl(QUOTIENT_BITS);
        let (quotient, rest) = size.div_rem(&Big::from_u128(other.bits));
        let exponent = self.exponent - other.exponent - i64::from(QUOTIENT_BITS);
        rounded(self.negative != other.negative, &quotient, exponent, !rest.is_zero(), Cut::Nearest)
    }
    pub(super) fn add(self, other: Quad) -> Quad {
        if self.is_zero() || other.is_zero() {
            return if self.is_zero() { other } else { self };
        }
        let (high, low) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let apart = high.exponent - low.exponent;
        if apart > APART_MAX {
            return high;
        }
        let (mut a, mut b) = (Big::from_u128(high.bits), Big::from_u128(low.bits));
        a.shl(apart as u32);
        let negative = if high.negative == low.negative {
            a.add(&b);
            high.negative
        } else if a >= b {
            a.sub(&b);
            high.negative
        } else {
            b.sub(&a);
            a = b;
            low.negative
        };
        rounded(negative, &a, low.exponent, false, Cut::NearestUp)
    }
    pub(super) fn sub(self, other: Quad) -> Quad {
        self.add(other.negated())
    }
    /// Of the size.
    pub(super) fn sqrt(self) -> Quad {
        let mut size = Big::from_u128(self.bits);
        let up = 200 + self.exponent.rem_euclid(2) as u32;
        size.shl(up);
        let root = size.sqrt();
        let exact = root.mul(&root) == size;
        rounded(false, &root, (self.exponent - i64::from(up)) / 2, !exact, Cut::Nearest)
    }
    /// e to this power, for powers below 2^20.
    pub(super) fn exp(self) -> Quad {
        let x = self.fixed();
        let twos = x.div(ln2_fixed()).round();
        let rest = x.sub(&ln2_fixed().mul(&Fixed::from_i64(twos)));
        rounded(false, &rest.exp().size, twos - i64::from(FRACTION), false, Cut::Nearest)
    }
    /// Natural logarithm of the size, which is not zero.
    pub(super) fn ln(self) -> Quad {
        Quad::of_fixed(&self.ln_fixed())
    }
    /// Logarithm to base two of the size, which is not zero.
    pub(super) fn log2(self) -> Quad {
        if self.bits == Quad::ONE.bits {
            return Quad::of_int(self.exponent + i64::from(BITS) - 1);
        }
        Quad::of_fixed(&self.ln_fixed().div(ln2_fixed()))
    }
    fn ln_fixed(self) -> Fixed {
        // As a number between 3/4 and 3/2 times a power of two, so that nothing is lost beside 1.
        let up = i64::from(self.bits >> (BITS - 2) == 0b11);
        let twos = self.exponent + i64::from(BITS) - 1 + up;
        let close = Quad { negative: false, exponent: self.exponent - twos, ..self };
        close.fixed().ln().add(&ln2_fixed().mul(&Fixed::from_i64(twos)))
    }
    /// The decimal of 34 digits; whole numbers have no more digits than they need.
    pub(super) fn decimal(self) -> Decimal128 {
        if self.is_zero() {
            return pack_exact(self.negative, 0, 0);
        }
        let down = u32::try_from(-self.exponent).unwrap_or(0);
        if (1..BITS).contains(&down) && self.bits.trailing_zeros() >= down {
            return pack_exact(self.negative, self.bits >> down, 0);
        }
        let mut size = Big::from_u128(self.bits);
        let mut places = 0i64;
        let mut more = false;
        if self.exponent >= 0 {
            size.shl(self.exponent as u32);
        } else {
            // 40 digits are enough, and one more is seen by what is left.
            let before =
                ((self.exponent + i64::from(BITS)) as f64 * std::f64::consts::LOG10_2).floor() as i64;
            places = (RESULT_DIGITS - before).max(0);
            size.mul_pow10(places as u32);
            let dropped = self.exponent.unsigned_abs() as u32;
            more = size.has_below(dropped);
            size.shr(dropped);
        }
        decimal_of(self.negative, size, -places, more)
    }
}

/// Digits taken from a number before rounding.
const RESULT_DIGITS: i64 = 37;

/// `size × 10^exponent` with 34 digits at most.
pub(super) fn decimal_of(negative: bool, mut size: Big, mut exponent: i64, mut more: bool) -> Decimal128 {
    let digits = (f64::from(size.bit_len()) * std::f64::consts::LOG10_2).floor() as i64;
    if digits > RESULT_DIGITS {
        let over = digits - RESULT_DIGITS;
        let mut divisor = Big::from_u128(1);
        divisor.mul_pow10(over as u32);
        let (quotient, rest) = size.div_rem(&divisor);
        (size, more, exponent) = (quotient, more || !rest.is_zero(), exponent + over);
    }
    pack(negative, size.top(0).0, exponent, more).0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Decimal128 {
        text.parse().unwrap()
    }
    fn q(text: &str) -> Quad {
        Quad::of(d(text))
    }

    #[test]
    fn a_decimal_keeps_33_digits_on_its_way_through() {
        for text in ["1", "7", "123456789012345678901234567890123", "1E-40", "2.5", "9.99999E+100", "-3.75"] {
            let back = q(text).decimal();
            let near = if d(text).is_zero() { d("0") } else { ((back - d(text)) / d(text)).abs() };
            assert!(near.total_cmp(d("1E-33")).is_lt(), "{text} {back}");
        }
        assert_eq!(q("5").decimal().to_string(), "5");
        assert_eq!(q("0.5").decimal().to_string(), "0.5000000000000000000000000000000000");
    }

    #[test]
    fn arithmetic_is_rounded_once() {
        let third = Quad::ONE.div(q("3"));
        assert_eq!((third.bits >> (BITS - 1), third.bits.count_ones()), (1, 57));
        assert_eq!(third.mul(q("3")), Quad::ONE);
        assert_eq!(third.add(third).add(third), Quad::ONE);
        assert!(third.sub(third).is_zero());
        assert_eq!(
            q("2").sqrt().mul(q("2").sqrt()).decimal().to_string(),
            "2.000000000000000000000000000000000"
        );
        assert_eq!(q("9").sqrt(), q("3"));
        // A distance of half a digit counts.
        let tie = Quad { negative: false, bits: Quad::ONE.bits, exponent: Quad::ONE.exponent - BITS as i64 };
        assert!(Quad::ONE.add(tie).cmp_size(Quad::ONE).is_gt());
        assert_eq!(Quad::ONE.add(tie.halved()), Quad::ONE);
        assert_eq!(Quad::ONE.sub(Quad::ONE.halved()), Quad::ONE.halved());
    }

    #[test]
    fn two_parts_make_the_whole() {
        let (high, low) = Quad::two_parts(true, 1, -1);
        assert!(high.is_negative() && low.is_negative() && low.exponent < high.exponent - 100);
        assert_eq!(high.add(low), q("-0.1"));
        assert!(Quad::two_parts(false, 8, 0).1.is_zero());
        assert_eq!(Quad::two_parts(false, 1, 40).0, Quad::two_parts(false, 10, 39).0);
    }

    #[test]
    fn powers_and_logarithms_undo_each_other() {
        for text in ["0.001", "1", "0.7", "-3", "11000", "-11000"] {
            let back = q(text).exp().ln().sub(q(text)).abs();
            assert!(back.is_zero() || back.cmp_size(q("1E-29")).is_lt(), "{text}");
        }
        assert!(Quad::ONE.ln().is_zero());
    }
}
