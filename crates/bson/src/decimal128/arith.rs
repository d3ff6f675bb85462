//! Addition to remainder, rounding to places, and the way to and from integers and doubles.
//!
//! Results are correctly rounded; exact ones keep the exponent the standard prefers (1.20 × 3.0 = 3.600).
//! Each operation has a form that collects [`Flags`]; the operators drop them.

use super::round::{drop_digits, pack, pack_as};
use super::{
    COEFFICIENT_MAX, DIGITS, EXPONENT_MAX, EXPONENT_MIN, Flags, Num, POW10, Rounding, digits, pack_exact,
};
use crate::types::Decimal128;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

/// Digits kept while adding: three more than a result, so that a sticky bit decides every tie.
const ADD_DIGITS: u32 = 37;

macro_rules! operator {
    ($($op:ident $method:ident $with:ident;)*) => {
        $(impl $op for Decimal128 {
            type Output = Decimal128;
            fn $method(self, other: Decimal128) -> Decimal128 {
                self.$with(other, &mut Flags::default())
            }
        })*
    };
}
operator! {
    Add add add_with;
    Sub sub sub_with;
    Mul mul mul_with;
    Div div div_with;
    Rem rem rem_with;
}

impl Neg for Decimal128 {
    type Output = Decimal128;
    /// Also turns the sign of zeros; NaN stays.
    fn neg(mut self) -> Decimal128 {
        if !self.is_nan() {
            self.0[15] ^= 0x80;
        }
        self
    }
}

fn infinity(negative: bool) -> Decimal128 {
    if negative { Decimal128::NEG_INFINITY } else { Decimal128::INFINITY }
}

fn invalid(flags: &mut Flags) -> Decimal128 {
    flags.invalid = true;
    Decimal128::NAN
}

fn packed(negative: bool, c: u128, exponent: i64, more: bool, flags: &mut Flags) -> Decimal128 {
    let (d, raised) = pack(negative, c, exponent, more);
    flags.merge(raised);
    d
}

impl Decimal128 {
    pub fn abs(self) -> Decimal128 {
        if self.is_sign_negative() { -self } else { self }
    }
    /// −1, 0 or 1 by value; NaN has none.
    pub fn signum(self) -> Option<i8> {
        match self.unpack() {
            Num::Nan => None,
            Num::Infinity { negative } => Some(if negative { -1 } else { 1 }),
            Num::Finite { negative, coefficient, .. } => Some(super::signum(negative, coefficient)),
        }
    }

    pub fn sub_with(self, other: Decimal128, flags: &mut Flags) -> Decimal128 {
        self.add_with(-other, flags)
    }

    pub fn add_with(self, other: Decimal128, flags: &mut Flags) -> Decimal128 {
        let (a, b) = match (self.unpack(), other.unpack()) {
            (Num::Nan, _) | (_, Num::Nan) => return Decimal128::NAN,
            (Num::Infinity { negative: x }, Num::Infinity { negative: y }) if x != y => {
                return invalid(flags);
            }
            (Num::Infinity { negative }, _) | (_, Num::Infinity { negative }) => return infinity(negative),
            (
                Num::Finite { negative: na, coefficient: ca, exponent: ea },
                Num::Finite { negative: nb, coefficient: cb, exponent: eb },
            ) => ((na, ca, ea), (nb, cb, eb)),
        };
        // `a` has the larger exponent from here on.
        let ((na, ca, ea), (nb, cb, eb)) = if a.2 >= b.2 { (a, b) } else { (b, a) };
        if ca == 0 {
            let negative = if cb == 0 { na && nb } else { nb };
            return packed(negative, cb, i64::from(eb), false, flags);
        }
        let gap = (ea - eb) as u32;
        let shift = gap.min(ADD_DIGITS - digits(ca));
        let ca = ca * POW10[shift as usize];
        let exponent = i64::from(ea) - i64::from(shift);
        // What of `b` lies below the last digit of `a` is only remembered as "some".
        let (cb, more) = drop_digits(cb, gap - shift, false, Rounding::TowardZero, false);
        if na == nb {
            return packed(na, ca + cb, exponent, more, flags);
        }
        // With something lost, `a` has 37 digits and `b` far fewer, so no cancellation reaches the lost part.
        match ca.cmp(&cb) {
            std::cmp::Ordering::Equal if !more => packed(false, 0, exponent, false, flags),
            std::cmp::Ordering::Less => packed(nb, cb - ca, exponent, more, flags),
            _ => packed(na, ca - cb - u128::from(more), exponent, more, flags),
        }
    }

    pub fn mul_with(self, other: Decimal128, flags: &mut Flags) -> Decimal128 {
        let negative = self.is_sign_negative() != other.is_sign_negative();
        let (ca, ea, cb, eb) = match (self.unpack(), other.unpack()) {
            (Num::Nan, _) | (_, Num::Nan) => return Decimal128::NAN,
            (Num::Infinity { .. }, x) | (x, Num::Infinity { .. }) => {
                let by_zero = matches!(x, Num::Finite { coefficient: 0, .. });
                return if by_zero { invalid(flags) } else { infinity(negative) };
            }
            (
                Num::Finite { coefficient: ca, exponent: ea, .. },
                Num::Finite { coefficient: cb, exponent: eb, .. },
            ) => (ca, ea, cb, eb),
        };
        let exponent = i64::from(ea) + i64::from(eb);
        if let Some(product) = ca.checked_mul(cb) {
            return packed(negative, product, exponent, false, flags);
        }
        let (product, dropped, more) = Wide::product(ca, cb).shorten();
        packed(negative, product, exponent + i64::from(dropped), more, flags)
    }

