//! IEEE 754-2008 decimal128 in BID encoding: up to 34 digits, exponents −6176 to 6111, half-even rounding.
//!
//! A number is unpacked once into [`Num`] (sign, `u128` coefficient, exponent), worked on exactly, and
//! packed again by a single rounding step (module `round`). Non-canonical encodings read as zero, as the standard
//! and MongoDB have it. [`prefix`] is the bridge to binary floating point: it makes comparison with doubles
//! exact and feeds the key encoding.

mod arith;
mod big;
mod logarithm;
mod math;
mod prefix;
mod quad;
mod round;
mod text;
mod trig;

pub(crate) use prefix::{prefix_of_decimal, prefix_of_f64};
pub use round::{Flags, Rounding};

use crate::types::Decimal128;
use std::cmp::Ordering;

/// Decimal digits of a coefficient.
pub const DIGITS: u32 = 34;
/// Largest coefficient: 34 nines.
pub const COEFFICIENT_MAX: u128 = 10u128.pow(DIGITS) - 1;
/// Smallest and largest exponent of the coefficient's last digit.
pub const EXPONENT_MIN: i32 = -6176;
pub const EXPONENT_MAX: i32 = 6111;
const BIAS: i32 = 6176;

/// 10^0 to 10^38: all powers of ten that fit a `u128`.
pub(crate) const POW10: [u128; 39] = {
    let mut table = [1u128; 39];
    let mut i = 1;
    while i < table.len() {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// A decimal taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Num {
    Nan,
    Infinity {
        negative: bool,
    },
    /// `±coefficient × 10^exponent`; zero keeps its sign and exponent.
    Finite {
        negative: bool,
        coefficient: u128,
        exponent: i32,
    },
}

impl Decimal128 {
    pub const ZERO: Decimal128 = pack_exact(false, 0, 0);
    pub const NAN: Decimal128 = from_bits(0x1F << 122);
    /// Shown like any NaN; some operators look at its sign.
    pub const NEG_NAN: Decimal128 = from_bits(0x3F << 122);
    pub const INFINITY: Decimal128 = from_bits(0x1E << 122);
    pub const NEG_INFINITY: Decimal128 = from_bits(0x3E << 122);

    /// Takes the encoding apart.
    pub const fn unpack(self) -> Num {
        let bits = u128::from_le_bytes(self.0);
        let negative = bits >> 127 != 0;
        if (bits >> 125) & 0b11 == 0b11 {
            return match (bits >> 122) & 0b11111 {
                0b11110 => Num::Infinity { negative },
                0b11111 => Num::Nan,
                // The other layout, whose coefficients all exceed 34 digits: zero.
                _ => {
                    let exponent = ((bits >> 111) & 0x3FFF) as i32 - BIAS;
                    Num::Finite { negative, coefficient: 0, exponent }
                }
            };
        }
        let exponent = ((bits >> 113) & 0x3FFF) as i32 - BIAS;
        let coefficient = bits & ((1 << 113) - 1);
        let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
        Num::Finite { negative, coefficient, exponent }
    }
    pub const fn is_nan(self) -> bool {
        matches!(self.unpack(), Num::Nan)
    }
    pub const fn is_infinite(self) -> bool {
        matches!(self.unpack(), Num::Infinity { .. })
    }
    pub const fn is_finite(self) -> bool {
        matches!(self.unpack(), Num::Finite { .. })
    }
    /// The sign bit, also of zeros and NaN.
    pub const fn is_sign_negative(self) -> bool {
        self.0[15] & 0x80 != 0
    }
    /// True for zeros of either sign and any exponent.
    pub const fn is_zero(&self) -> bool {
        matches!(self.unpack(), Num::Finite { coefficient: 0, .. })
    }
    pub const fn from_i64(n: i64) -> Decimal128 {
        pack_exact(n < 0, n.unsigned_abs() as u128, 0)
    }
    /// MongoDB's order: by value, −0 = 0, NaN equal to itself and below everything.
    pub fn total_cmp(self, other: Decimal128) -> Ordering {
        cmp_num(self.unpack(), other.unpack())
    }
}

const fn from_bits(bits: u128) -> Decimal128 {
    Decimal128(bits.to_le_bytes())
}

/// Packs parts that need no rounding: at most 34 digits, exponent in range.
pub(crate) const fn pack_exact(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
    debug_assert!(coefficient <= COEFFICIENT_MAX);
    debug_assert!(EXPONENT_MIN <= exponent && exponent <= EXPONENT_MAX);
    from_bits((negative as u128) << 127 | ((exponent + BIAS) as u128) << 113 | coefficient)
}

/// Number of decimal digits; 0 has none.
pub(crate) const fn digits(n: u128) -> u32 {
    match n.checked_ilog10() {
        Some(log) => log + 1,
        None => 0,
    }
}

/// The same value with no trailing zero in the coefficient (zero becomes 0 × 10^0).
pub(crate) const fn strip_zeros(mut coefficient: u128, mut exponent: i32) -> (u128, i32) {
    if coefficient == 0 {
        return (0, 0);
    }
    while coefficient.is_multiple_of(100_000_000) {
        coefficient /= 100_000_000;
        exponent += 8;
    }
    while coefficient.is_multiple_of(10) {
        coefficient /= 10;
        exponent += 1;
    }
    (coefficient, exponent)
}

fn cmp_num(a: Num, b: Num) -> Ordering {
    // −2 NaN, −1 −inf, 0 finite, 1 +inf
    fn rank(n: Num) -> i8 {
        match n {
            Num::Nan => -2,
            Num::Infinity { negative: true } => -1,
            Num::Finite { .. } => 0,
            Num::Infinity { negative: false } => 1,
        }
    }
    let (
        Num::Finite { negative: na, coefficient: ca, exponent: ea },
        Num::Finite { negative: nb, coefficient: cb, exponent: eb },
    ) = (a, b)
    else {
        return rank(a).cmp(&rank(b));
    };
    match (signum(na, ca), signum(nb, cb)) {
        (1, 1) => cmp_magnitude(ca, ea, cb, eb),
        (-1, -1) => cmp_magnitude(cb, eb, ca, ea),
        (x, y) => x.cmp(&y),
    }
}

const fn signum(negative: bool, coefficient: u128) -> i8 {
    match (coefficient, negative) {
        (0, _) => 0,
        (_, true) => -1,
        (_, false) => 1,
    }
}

/// Compares `ca × 10^ea` with `cb × 10^eb`, both coefficients non-zero.
pub(crate) fn cmp_magnitude(ca: u128, ea: i32, cb: u128, eb: i32) -> Ordering {
    if ea == eb {
        return ca.cmp(&cb);
    }
    let (ta, tb) = (digits(ca) as i32 + ea, digits(cb) as i32 + eb);
    if ta != tb {
        return ta.cmp(&tb);
    }
    // Same leading position, so the exponents differ by less than 34 and scaling stays within 34 digits.
    if ea > eb {
        (ca * POW10[(ea - eb) as usize]).cmp(&cb)
    } else {
        ca.cmp(&(cb * POW10[(eb - ea) as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
        pack_exact(negative, coefficient, exponent)
    }

    #[test]
    fn parts_survive_packing() {
        for (n, c, e) in
            [(false, 0, 0), (true, 0, EXPONENT_MIN), (false, COEFFICIENT_MAX, EXPONENT_MAX), (true, 1, -7)]
        {
            assert_eq!(d(n, c, e).unpack(), Num::Finite { negative: n, coefficient: c, exponent: e });
        }
        assert!(Decimal128::NAN.is_nan());
        assert_eq!(Decimal128::INFINITY.unpack(), Num::Infinity { negative: false });
        assert_eq!(Decimal128::NEG_INFINITY.unpack(), Num::Infinity { negative: true });
    }

    #[test]
    fn too_large_coefficients_read_as_zero() {
        let over = from_bits(((6176u128) << 113) | (COEFFICIENT_MAX + 1));
        assert!(over.is_zero());
        let second_layout = from_bits(0b11u128 << 125);
        assert!(second_layout.is_zero());
    }

    #[test]
    fn order_is_by_value() {
        let ascending = [
            Decimal128::NAN,
            Decimal128::NEG_INFINITY,
            d(true, 1, 6111),
            d(true, 15, -1),
            d(true, 1, 0),
            d(false, 0, 5),
            d(false, 1, EXPONENT_MIN),
            d(false, 99, -2),
            d(false, 1, 0),
            d(false, 10001, -4),
            d(false, 1, 33),
            Decimal128::INFINITY,
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(a.total_cmp(*b), i.cmp(&j), "{i} {j}");
            }
        }
        assert_eq!(d(false, 100, -2).total_cmp(d(false, 1, 0)), Ordering::Equal);
        assert_eq!(d(true, 0, 3).total_cmp(d(false, 0, -3)), Ordering::Equal);
    }
}
