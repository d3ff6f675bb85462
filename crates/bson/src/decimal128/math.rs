//! Numbers in fixed point, for functions that are computed to their last digit; roots and powers of decimals, correctly
//! rounded to 34 digits (but for ties that no test has met).
//!
//! The work is done in fixed point with [`FRACTION`] binary places, far more than the 113 bits of a result, so
//! that cancellation near 1 and large exponents still leave guard bits.

use super::big::Big;
use super::round::pack;
use super::{COEFFICIENT_MAX, DIGITS, EXPONENT_MIN, Flags, Num, digits, pack_exact, strip_zeros};
use crate::types::Decimal128;
use std::cmp::Ordering;

/// Binary places of fixed-point numbers.
pub(super) const FRACTION: u32 = 448;
/// Squarings at the end of an exponential; the argument is divided by two as often.
const HALVINGS: u32 = 24;
/// Decimal digits taken from a fixed-point result before rounding.
const RESULT_DIGITS: i32 = 37;
/// |x| above which e^x leaves the range for certain.
const EXP_LIMIT: i32 = 15_000;

/// Powers of two up to which a logarithm is found at once.
const LN_AT_ONCE: i64 = 8;
/// Digits in front of the point up to which [`NEAR_BITS`] of π are enough.
const NEAR_DIGITS: i32 = 40;
/// Bits of π for arguments of 40 digits, and for any.
const NEAR_BITS: u32 = 704;
const FAR_BITS: u32 = 21_120;

/// A signed fixed-point number.
#[derive(Clone)]
pub(super) struct Fixed {
    pub(super) negative: bool,
    pub(super) size: Big,
}

fn fixed_one() -> Big {
    let mut b = Big::from_u128(1);
    b.shl(FRACTION);
    b
}

fn mul(a: &Big, b: &Big) -> Big {
    let mut out = a.mul(b);
    out.shr(FRACTION);
    out
}

fn div(a: &Big, b: &Big) -> Big {
    let mut a = a.clone();
    a.shl(FRACTION);
    a.div_rem(b).0
}

impl Fixed {
    pub(super) fn from_decimal(negative: bool, coefficient: u128, exponent: i32) -> Fixed {
        let mut size = Big::from_u128(coefficient);
        size.shl(FRACTION);
        if exponent >= 0 {
            size.mul_pow10(exponent as u32);
        } else {
            let mut divisor = Big::from_u128(1);
            divisor.mul_pow10(exponent.unsigned_abs());
            size = size.div_rem(&divisor).0;
        }
        Fixed { negative, size }
    }
    pub(super) fn from_i64(n: i64) -> Fixed {
        Fixed::from_decimal(n < 0, u128::from(n.unsigned_abs()), 0)
    }
    pub(super) fn add(&self, other: &Fixed) -> Fixed {
        let (mut size, negative) = (self.size.clone(), self.negative);
        if self.negative == other.negative {
            size.add(&other.size);
            return Fixed { negative, size };
        }
        if self.size >= other.size {
            size.sub(&other.size);
            return Fixed { negative, size };
        }
        let mut size = other.size.clone();
        size.sub(&self.size);
        Fixed { negative: other.negative, size }
    }
    pub(super) fn sub(&self, other: &Fixed) -> Fixed {
        self.add(&Fixed { negative: !other.negative, size: other.size.clone() })
    }
    pub(super) fn mul(&self, other: &Fixed) -> Fixed {
        Fixed { negative: self.negative != other.negative, size: mul(&self.size, &other.size) }
    }
    pub(super) fn div(&self, other: &Fixed) -> Fixed {
        Fixed { negative: self.negative != other.negative, size: div(&self.size, &other.size) }
    }
    pub(super) fn sqrt(&self) -> Fixed {
        let mut wide = self.size.clone();
        wide.shl(FRACTION);
        Fixed { negative: false, size: wide.sqrt() }
    }
    /// The same size with this sign.
    pub(super) fn signed(self, negative: bool) -> Fixed {
        Fixed { negative, ..self }
    }
    pub(super) fn halved(mut self) -> Fixed {
        self.size.shr(1);
        self
    }
    /// The natural logarithm of a number above zero.
    pub(super) fn ln(&self) -> Fixed {
        let twos = i64::from(self.size.bit_len()) - i64::from(FRACTION);
        if twos.abs() > LN_AT_ONCE {
            let mut close = self.size.clone();
            if twos > 0 {
                close.shr(twos as u32)
            } else {
                close.shl(twos.unsigned_abs() as u32)
            }
            let close = Fixed { negative: false, size: close };
            return close.ln().add(&ln2_fixed().mul(&Fixed::from_i64(twos)));
        }
        let drop = self.size.bit_len().saturating_sub(100);
        let close = self.size.top(drop).0 as f64 * 2f64.powi(drop as i32 - FRACTION as i32);
        refine(self, close.ln())
    }
    /// e to the power of a number up to a few.
    pub(super) fn exp(&self) -> Fixed {
        Fixed { negative: false, size: exp_small(self) }
    }
    /// The nearest integer, for numbers known to be small.
    pub(super) fn round(&self) -> i64 {
        let mut half = Big::from_u128(1);
        half.shl(FRACTION - 1);
        half.add(&self.size);
        let n = half.top(FRACTION).0 as i64;
        if self.negative { -n } else { n }
    }
    /// Times `10^shift`, rounded to 34 digits; the number is never exact.
    fn pack(&self, shift: i64, flags: &mut Flags) -> Decimal128 {
        // About how many digits stand before the point (negative: zeros behind it).
        let bits = self.size.bit_len() as i64 - i64::from(FRACTION);
        let before = (bits as f64 * std::f64::consts::LOG10_2).ceil() as i64;
        let places = i64::from(RESULT_DIGITS) - before;
        let mut scaled = self.size.clone();
        if places >= 0 {
            scaled.mul_pow10(places as u32);
        } else {
            let mut divisor = Big::from_u128(1);
            divisor.mul_pow10(places.unsigned_abs() as u32);
            scaled = scaled.div_rem(&divisor).0;
        }
        let (c, _) = scaled.top(FRACTION);
        let (d, raised) = pack(self.negative, c, shift - places, true);
        flags.merge(raised);
        d
    }
}

