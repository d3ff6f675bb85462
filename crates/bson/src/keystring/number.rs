//! Numbers of all four types in one order-preserving encoding of their exact value.
//!
//! ```text
//! NaN < −inf < −large < −int8 … −int1 < −small < 0 < small < int1 … int8 < large < inf      class bytes
//! int    1 ≤ |x| < 2^63    whole part × 2 + (has fraction), in as few bytes as it needs; then the fraction
//! small  |x| < 1           2 bytes binary exponent, then the mantissa after the leading one
//! large  |x| ≥ 2^63        likewise
//! ```
//!
//! Fractions and mantissas are 56 bits in groups of seven, each with a flag "more follows", so 2.5 takes three
//! bytes. Doubles always end within them. A decimal that does not is cut there (rounded down), the last flag
//! stays set, and its decimal digits follow: two to a byte, again with a flag. Since a cut decimal is above
//! every double with its prefix, and below the next, the order is exact. Decimals beyond the doubles' range
//! have exponent codes of their own. Negative numbers have all bytes after the class inverted.

use super::invert;
use super::read::Reader;
use super::type_bits::{BitReader, DECIMAL, DOUBLE, INT32, TypeBits};
use crate::decimal128::{
    EXPONENT_MIN, Num, POW10, digits, pack_exact, prefix_of_decimal, prefix_of_f64, strip_zeros,
};
use crate::raw::Value;
use crate::types::Decimal128;

const NAN: u8 = 0x1E;
const NEG_INFINITY: u8 = 0x1F;
const NEG_LARGE: u8 = 0x20;
/// One byte of whole part; `NEG_INT1 - (n - 1)` for n bytes.
const NEG_INT1: u8 = 0x28;
const NEG_SMALL: u8 = 0x29;
const ZERO: u8 = 0x2A;
const SMALL: u8 = 0x2B;
/// `INT1 + (n - 1)` for n bytes.
const INT1: u8 = 0x2C;
const LARGE: u8 = 0x34;
const INFINITY: u8 = 0x35;
pub(super) const FIRST: u8 = NAN;
pub(super) const LAST: u8 = INFINITY;

const FRACTION_BITS: u32 = 56;
const FRACTION_MASK: u64 = (1 << FRACTION_BITS) - 1;
const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;

/// Exponent codes of `small`: 0 is "below every double", the rest is the binary exponent plus this.
const SMALL_BIAS: i32 = 1075;
/// Exponent code of `large` for "above every double".
const HUGE: u16 = 0xFFFF;
/// Added to a decimal exponent to make it positive.
const DECIMAL_BIAS: i32 = 8192;

/// A magnitude as the encoding sees it.
enum Magnitude {
    /// Whole part in 1…2^63−1, 56-bit fraction, cut or not.
    Int(u64, u64, bool),
    /// Binary exponent, mantissa bits, cut or not.
    Scaled(i32, u64, bool),
}

#[inline]
pub(super) fn put_i64(buf: &mut Vec<u8>, n: i64) {
    match n {
        0 => buf.push(ZERO),
        i64::MIN => put_magnitude(buf, true, Magnitude::Scaled(63, 0, false), (0, 0)),
        _ => put_whole(buf, n < 0, n.unsigned_abs() << 1),
    }
}

/// Class byte and whole part; `v` is twice the part, plus one if a fraction follows.
#[inline]
fn put_whole(buf: &mut Vec<u8>, negative: bool, v: u64) {
    let len = (64 - v.leading_zeros()).div_ceil(8) as u8;
    let (head, v) = if negative { (NEG_INT1 - (len - 1), !v) } else { (INT1 + (len - 1), v) };
    buf.push(head);
    buf.extend_from_slice(&v.to_be_bytes()[8 - usize::from(len)..]);
}

pub(super) fn put_f64(buf: &mut Vec<u8>, bits: &mut TypeBits, x: f64) {
    bits.push(DOUBLE, 2);
    let size = x.abs();
    if x.is_nan() {
        buf.push(NAN);
    } else if size == 0.0 {
        bits.push(u16::from(x.is_sign_negative()), 1);
        buf.push(ZERO);
    } else if size.is_infinite() {
        buf.push(if x < 0.0 { NEG_INFINITY } else { INFINITY });
    } else if (1.0..TWO_POW_63).contains(&size) {
        let whole = size as u64;
        // Exact: at most 52 bits of fraction, scaled by a power of two.
        let fraction = ((size - whole as f64) * (1u64 << FRACTION_BITS) as f64) as u64;
        put_magnitude(buf, x < 0.0, Magnitude::Int(whole, fraction, false), (0, 0));
    } else {
        let p = prefix_of_f64(size);
        put_magnitude(buf, x < 0.0, Magnitude::Scaled(p.exponent, p.mantissa, false), (0, 0));
    }
}