    pub fn div_with(self, other: Decimal128, flags: &mut Flags) -> Decimal128 {
        let negative = self.is_sign_negative() != other.is_sign_negative();
        let (ca, ea, cb, eb) = match (self.unpack(), other.unpack()) {
            (Num::Nan, _) | (_, Num::Nan) => return Decimal128::NAN,
            (Num::Infinity { .. }, Num::Infinity { .. }) => return invalid(flags),
            (Num::Infinity { .. }, _) => return infinity(negative),
            (_, Num::Infinity { .. }) => {
                return packed(negative, 0, i64::from(EXPONENT_MIN), false, flags);
            }
            (
                Num::Finite { coefficient: ca, exponent: ea, .. },
                Num::Finite { coefficient: cb, exponent: eb, .. },
            ) => (ca, ea, cb, eb),
        };
        let preferred = i64::from(ea) - i64::from(eb);
        match (ca, cb) {
            (0, 0) => return invalid(flags),
            (_, 0) => {
                flags.divide_by_zero = true;
                return infinity(negative);
            }
            (0, _) => return packed(negative, 0, preferred, false, flags),
            _ => {}
        }
        let (mut q, mut rest, mut exponent) = (ca / cb, ca % cb, preferred);
        // Four digits at a time: a remainder below 10^34 leaves room for them.
        while rest != 0 && q <= COEFFICIENT_MAX {
            q = q * 10_000 + rest * 10_000 / cb;
            rest = rest * 10_000 % cb;
            exponent -= 4;
        }
        if rest == 0 {
            while exponent < preferred && q.is_multiple_of(10) {
                q /= 10;
                exponent += 1;
            }
        }
        packed(negative, q, exponent, rest != 0, flags)
    }

    /// What remains after a whole number of `other` is taken away; has the sign of `self`.
    pub fn rem_with(self, other: Decimal128, flags: &mut Flags) -> Decimal128 {
        let (negative, ca, ea, cb, eb) = match (self.unpack(), other.unpack()) {
            (Num::Nan, _) | (_, Num::Nan) => return Decimal128::NAN,
            (Num::Infinity { .. }, _) | (_, Num::Finite { coefficient: 0, .. }) => return invalid(flags),
            (_, Num::Infinity { .. }) => return self,
            (
                Num::Finite { negative, coefficient: ca, exponent: ea },
                Num::Finite { coefficient: cb, exponent: eb, .. },
            ) => (negative, ca, ea, cb, eb),
        };
        let exponent = ea.min(eb);
        let gap = ea.abs_diff(eb);
        let rest = if ea >= eb {
            let mut rest = ca % cb;
            for step in std::iter::repeat_n(4, gap as usize / 4).chain([gap % 4]) {
                rest = rest * POW10[step as usize] % cb;
            }
            rest
        } else {
            // Scaled up, the divisor may outgrow the dividend, which then is the remainder.
            match POW10.get(gap as usize).and_then(|p| cb.checked_mul(*p)) {
                Some(divisor) => ca % divisor,
                None => ca,
            }
        };
        packed(negative, rest, i64::from(exponent), false, flags)
    }

    /// The number with its last digit at `10^exponent`, rounded as told. When that would take more than
    /// 34 digits, the smallest exponent that 34 digits allow is used (as MongoDB's `$round` does).
    pub fn quantize(self, exponent: i32, how: Rounding) -> Decimal128 {
        let Num::Finite { negative, coefficient, exponent: from } = self.unpack() else { return self };
        let wanted = exponent.clamp(EXPONENT_MIN, EXPONENT_MAX);
        if wanted >= from {
            let (c, _) = drop_digits(coefficient, (wanted - from) as u32, false, how, negative);
            return pack_exact(negative, c, wanted);
        }
        let room = if coefficient == 0 { u32::MAX } else { DIGITS - digits(coefficient) };
        let shift = from.abs_diff(wanted).min(room);
        let c = if coefficient == 0 { 0 } else { coefficient * POW10[shift as usize] };
        pack_exact(negative, c, from - shift as i32)
    }

    /// Rounded to `places` behind the point (before it, if negative).
    pub fn round_to(self, places: i32, how: Rounding) -> Decimal128 {
        self.quantize(-places.clamp(-7000, 7000), how)
    }
    pub fn trunc(self) -> Decimal128 {
        self.quantize(0, Rounding::TowardZero)
    }
    pub fn floor(self) -> Decimal128 {
        self.quantize(0, Rounding::Floor)
    }
    pub fn ceil(self) -> Decimal128 {
        self.quantize(0, Rounding::Ceiling)
    }
    /// True for whole numbers.
    pub fn is_integer(self) -> bool {
        match self.unpack() {
            Num::Finite { coefficient, exponent, .. } => super::strip_zeros(coefficient, exponent).1 >= 0,
            _ => false,
        }
    }