/// ln 10, from atanh series: ln 10 = 3 ln 2 + ln 1.25, each 2 atanh((x−1)/(x+1)).
fn ln10() -> &'static Big {
    static LN10: std::sync::OnceLock<Big> = std::sync::OnceLock::new();
    LN10.get_or_init(|| {
        // Σ 1 / ((2k+1) n^(2k+1))
        let atanh_inverse = |n: u64| {
            let mut power = fixed_one();
            power.div_small(n);
            let (mut sum, mut k) = (power.clone(), 1);
            while !power.is_zero() {
                power.div_small(n * n);
                k += 2;
                let mut term = power.clone();
                term.div_small(k);
                sum.add(&term);
            }
            sum
        };
        let mut out = atanh_inverse(3);
        out.mul_small(6);
        let mut rest = atanh_inverse(9);
        rest.mul_small(2);
        out.add(&rest);
        out
    })
}

/// e^x for |x| up to a few.
fn exp_small(x: &Fixed) -> Big {
    let mut r = x.size.clone();
    r.shr(HALVINGS);
    // Σ r^k / k!, for r below 2^-20.
    let (mut sum, mut term, mut k) = (fixed_one(), fixed_one(), 0u64);
    let mut minus = Big::from_u128(0);
    loop {
        k += 1;
        term = mul(&term, &r);
        term.div_small(k);
        if term.is_zero() {
            break;
        }
        if x.negative && k % 2 == 1 { minus.add(&term) } else { sum.add(&term) }
    }
    sum.sub(&minus);
    for _ in 0..HALVINGS {
        sum = mul(&sum, &sum);
    }
    sum
}

/// e^x as `m × 10^k` with m near 1.
fn exp_parts(x: &Fixed) -> (Big, i64) {
    let ln10 = Fixed { negative: false, size: ln10().clone() };
    let k = x.div(&ln10).round();
    (exp_small(&x.sub(&ln10.mul(&Fixed::from_i64(k)))), k)
}

/// The logarithm of `m`, from what is close to it.
fn refine(m: &Fixed, close: f64) -> Fixed {
    // y += 2 (m − e^y) / (m + e^y) triples the right digits each time: 50, 150, 450 bits.
    let scaled = (close * (1u64 << 56) as f64) as i64;
    let mut y = Fixed { negative: scaled < 0, size: Big::from_u128(u128::from(scaled.unsigned_abs())) };
    y.size.shl(FRACTION - 56);
    for _ in 0..3 {
        let at = Fixed { negative: false, size: exp_small(&y) };
        let mut step = m.sub(&at).div(&m.add(&at));
        step.size.shl(1);
        y = y.add(&step);
    }
    y
}

pub(super) fn one() -> Fixed {
    Fixed { negative: false, size: fixed_one() }
}

