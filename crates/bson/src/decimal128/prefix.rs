//! The binary prefix of a positive number: `2^exponent × (1 + mantissa/2^56)`, rounded down, with a flag
//! that says whether anything was cut off.
//!
//! Every double has an exact prefix (52 bits of mantissa suffice), so comparing prefixes compares a double
//! with a decimal exactly: equal prefixes and a set flag mean that the decimal is the larger one.

use super::{POW10, big::Big, digits};
use std::cmp::Ordering;

/// Mantissa bits kept after the leading one: eight groups of seven, as the key encoding wants them.
pub(crate) const MANTISSA_BITS: u32 = 56;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Prefix {
    /// Of the leading one bit. For decimals outside the doubles' range only its side is exact:
    /// above 1023 or below −1074.
    pub(crate) exponent: i32,
    pub(crate) mantissa: u64,
    /// The number is larger than the prefix says.
    pub(crate) cut: bool,
}

/// Of a finite double above zero.
pub(crate) fn prefix_of_f64(x: f64) -> Prefix {
    let bits = x.to_bits();
    let biased = (bits >> 52) as i32 & 0x7FF;
    let fraction = bits & ((1 << 52) - 1);
    if biased != 0 {
        return Prefix { exponent: biased - 1023, mantissa: fraction << 4, cut: false };
    }
    let top = 63 - fraction.max(1).leading_zeros();
    Prefix {
        exponent: top as i32 - 1074,
        mantissa: (fraction << (MANTISSA_BITS - top)) & ((1 << MANTISSA_BITS) - 1),
        cut: false,
    }
}

/// Of `coefficient × 10^exponent`, coefficient not zero.
pub(crate) fn prefix_of_decimal(coefficient: u128, exponent: i32) -> Prefix {
    let adjusted = digits(coefficient) as i32 + exponent - 1;
    if adjusted > 308 {
        return Prefix { exponent: i32::MAX, mantissa: 0, cut: true };
    }
    if adjusted < -324 {
        return Prefix { exponent: i32::MIN, mantissa: 0, cut: true };
    }
    if exponent >= 0 {
        if let Some(n) = POW10.get(exponent as usize).and_then(|p| coefficient.checked_mul(*p)) {
            return of_integer(n, false);
        }
        let mut n = Big::from_u128(coefficient);
        n.mul_pow10(exponent as u32);
        return of_big(&n);
    }
    // Seven more bits of remainder must fit beside a divisor of up to 10^36 < 2^120.
    match POW10.get(exponent.unsigned_abs() as usize) {
        Some(divisor) if exponent >= -36 => of_fraction(coefficient, *divisor),
        _ => of_big_fraction(coefficient, exponent.unsigned_abs()),
    }
}

fn of_integer(n: u128, rest: bool) -> Prefix {
    let top = 127 - n.leading_zeros();
    let (mantissa, lost) = if top > MANTISSA_BITS {
        let cut = top - MANTISSA_BITS;
        ((n >> cut) as u64, n & ((1 << cut) - 1) != 0)
    } else {
        ((n << (MANTISSA_BITS - top)) as u64, false)
    };
    Prefix { exponent: top as i32, mantissa: mantissa & ((1 << MANTISSA_BITS) - 1), cut: lost || rest }
}

fn of_big(n: &Big) -> Prefix {
    let top = n.bit_len() - 1;
    let (mantissa, lost) = n.top(top - MANTISSA_BITS);
    Prefix { exponent: top as i32, mantissa: mantissa as u64 & ((1 << MANTISSA_BITS) - 1), cut: lost }
}