pub(super) fn put_decimal(buf: &mut Vec<u8>, bits: &mut TypeBits, x: Decimal128) {
    bits.push(DECIMAL, 2);
    let (negative, coefficient, exponent) = match x.unpack() {
        Num::Nan => return buf.push(NAN),
        Num::Infinity { negative } => return buf.push(if negative { NEG_INFINITY } else { INFINITY }),
        Num::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
    };
    bits.push((exponent - EXPONENT_MIN) as u16, 14);
    if coefficient == 0 {
        bits.push(u16::from(negative), 1);
        return buf.push(ZERO);
    }
    let (c, e) = strip_zeros(coefficient, exponent);
    put_magnitude(buf, negative, magnitude_of(c, e), (c, e));
}

/// `c × 10^e`, c without trailing zeros.
fn magnitude_of(c: u128, e: i32) -> Magnitude {
    let power = POW10.get(e.unsigned_abs() as usize);
    let whole = match power {
        Some(p) if e >= 0 => c.checked_mul(*p),
        Some(p) => Some(c / p),
        None => None,
    };
    if let (Some(whole @ 1..=0x7FFF_FFFF_FFFF_FFFF), Some(p)) = (whole, power) {
        if e >= 0 {
            return Magnitude::Int(whole as u64, 0, false);
        }
        // A whole part leaves at most 33 digits behind the point, so the remainder has room for seven bits.
        let (mut rest, mut fraction) = (c % p, 0u64);
        for _ in 0..FRACTION_BITS / 7 {
            rest <<= 7;
            fraction = fraction << 7 | (rest / p) as u64;
            rest %= p;
        }
        return Magnitude::Int(whole as u64, fraction, rest != 0);
    }
    let p = prefix_of_decimal(c, e);
    Magnitude::Scaled(p.exponent, p.mantissa, p.cut)
}

/// `decimal` is used only when the magnitude was cut.
fn put_magnitude(buf: &mut Vec<u8>, negative: bool, m: Magnitude, decimal: (u128, i32)) {
    let start = buf.len() + 1;
    match m {
        Magnitude::Int(whole, fraction, cut) => {
            let has_fraction = fraction != 0 || cut;
            put_whole(buf, negative, whole << 1 | u64::from(has_fraction));
            let start = buf.len();
            if has_fraction {
                put_groups(buf, fraction, cut);
            }
            if cut {
                put_digits(buf, decimal.0);
            }
            if negative {
                invert(&mut buf[start..]);
            }
            return;
        }
        Magnitude::Scaled(exponent, mantissa, cut) => {
            let small = exponent < 0;
            buf.push(match (negative, small) {
                (false, false) => LARGE,
                (false, true) => SMALL,
                (true, false) => NEG_LARGE,
                (true, true) => NEG_SMALL,
            });
            let in_range = (-1074..=1023).contains(&exponent);
            let code = match (in_range, small) {
                (true, true) => (exponent + SMALL_BIAS) as u16,
                (true, false) => exponent as u16,
                (false, true) => 0,
                (false, false) => HUGE,
            };
            buf.extend_from_slice(&code.to_be_bytes());
            if in_range {
                put_groups(buf, mantissa, cut);
            }
            if cut || !in_range {
                let (c, e) = decimal;
                let leading = digits(c) as i32 - 1 + e + DECIMAL_BIAS;
                buf.extend_from_slice(&(leading as u16).to_be_bytes());
                put_digits(buf, c);
            }
        }
    }
    if negative {
        invert(&mut buf[start..]);
    }
}

fn put_groups(buf: &mut Vec<u8>, mut bits: u64, cut: bool) {
    for _ in 0..FRACTION_BITS / 7 {
        let group = (bits >> (FRACTION_BITS - 7)) as u8;
        bits = bits << 7 & FRACTION_MASK;
        let more = bits != 0 || cut;
        buf.push(group << 1 | u8::from(more));
        if !more {
            return;
        }
    }
}