pub(super) fn ln2_fixed() -> &'static Fixed {
    static LN2: std::sync::OnceLock<Fixed> = std::sync::OnceLock::new();
    LN2.get_or_init(|| Fixed::from_i64(2).ln())
}

pub(super) fn ln10_fixed() -> Fixed {
    Fixed { negative: false, size: ln10().clone() }
}

/// π/2 with this many binary places: π/4 = 4 atan 1/5 − atan 1/239.
fn half_pi_bits(bits: u32) -> Big {
    let atan_inverse = |n: u64| {
        let mut power = Big::from_u128(1);
        power.shl(bits);
        power.div_small(n);
        let (mut plus, mut minus, mut k) = (power.clone(), Big::from_u128(0), 1);
        loop {
            power.div_small(n * n);
            k += 2;
            let mut term = power.clone();
            term.div_small(k);
            if term.is_zero() {
                break;
            }
            if k % 4 == 3 { minus.add(&term) } else { plus.add(&term) }
        }
        plus.sub(&minus);
        plus
    };
    let mut out = atan_inverse(5);
    out.mul_small(8);
    let mut rest = atan_inverse(239);
    rest.mul_small(2);
    out.sub(&rest);
    out
}

fn half_pi_near() -> &'static Big {
    static NEAR: std::sync::OnceLock<Big> = std::sync::OnceLock::new();
    NEAR.get_or_init(|| half_pi_bits(NEAR_BITS))
}

pub(super) fn half_pi() -> Fixed {
    let mut size = half_pi_near().clone();
    size.shr(NEAR_BITS - FRACTION);
    Fixed { negative: false, size }
}

/// `c × 10^e` in quarters of a circle, and what is left as a share of a quarter: at most a half, on either side.
pub(super) fn reduced(c: u128, e: i32) -> (u64, Fixed) {
    static FAR: std::sync::OnceLock<Big> = std::sync::OnceLock::new();
    let (quarter, bits) = match digits(c) as i32 + e <= NEAR_DIGITS {
        true => (half_pi_near(), NEAR_BITS),
        false => (FAR.get_or_init(|| half_pi_bits(FAR_BITS)), FAR_BITS),
    };
    let mut x = Big::from_u128(c);
    x.shl(bits);
    if e >= 0 {
        x.mul_pow10(e as u32);
    } else {
        let mut divisor = Big::from_u128(1);
        divisor.mul_pow10(e.unsigned_abs());
        x = x.div_rem(&divisor).0;
    }
    let (turns, mut rest) = x.div_rem(quarter);
    let mut twice = rest.clone();
    twice.shl(1);
    let past = twice > *quarter;
    if past {
        let mut missing = quarter.clone();
        missing.sub(&rest);
        rest = missing;
    }
    rest.shl(FRACTION);
    let share = rest.div_rem(quarter).0;
    ((turns.low() + u64::from(past)) & 3, Fixed { negative: past, size: share })
}

/// ln of `c × 10^e`, c not zero.
fn ln_parts(c: u128, e: i32) -> Fixed {
    // Near 1, so that nothing is lost to the power of ten: m in [0.316…, 3.16…).
    let leading = digits(c) as i32 - 1;
    let first_digits = c as f64 / 10f64.powi(leading);
    let power = leading + i32::from(first_digits > 3.162_277);
    let m = Fixed::from_decimal(false, c, -power);
    let y = refine(&m, (c as f64 / 10f64.powi(power)).ln());
    let ln10 = Fixed { negative: false, size: ln10().clone() };
    y.add(&ln10.mul(&Fixed::from_i64(i64::from(e) + i64::from(power))))
}