    /// As an integer after rounding; `None` for NaN, infinities and what lies outside the range.
    pub fn to_i64(self, how: Rounding) -> Option<i64> {
        let Num::Finite { negative, coefficient, exponent } = self.unpack() else { return None };
        let whole = if exponent >= 0 {
            let power = if coefficient == 0 { &0 } else { POW10.get(exponent as usize)? };
            coefficient.checked_mul(*power)?
        } else {
            drop_digits(coefficient, exponent.unsigned_abs(), false, how, negative).0
        };
        let whole = i128::try_from(whole).ok()?;
        i64::try_from(if negative { -whole } else { whole }).ok()
    }
    /// As [`Decimal128::to_i64`], with the nearest end of the range for what lies outside and 0 for NaN.
    pub fn to_i64_saturating(self, how: Rounding) -> i64 {
        match (self.to_i64(how), self.is_nan(), self.is_sign_negative()) {
            (Some(n), ..) => n,
            (None, true, _) => 0,
            (None, false, true) => i64::MIN,
            (None, false, false) => i64::MAX,
        }
    }

    /// The nearest double; infinite or zero when out of its range.
    pub fn to_f64(self) -> f64 {
        let (negative, coefficient, exponent) = match self.unpack() {
            Num::Nan => return f64::NAN,
            Num::Infinity { negative } => return if negative { f64::NEG_INFINITY } else { f64::INFINITY },
            Num::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        // The standard library's parser rounds correctly from any number of digits.
        let x: f64 = format!("{coefficient}e{exponent}").parse().unwrap_or(f64::NAN);
        if negative { -x } else { x }
    }

    /// A double rounded to 15 significant digits, zeros at the end included: MongoDB's conversion
    /// (`$toDecimal: 0.1` is 0.100000000000000).
    pub fn from_f64(x: f64) -> Decimal128 {
        Decimal128::from_f64_digits(x, 15)
    }
    /// A double rounded to 34 digits, or exact if it has no more: what sums are made with.
    pub fn from_f64_precise(x: f64) -> Decimal128 {
        let d = Decimal128::from_f64_digits(x, DIGITS as usize);
        match d.unpack() {
            Num::Finite { negative, coefficient, exponent } => {
                let (c, e) = super::strip_zeros(coefficient, exponent);
                pack_as(negative, c, i64::from(e), false, Rounding::HalfEven).0
            }
            _ => d,
        }
    }
    fn from_f64_digits(x: f64, count: usize) -> Decimal128 {
        if x.is_nan() {
            return Decimal128::NAN;
        }
        if x.is_infinite() {
            return infinity(x < 0.0);
        }
        if x == 0.0 {
            return pack_exact(x.is_sign_negative(), 0, 0);
        }
        // Formatting gives any number of correctly rounded digits.
        let text = format!("{:.*e}", count - 1, x);
        Decimal128::parse(&text, Rounding::HalfEven).map_or(Decimal128::NAN, |(d, _)| d)
    }
}

impl From<i64> for Decimal128 {
    fn from(n: i64) -> Decimal128 {
        Decimal128::from_i64(n)
    }
}
impl From<i32> for Decimal128 {
    fn from(n: i32) -> Decimal128 {
        Decimal128::from_i64(i64::from(n))
    }
}

/// A product of two coefficients: 256 bits, lowest limb first.
struct Wide([u64; 4]);

impl Wide {
    fn product(a: u128, b: u128) -> Wide {
        let mut out = [0u64; 4];
        for (i, x) in [a as u64, (a >> 64) as u64].into_iter().enumerate() {
            let mut carry = 0u128;
            for (j, y) in [b as u64, (b >> 64) as u64].into_iter().enumerate() {
                let sum = u128::from(x) * u128::from(y) + u128::from(out[i + j]) + carry;
                out[i + j] = sum as u64;
                carry = sum >> 64;
            }
            out[i + 2] = carry as u64;
        }
        Wide(out)
    }
    /// Drops decimal digits until it fits a `u128`; how many, and whether any was not zero.
    ///
    /// Products have at most 68 digits, so at least 35 remain, enough for correct rounding.
    fn shorten(mut self) -> (u128, u32, bool) {
        let (mut dropped, mut more) = (0, false);
        while self.0[2] != 0 || self.0[3] != 0 {
            // Big steps while far above, small ones near the end.
            let power = if self.0[3] != 0 {
                19
            } else if self.0[2] >> 32 != 0 {
                9
            } else {
                1
            };
            let unit = 10u128.pow(power);
            let mut rest = 0u128;
            for limb in self.0.iter_mut().rev() {
                let wide = rest << 64 | u128::from(*limb);
                *limb = (wide / unit) as u64;
                rest = wide % unit;
            }
            dropped += power;
            more |= rest != 0;
        }
        (u128::from(self.0[1]) << 64 | u128::from(self.0[0]), dropped, more)
    }
}