/// `n / divisor` by long division, up to seven bits at a time.
fn of_fraction(n: u128, divisor: u128) -> Prefix {
    let (whole, mut rest) = (n / divisor, n % divisor);
    if whole >> MANTISSA_BITS > 0 {
        return of_integer(whole, rest != 0);
    }
    let (exponent, mut mantissa, mut missing);
    if whole == 0 {
        let mut shift = rest.leading_zeros() - divisor.leading_zeros();
        if rest << shift < divisor {
            shift += 1;
        }
        exponent = -(shift as i32);
        rest = (rest << shift) - divisor;
        mantissa = 0;
        missing = MANTISSA_BITS;
    } else {
        let top = 127 - whole.leading_zeros();
        exponent = top as i32;
        mantissa = whole as u64 & ((1 << top) - 1);
        missing = MANTISSA_BITS - top;
    }
    while missing > 0 && rest != 0 {
        let step = missing.min(7);
        rest <<= step;
        mantissa = mantissa << step | (rest / divisor) as u64;
        rest %= divisor;
        missing -= step;
    }
    Prefix { exponent, mantissa: mantissa << missing, cut: rest != 0 }
}

fn of_big_fraction(n: u128, power: u32) -> Prefix {
    let mut rest = Big::from_u128(n);
    let mut divisor = Big::from_u128(1);
    divisor.mul_pow10(power);
    // Align so that the quotient starts with its leading one.
    let mut exponent = rest.bit_len() as i32 - divisor.bit_len() as i32;
    if exponent >= 0 {
        divisor.shl(exponent as u32);
    } else {
        rest.shl(exponent.unsigned_abs());
    }
    if rest.cmp(&divisor) == Ordering::Less {
        rest.shl(1);
        exponent -= 1;
    }
    rest.sub(&divisor);
    let mut mantissa = 0u64;
    for _ in 0..MANTISSA_BITS {
        rest.shl(1);
        mantissa <<= 1;
        if rest.cmp(&divisor) != Ordering::Less {
            rest.sub(&divisor);
            mantissa |= 1;
        }
    }
    Prefix { exponent, mantissa, cut: !rest.is_zero() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dyadic_decimals_have_the_double_s_prefix() {
        for (x, c, e) in [
            (1.0, 1, 0),
            (0.5, 5, -1),
            (0.5, 5_000_000_000_000_000_000_000_000_000_000_000, -34),
            (2.5, 250, -2),
            (1024.0, 1024, 0),
            (1e22, 1, 22),
            (9_007_199_254_740_992.0, 9_007_199_254_740_992, 0),
            (0.0009765625, 9_765_625, -10),
        ] {
            assert_eq!(prefix_of_decimal(c, e), prefix_of_f64(x), "{x}");
        }
    }

    #[test]
    fn doubles_sit_between_their_neighbouring_decimals() {
        // 0.1 as a double is 0.1000000000000000055511151231257827…
        let tenth = prefix_of_f64(0.1);
        assert!(prefix_of_decimal(1, -1) < tenth);
        assert!(prefix_of_decimal(1_000_000_000_000_000_055_511_151_231_257_827, -34) < tenth);
        assert!(prefix_of_decimal(1_000_000_000_000_000_055_511_151_231_257_828, -34) > tenth);
        // the largest double is 1.7976931348623157081…e308
        let max = prefix_of_f64(f64::MAX);
        assert!(prefix_of_decimal(17_976_931_348_623_157_082, 289) > max);
        assert!(prefix_of_decimal(17_976_931_348_623_157_081, 289) < max);
        // the smallest is 4.9406564584124654417…e-324
        let min = prefix_of_f64(5e-324);
        assert!(prefix_of_decimal(49_406_564_584_124_654_417, -343) < min);
        assert!(prefix_of_decimal(49_406_564_584_124_654_418, -343) > min);
        assert!(prefix_of_decimal(1, 6000) > max && prefix_of_decimal(1, -6000) < min);
    }

    #[test]
    fn fast_and_big_division_agree() {
        for c in [1u128, 3, 19_990, 123_456_789_012_345_678, super::super::COEFFICIENT_MAX] {
            for e in 1..=36u32 {
                assert_eq!(of_fraction(c, POW10[e as usize]), of_big_fraction(c, e), "{c}e-{e}");
            }
        }
    }
}