/// The digits from the first on, two to a byte.
fn put_digits(buf: &mut Vec<u8>, c: u128) {
    let count = digits(c);
    let pairs = count.div_ceil(2);
    let mut rest = if count % 2 == 1 { c * 10 } else { c };
    for i in (0..pairs).rev() {
        let unit = POW10[2 * i as usize];
        let pair = (rest / unit) as u8;
        rest %= unit;
        buf.push(pair << 1 | u8::from(rest != 0));
        if rest == 0 {
            return;
        }
    }
}

/// What the payload of a number says.
enum Read {
    Nan,
    Infinity(bool),
    Zero,
    /// `±m × 2^shift`
    Binary(bool, u128, i32),
    /// `±c × 10^e`
    Decimal(bool, u128, i32),
}

/// Reads the number whose class byte was `head`.
pub(super) fn take(r: &mut Reader<'_>, head: u8, bits: &mut BitReader<'_>) -> Option<Value<'static>> {
    let read = payload(r, head)?;
    Some(match bits.take(2) {
        DOUBLE => Value::Double(to_f64(read, bits)?),
        DECIMAL => Value::Decimal128(to_decimal(read, bits)?),
        int => {
            let n = to_i64(read)?;
            if int == INT32 { Value::Int32(i32::try_from(n).ok()?) } else { Value::Int64(n) }
        }
    })
}

/// Moves past the number whose class byte was `head`.
pub(super) fn skip(r: &mut Reader<'_>, head: u8) -> Option<()> {
    payload(r, head).map(|_| ())
}

fn payload(r: &mut Reader<'_>, head: u8) -> Option<Read> {
    let negative = head < ZERO;
    if negative && head > NEG_INFINITY {
        r.flip();
    }
    let read = match head {
        NAN => Read::Nan,
        NEG_INFINITY | INFINITY => Read::Infinity(negative),
        ZERO => Read::Zero,
        NEG_SMALL | SMALL | NEG_LARGE | LARGE => scaled(r, negative, head == SMALL || head == NEG_SMALL)?,
        _ => {
            let len = if negative { NEG_INT1 - head } else { head - INT1 } + 1;
            let mut v = 0u64;
            for _ in 0..len {
                v = v << 8 | u64::from(r.byte()?);
            }
            int(r, negative, v)?
        }
    };
    if negative && head > NEG_INFINITY {
        r.flip();
    }
    Some(read)
}

fn int(r: &mut Reader<'_>, negative: bool, v: u64) -> Option<Read> {
    let whole = u128::from(v >> 1);
    if v & 1 == 0 {
        return Some(Read::Binary(negative, whole, 0));
    }
    let (fraction, cut) = take_groups(r)?;
    if cut {
        let (c, e) = take_digits(r, digits(whole) as i32 - 1)?;
        return Some(Read::Decimal(negative, c, e));
    }
    Some(Read::Binary(negative, whole << FRACTION_BITS | u128::from(fraction), -(FRACTION_BITS as i32)))
}

fn scaled(r: &mut Reader<'_>, negative: bool, small: bool) -> Option<Read> {
    let code = u16::from_be_bytes([r.byte()?, r.byte()?]);
    let in_range = if small { code != 0 } else { code != HUGE };
    if in_range {
        let exponent = if small { i32::from(code) - SMALL_BIAS } else { i32::from(code) };
        let (mantissa, cut) = take_groups(r)?;
        if !cut {
            let m = 1u128 << FRACTION_BITS | u128::from(mantissa);
            return Some(Read::Binary(negative, m, exponent - FRACTION_BITS as i32));
        }
    }
    let leading = i32::from(u16::from_be_bytes([r.byte()?, r.byte()?])) - DECIMAL_BIAS;
    let (c, e) = take_digits(r, leading)?;
    Some(Read::Decimal(negative, c, e))
}

fn take_groups(r: &mut Reader<'_>) -> Option<(u64, bool)> {
    let mut bits = 0;
    for i in 1..=FRACTION_BITS / 7 {
        let b = r.byte()?;
        bits |= u64::from(b >> 1) << (FRACTION_BITS - 7 * i);
        if b & 1 == 0 {
            return Some((bits, false));
        }
    }
    Some((bits, true))
}