impl Decimal128 {
    /// Square root; NaN below zero. Exact roots are exact.
    pub fn sqrt(self) -> Decimal128 {
        let (negative, c, e) = match self.unpack() {
            Num::Nan | Num::Infinity { negative: true } => return Decimal128::NAN,
            Num::Infinity { negative: false } => return self,
            Num::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        let preferred = e.div_euclid(2);
        if c == 0 {
            return pack_exact(negative, 0, preferred);
        }
        if negative {
            return Decimal128::NAN;
        }
        // An even exponent, and digits enough for 36 in the root.
        let mut shift = 72 - digits(c) as i32;
        shift += (e - shift).rem_euclid(2);
        let mut scaled = Big::from_u128(c);
        scaled.mul_pow10(shift as u32);
        let root = scaled.sqrt();
        let exact = root.mul(&root) == scaled;
        let (mut r, mut at) = (root.top(0).0, (e - shift) / 2);
        while exact && at < preferred && r.is_multiple_of(10) {
            r /= 10;
            at += 1;
        }
        pack(false, r, i64::from(at), !exact).0
    }

    /// This number to the power of `y`, always with 34 digits (as MongoDB's `$pow` gives it): 2^3 is
    /// 8.000000000000000000000000000000000. Anything to the power of 0, and 1 to any power, is 1; a negative
    /// base needs a whole `y`.
    pub fn pow(self, y: Decimal128) -> Decimal128 {
        let one = pack_exact(false, 10u128.pow(DIGITS - 1), 1 - DIGITS as i32);
        let zero = pack_exact(false, 0, EXPONENT_MIN);
        if y.is_zero() || self.total_cmp(Decimal128::from_i64(1)) == Ordering::Equal {
            return one;
        }
        if self.is_nan() || y.is_nan() {
            return Decimal128::NAN;
        }
        let odd = y.is_integer() && !(y % Decimal128::from_i64(2)).is_zero();
        let negative = self.is_sign_negative() && odd;
        let signed = |d: Decimal128| if negative { -d } else { d };
        let up = !y.is_sign_negative();
        let (c, e) = match self.unpack() {
            Num::Finite { coefficient: 0, .. } => {
                return if up { zero } else { Decimal128::INFINITY };
            }
            Num::Finite { coefficient, exponent, .. } => strip_zeros(coefficient, exponent),
            _ => return signed(if up { Decimal128::INFINITY } else { zero }),
        };
        let Num::Finite { coefficient: cy, exponent: ey, .. } = y.unpack() else {
            // To an infinite power: by the side of 1.
            return match self.abs().total_cmp(Decimal128::from_i64(1)) {
                Ordering::Equal => one,
                by => {
                    if (by == Ordering::Greater) == up {
                        Decimal128::INFINITY
                    } else {
                        zero
                    }
                }
            };
        };
        if self.is_sign_negative() && !y.is_integer() {
            return Decimal128::NAN;
        }
        if (c, e) == (1, 0) {
            return signed(one);
        }
        let (cy, ey) = strip_zeros(cy, ey);
        if let Some(exact) = small_power(c, e, cy, ey, up) {
            return signed(pad(exact));
        }
        let ln = ln_parts(c, e);
        // |ln x| ≥ 10^-34 for every x but 1, so beyond 10^40 the range is left for certain.
        if digits(cy) as i32 + ey > 40 {
            return if ln.negative != up { Decimal128::INFINITY } else { zero };
        }
        let product = ln.mul(&Fixed::from_decimal(!up, cy, ey));
        let size = pad(exp_fixed(&product));
        // What leaves the range has lost its sign.
        if size.is_finite() && !size.is_zero() { signed(size) } else { size }
    }
}

/// Whole powers whose digits fit a word: exact, so that ties round as they should.
fn small_power(c: u128, e: i32, cy: u128, ey: i32, up: bool) -> Option<Decimal128> {
    let cy = cy.checked_mul(10u128.checked_pow(u32::try_from(ey).ok()?)?).filter(|n| *n <= 127)?;
    let power = c.checked_pow(cy as u32)?;
    let exponent = i64::from(e) * cy as i64;
    if up {
        return Some(pack(false, power, exponent, false).0);
    }
    // One rounding only: the reciprocal of something exact.
    let base = (power <= COEFFICIENT_MAX).then(|| pack_exact(false, power, 0))?;
    let Num::Finite { coefficient, exponent: at, .. } = (Decimal128::from_i64(1) / base).unpack() else {
        return None;
    };
    let fits = (-6100..6000).contains(&(i64::from(at) - exponent));
    fits.then(|| pack_exact(false, coefficient, (i64::from(at) - exponent) as i32))
}

/// As many digits as fit.
pub(super) fn pad(d: Decimal128) -> Decimal128 {
    d.quantize(EXPONENT_MIN, super::Rounding::HalfEven)
}

pub(super) fn exp_fixed(x: &Fixed) -> Decimal128 {
    if x.size.bit_len() > FRACTION + 20 || x.round().unsigned_abs() > EXP_LIMIT as u64 {
        return out_of_range(x.negative);
    }
    let (m, k) = exp_parts(x);
    Fixed { negative: false, size: m }.pack(k, &mut Flags::default())
}

pub(super) fn out_of_range(negative: bool) -> Decimal128 {
    if negative { pack_exact(false, 0, EXPONENT_MIN) } else { Decimal128::INFINITY }
}
