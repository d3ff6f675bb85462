//! Roots, exponentials and logarithms, correctly rounded to 34 digits (but for ties that no test has met).
//!
//! The work is done in fixed point with [`FRACTION`] binary places, far more than the 113 bits of a result, so
//! that cancellation near 1 and large exponents still leave guard bits.

use super::big::Big;
use super::round::pack;
use super::{COEFFICIENT_MAX, DIGITS, EXPONENT_MIN, Flags, Num, digits, pack_exact, strip_zeros};
use crate::types::Decimal128;
use std::cmp::Ordering;

/// Binary places of fixed-point numbers.
const FRACTION: u32 = 448;
/// Squarings at the end of an exponential; the argument is divided by two as often.
const HALVINGS: u32 = 24;
/// Decimal digits taken from a fixed-point result before rounding.
const RESULT_DIGITS: i32 = 37;
/// |x| above which e^x leaves the range for certain.
const EXP_LIMIT: i32 = 15_000;

/// A signed fixed-point number.
#[derive(Clone)]
struct Fixed {
    negative: bool,
    size: Big,
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
    fn from_decimal(negative: bool, coefficient: u128, exponent: i32) -> Fixed {
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
    fn from_i64(n: i64) -> Fixed {
        Fixed::from_decimal(n < 0, u128::from(n.unsigned_abs()), 0)
    }
    fn add(&self, other: &Fixed) -> Fixed {
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
    fn sub(&self, other: &Fixed) -> Fixed {
        self.add(&Fixed { negative: !other.negative, size: other.size.clone() })
    }
    fn mul(&self, other: &Fixed) -> Fixed {
        Fixed { negative: self.negative != other.negative, size: mul(&self.size, &other.size) }
    }
    fn div(&self, other: &Fixed) -> Fixed {
        Fixed { negative: self.negative != other.negative, size: div(&self.size, &other.size) }
    }
    /// The nearest integer, for numbers known to be small.
    fn round(&self) -> i64 {
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

/// ln of `c × 10^e`, c not zero.
fn ln_parts(c: u128, e: i32) -> Fixed {
    // Near 1, so that nothing is lost to the power of ten: m in [0.316…, 3.16…).
    let leading = digits(c) as i32 - 1;
    let first_digits = c as f64 / 10f64.powi(leading);
    let power = leading + i32::from(first_digits > 3.162_277);
    let m = Fixed::from_decimal(false, c, -power);
    let close = (c as f64 / 10f64.powi(power)).ln();
    // y += 2 (m − e^y) / (m + e^y) triples the right digits each time: 50, 150, 450 bits.
    let scaled = (close * (1u64 << 60) as f64) as i64;
    let mut y = Fixed { negative: scaled < 0, size: Big::from_u128(u128::from(scaled.unsigned_abs())) };
    y.size.shl(FRACTION - 60);
    for _ in 0..3 {
        let at = Fixed { negative: false, size: exp_small(&y) };
        let mut step = m.sub(&at).div(&m.add(&at));
        step.size.shl(1);
        y = y.add(&step);
    }
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

    /// e to this power.
    pub fn exp(self) -> Decimal128 {
        let (negative, c, e) = match self.unpack() {
            Num::Nan => return self,
            Num::Infinity { negative: true } => return Decimal128::ZERO,
            Num::Infinity { negative: false } => return self,
            Num::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        if c == 0 {
            return Decimal128::from_i64(1);
        }
        exp_of(negative, c, e)
    }

    /// Natural logarithm; −infinity for zero, NaN below.
    pub fn ln(self) -> Decimal128 {
        match self.positive() {
            Err(special) => special,
            Ok((1, 0)) => Decimal128::ZERO,
            Ok((c, e)) => ln_parts(c, e).pack(0, &mut Flags::default()),
        }
    }

    /// Logarithm to base ten, exact for powers of ten.
    pub fn log10(self) -> Decimal128 {
        match self.positive() {
            Err(special) => special,
            Ok((1, e)) => Decimal128::from_i64(i64::from(e)),
            Ok((c, e)) => {
                let ln10 = Fixed { negative: false, size: ln10().clone() };
                ln_parts(c, e).div(&ln10).pack(0, &mut Flags::default())
            }
        }
    }

    /// Coefficient without trailing zeros and exponent of a finite number above zero; otherwise its logarithm.
    fn positive(self) -> Result<(u128, i32), Decimal128> {
        match self.unpack() {
            Num::Nan | Num::Infinity { negative: true } => Err(Decimal128::NAN),
            Num::Infinity { negative: false } => Err(self),
            Num::Finite { coefficient: 0, .. } => Err(Decimal128::NEG_INFINITY),
            Num::Finite { negative: true, .. } => Err(Decimal128::NAN),
            Num::Finite { coefficient, exponent, .. } => Ok(strip_zeros(coefficient, exponent)),
        }
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
                return signed(if up { zero } else { Decimal128::INFINITY });
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
            return signed(if ln.negative != up { Decimal128::INFINITY } else { zero });
        }
        let product = ln.mul(&Fixed::from_decimal(!up, cy, ey));
        signed(pad(exp_fixed(&product)))
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
fn pad(d: Decimal128) -> Decimal128 {
    d.quantize(EXPONENT_MIN, super::Rounding::HalfEven)
}

fn exp_of(negative: bool, c: u128, e: i32) -> Decimal128 {
    let leading = digits(c) as i32 + e;
    if leading > 6 {
        return out_of_range(negative);
    }
    if leading < -40 {
        // 1 ± less than any digit shows.
        let nudge = if negative {
            pack(false, 10u128.pow(36) - 1, -36, true)
        } else {
            pack(false, 10u128.pow(36), -36, true)
        };
        return nudge.0;
    }
    exp_fixed(&Fixed::from_decimal(negative, c, e))
}

fn exp_fixed(x: &Fixed) -> Decimal128 {
    if x.size.bit_len() > FRACTION + 20 || x.round().unsigned_abs() > EXP_LIMIT as u64 {
        return out_of_range(x.negative);
    }
    let (m, k) = exp_parts(x);
    Fixed { negative: false, size: m }.pack(k, &mut Flags::default())
}

fn out_of_range(negative: bool) -> Decimal128 {
    if negative { pack_exact(false, 0, EXPONENT_MIN) } else { Decimal128::INFINITY }
}