/// Digits and the exponent of the last one, given the exponent of the first.
fn take_digits(r: &mut Reader<'_>, leading: i32) -> Option<(u128, i32)> {
    let mut c = 0u128;
    for pairs in 1..=17 {
        let b = r.byte()?;
        c = c * 100 + u128::from(b >> 1);
        if b & 1 == 0 {
            // The first pair is never below ten, so `c` has all its 2 × pairs digits.
            return Some((c, leading + 1 - 2 * pairs));
        }
    }
    None
}

fn to_i64(read: Read) -> Option<i64> {
    match read {
        Read::Zero => Some(0),
        Read::Binary(negative, m, shift) => {
            let m =
                if shift >= 0 { m.checked_shl(shift as u32)? } else { exact_shr(m, shift.unsigned_abs())? };
            let m = i128::try_from(m).ok()?;
            i64::try_from(if negative { -m } else { m }).ok()
        }
        _ => None,
    }
}

fn exact_shr(m: u128, by: u32) -> Option<u128> {
    (by < 128 && m.trailing_zeros() >= by).then(|| m >> by)
}

fn to_f64(read: Read, bits: &mut BitReader<'_>) -> Option<f64> {
    Some(match read {
        Read::Nan => f64::NAN,
        Read::Infinity(negative) => {
            if negative {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        Read::Zero => {
            if bits.take(1) == 1 {
                -0.0
            } else {
                0.0
            }
        }
        Read::Decimal(..) => return None,
        Read::Binary(negative, m, shift) => {
            let top = 127 - m.checked_ilog2().map(|_| m.leading_zeros())?;
            let exponent = top as i32 + shift;
            // 53 bits with the leading one on top.
            let mantissa = if top > 52 { exact_shr(m, top - 52)? } else { m << (52 - top) } as u64;
            let magnitude = match exponent {
                1024.. => return None,
                -1022.. => ((exponent + 1023) as u64) << 52 | mantissa & ((1 << 52) - 1),
                _ => {
                    let by = u32::try_from(-1022 - exponent).ok()?;
                    exact_shr(u128::from(mantissa), by)? as u64
                }
            };
            f64::from_bits(u64::from(negative) << 63 | magnitude)
        }
    })
}

fn to_decimal(read: Read, bits: &mut BitReader<'_>) -> Option<Decimal128> {
    let (negative, c, exponent) = match read {
        Read::Nan => return Some(Decimal128::NAN),
        Read::Infinity(true) => return Some(Decimal128::NEG_INFINITY),
        Read::Infinity(false) => return Some(Decimal128::INFINITY),
        other => {
            let exponent = i32::from(bits.take(14)) + EXPONENT_MIN;
            match other {
                Read::Zero => (bits.take(1) == 1, 0, exponent),
                Read::Decimal(negative, c, e) => (negative, rescale(c, e - exponent)?, exponent),
                Read::Binary(negative, m, shift) => (negative, unscale(m, shift, exponent)?, exponent),
                Read::Nan | Read::Infinity(_) => return None,
            }
        }
    };
    let fits = c <= crate::decimal128::COEFFICIENT_MAX && exponent <= crate::decimal128::EXPONENT_MAX;
    fits.then(|| pack_exact(negative, c, exponent))
}

/// `c × 10^by`, exactly.
fn rescale(c: u128, by: i32) -> Option<u128> {
    let power = *POW10.get(by.unsigned_abs() as usize)?;
    if by >= 0 { c.checked_mul(power) } else { c.is_multiple_of(power).then(|| c / power) }
}

/// The coefficient of `m × 2^shift` at a decimal exponent, exactly.
fn unscale(m: u128, shift: i32, exponent: i32) -> Option<u128> {
    if m == 0 {
        return None;
    }
    let odd = m >> m.trailing_zeros();
    let shift = shift + m.trailing_zeros() as i32;
    let fives = 5u128.checked_pow(exponent.unsigned_abs())?;
    let scaled =
        if exponent >= 0 { odd.is_multiple_of(fives).then(|| odd / fives)? } else { odd.checked_mul(fives)? };
    let twos = u32::try_from(shift - exponent).ok()?;
    (twos < 128 && scaled.leading_zeros() >= twos).then(|| scaled << twos)
}
