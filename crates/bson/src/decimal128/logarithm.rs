//! Exponentials and logarithms of decimals, with the steps of [`super::quad`].

use super::math::{exp_fixed, ln2_fixed, ln10_fixed, out_of_range};
use super::quad::Quad;
use super::{Num, digits};
use crate::types::Decimal128;

/// |x| above which e^x leaves the range for certain, as digits in front of the point and as a number.
const EXP_DIGITS_MAX: i32 = 5;
const EXP_MAX: i64 = 15_000;
/// Powers of e beyond this are put together from two.
const EXP_ONCE: i64 = 11_000;
/// Powers of ten beyond which a number is looked at as that power and a smaller number.
const LN_ONCE: i32 = 4464;

/// e^±11000.
pub(super) fn exp_once(down: bool) -> Decimal128 {
    exp_fixed(&super::math::Fixed::from_i64(if down { -EXP_ONCE } else { EXP_ONCE }))
}

/// Where a power of e is beyond what is taken at once: the rest, and whether it is beyond below.
pub(super) fn beyond_once(power: Quad) -> Option<(Quad, bool)> {
    let once = Quad::of_int(EXP_ONCE);
    power.cmp_size(once).is_gt().then(|| (power.sub(once.signed(power.is_negative())), power.is_negative()))
}

impl Decimal128 {
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
        if digits(c) as i32 + e > EXP_DIGITS_MAX
            || self.abs().total_cmp(Decimal128::from_i64(EXP_MAX)).is_gt()
        {
            return out_of_range(negative);
        }
        let (high, low) = Quad::two_parts(negative, c, e);
        // e^(high + low) is about e^high (1 + low).
        let power = |high: Quad| {
            let at = high.exp();
            at.add(at.mul(low)).decimal()
        };
        match beyond_once(high) {
            Some((rest, down)) => power(rest) * exp_once(down),
            None => power(high),
        }
    }

    /// Natural logarithm; −infinity for zero, NaN below.
    pub fn ln(self) -> Decimal128 {
        self.logarithm(None)
    }
    /// Logarithm to base ten.
    pub fn log10(self) -> Decimal128 {
        self.logarithm(Some(Base::Ten))
    }
    /// Logarithm to base two.
    pub fn log2(self) -> Decimal128 {
        self.logarithm(Some(Base::Two))
    }

    fn logarithm(self, base: Option<Base>) -> Decimal128 {
        match self.unpack() {
            Num::Nan | Num::Infinity { negative: true } => return Decimal128::NAN,
            Num::Infinity { negative: false } => return self,
            Num::Finite { coefficient: 0, .. } => return Decimal128::NEG_INFINITY,
            Num::Finite { negative: true, .. } => return Decimal128::NAN,
            Num::Finite { .. } => {}
        }
        let far = Decimal128::power_of_ten(LN_ONCE);
        let near = Decimal128::power_of_ten(-LN_ONCE);
        let (x, moved) = if self.total_cmp(far).is_gt() {
            (self * near, i64::from(LN_ONCE))
        } else if self.total_cmp(near).is_lt() {
            (self * far, -i64::from(LN_ONCE))
        } else {
            (self, 0)
        };
        let at = Quad::of(x);
        let (mut ln, mut log2) = (at.ln(), at.log2());
        let beside_one = at.sub(Quad::ONE);
        if moved == 0 && beside_one.cmp_size(Quad::ONE.halved()).is_lt() {
            // What was lost when the number was rounded shows beside 1: the distance of the decimal is exact.
            let exact = Quad::of(self - Decimal128::from_i64(1));
            let lost = beside_one.sub(exact).div(at);
            ln = ln.sub(lost);
            log2 = log2.sub(lost.div(Quad::of_fixed(ln2_fixed())));
        }
        let shifted = |n: i64| Quad::of_int(n);
        match base {
            None if moved == 0 => ln,
            None => {
                let tens = ln10_fixed().mul(&super::math::Fixed::from_i64(moved));
                ln.add(Quad::of_fixed(&tens))
            }
            Some(Base::Ten) => {
                let log = ln.mul(Quad::of_fixed(&super::math::one().div(&ln10_fixed())));
                if moved == 0 { log } else { log.add(shifted(moved)) }
            }
            Some(Base::Two) => {
                let log = log2;
                let twos = ln10_fixed().div(ln2_fixed()).mul(&super::math::Fixed::from_i64(moved));
                if moved == 0 { log } else { log.add(Quad::of_fixed(&twos)) }
            }
        }
        .decimal()
    }

    fn power_of_ten(exponent: i32) -> Decimal128 {
        super::pack_exact(false, 1, exponent)
    }
}

#[derive(Clone, Copy)]
enum Base {
    Ten,
    Two,
}
