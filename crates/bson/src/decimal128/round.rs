//! The one place where a result is rounded to 34 digits and fitted into the exponent range.

use super::{COEFFICIENT_MAX, DIGITS, EXPONENT_MAX, EXPONENT_MIN, POW10, digits, pack_exact};
use crate::types::Decimal128;

/// What happened on the way to a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Digits were lost.
    pub inexact: bool,
    /// Too large: the result is infinite.
    pub overflow: bool,
    /// Too small for full precision, and digits were lost.
    pub underflow: bool,
    /// No meaningful result (NaN from numbers): 0/0, inf − inf, root of a negative number.
    pub invalid: bool,
    /// A finite number divided by zero.
    pub divide_by_zero: bool,
}

impl Flags {
    pub fn merge(&mut self, other: Flags) {
        self.inexact |= other.inexact;
        self.overflow |= other.overflow;
        self.underflow |= other.underflow;
        self.invalid |= other.invalid;
        self.divide_by_zero |= other.divide_by_zero;
    }
}

/// How to round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    HalfEven,
    TowardZero,
    /// Away from zero for negative numbers.
    Floor,
    /// Away from zero for positive numbers.
    Ceiling,
}

/// Drops `count` digits of a coefficient; `more` says that the true value lies a little above it.
/// Returns the rounded coefficient and whether anything was lost.
pub(crate) fn drop_digits(c: u128, count: u32, more: bool, how: Rounding, negative: bool) -> (u128, bool) {
    let (kept, rest, half) = match POW10.get(count as usize) {
        Some(unit) => (c / unit, c % unit, unit / 2),
        // All digits go, and what is left is far below one half.
        None => (0, c.min(1), u128::MAX),
    };
    let lost = rest != 0 || more;
    if !lost {
        return (kept, false);
    }
    let up = match how {
        Rounding::TowardZero => false,
        Rounding::Floor => negative,
        Rounding::Ceiling => !negative,
        Rounding::HalfEven if count == 0 => false,
        Rounding::HalfEven => rest > half || (rest == half && (more || kept % 2 == 1)),
    };
    (kept + u128::from(up), true)
}

/// Rounds half-even and packs `±(c + a little, if more) × 10^exponent`.
pub(crate) fn pack(negative: bool, c: u128, exponent: i64, more: bool) -> (Decimal128, Flags) {
    pack_as(negative, c, exponent, more, Rounding::HalfEven)
}

pub(crate) fn pack_as(
    negative: bool,
    c: u128,
    exponent: i64,
    more: bool,
    how: Rounding,
) -> (Decimal128, Flags) {
    let mut flags = Flags::default();
    let over = i64::from(digits(c).saturating_sub(DIGITS));
    let below = i64::from(EXPONENT_MIN) - exponent;
    let drop = over.max(below).max(0);
    let (mut c, lost) = drop_digits(c, drop.min(100) as u32, more, how, negative);
    let mut exponent = exponent + drop;
    if c > COEFFICIENT_MAX {
        // 34 nines and a half: one more digit.
        c /= 10;
        exponent += 1;
    }
    flags.inexact = lost;
    flags.underflow = lost && below > 0 && below >= over;
    if exponent > i64::from(EXPONENT_MAX) {
        let excess = exponent - i64::from(EXPONENT_MAX);
        let room = i64::from(DIGITS - digits(c));
        if c == 0 || excess <= room {
            c *= if c == 0 { 1 } else { POW10[excess as usize] };
            exponent = i64::from(EXPONENT_MAX);
        } else {
            flags.overflow = true;
            flags.inexact = true;
            return (if negative { Decimal128::NEG_INFINITY } else { Decimal128::INFINITY }, flags);
        }
    }
    (pack_exact(negative, c, exponent as i32), flags)
}
