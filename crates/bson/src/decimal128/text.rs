//! Decimals as text: MongoDB's (that is, the standard's "to scientific string") form.

use super::{Flags, Num, POW10, Rounding, digits, round::pack_as};
use crate::types::Decimal128;
use pando_base::{Error, ErrorCode};
use std::fmt;
use std::str::FromStr;

/// Digits gathered exactly; more than a result can hold, so that rounding happens once.
const GATHERED: u32 = 37;

impl Decimal128 {
    /// Reads `[+-]digits[.digits][E[+-]digits]`, `inf`, `infinity` or `nan` in any case; `None` for anything
    /// else. Digits beyond 34 are rounded; the flags tell.
    pub fn parse(text: &str, how: Rounding) -> Option<(Decimal128, Flags)> {
        let (negative, body) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            all => (false, all),
        };
        if body.eq_ignore_ascii_case(b"nan") {
            let nan = if negative { Decimal128::NEG_NAN } else { Decimal128::NAN };
            return Some((nan, Flags::default()));
        }
        if body.eq_ignore_ascii_case(b"inf") || body.eq_ignore_ascii_case(b"infinity") {
            let inf = if negative { Decimal128::NEG_INFINITY } else { Decimal128::INFINITY };
            return Some((inf, Flags::default()));
        }
        let (mut c, mut exponent, mut more) = (0u128, 0i64, false);
        let (mut seen_digit, mut seen_point) = (false, false);
        let mut rest = body;
        while let Some((b, after)) = rest.split_first() {
            match b {
                b'0'..=b'9' => {
                    seen_digit = true;
                    if c < POW10[GATHERED as usize] {
                        c = c * 10 + u128::from(b - b'0');
                        exponent -= i64::from(seen_point);
                    } else {
                        more |= *b != b'0';
                        exponent += i64::from(!seen_point);
                    }
                }
                b'.' if !seen_point => seen_point = true,
                _ => break,
            }
            rest = after;
        }
        if !seen_digit {
            return None;
        }
        if let Some((e, after)) = rest.split_first() {
            if !e.eq_ignore_ascii_case(&b'e') {
                return None;
            }
            exponent = exponent.checked_add(exponent_of(after)?)?;
        }
        Some(pack_as(negative, c, exponent, more, how))
    }
}

/// A signed run of digits, at least one; absurdly long ones saturate.
fn exponent_of(text: &[u8]) -> Option<i64> {
    let (negative, body) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    if body.is_empty() {
        return None;
    }
    let mut n = 0i64;
    for b in body {
        if !b.is_ascii_digit() {
            return None;
        }
        n = (n * 10 + i64::from(b - b'0')).min(1 << 40);
    }
    Some(if negative { -n } else { n })
}

impl FromStr for Decimal128 {
    type Err = Error;
    /// As MongoDB's conversion from strings: digits beyond 34 are cut off (observed, not rounded), overflow and
    /// underflow are errors.
    fn from_str(text: &str) -> Result<Decimal128, Error> {
        let fail = |why: &str| Error::new(ErrorCode::FailedToParse, why.to_owned());
        match Decimal128::parse(text, Rounding::TowardZero) {
            Some((_, flags)) if flags.overflow => {
                Err(fail("Conversion from string to decimal would overflow"))
            }
            Some((_, flags)) if flags.underflow => {
                Err(fail("Conversion from string to decimal would underflow"))
            }
            Some((d, _)) => Ok(d),
            None if text.is_empty() => Err(fail("Empty string")),
            None => Err(fail("Failed to parse string to decimal")),
        }
    }
}

impl fmt::Display for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, c, exponent) = match self.unpack() {
            Num::Nan => return f.write_str("NaN"),
            Num::Infinity { negative: false } => return f.write_str("Infinity"),
            Num::Infinity { negative: true } => return f.write_str("-Infinity"),
            Num::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        if negative {
            f.write_str("-")?;
        }
        let len = digits(c).max(1);
        let scientific = exponent + len as i32 - 1;
        if exponent > 0 || scientific < -6 {
            let unit = POW10[len as usize - 1];
            write!(f, "{}", c / unit)?;
            if len > 1 {
                write!(f, ".{:0width$}", c % unit, width = len as usize - 1)?;
            }
            return write!(f, "E{scientific:+}");
        }
        match exponent.unsigned_abs() as usize {
            0 => write!(f, "{c}"),
            // The point lies within the digits or at most six zeros before them.
            behind => match POW10.get(behind) {
                Some(unit) => write!(f, "{}.{:0behind$}", c / unit, c % unit),
                None => write!(f, "0.{c:0behind$}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<(Decimal128, Flags)> {
        Decimal128::parse(text, Rounding::HalfEven)
    }

    #[test]
    fn texts_as_mongodb_prints_them() {
        for (text, shown) in [
            ("1E+6144", "1.000000000000000000000000000000000E+6144"),
            ("1E+6111", "1E+6111"),
            ("10E+6111", "1.0E+6112"),
            ("0E+7000", "0E+6111"),
            ("0E-7000", "0E-6176"),
            ("1E-6176", "1E-6176"),
            ("inf", "Infinity"),
            ("-INF", "-Infinity"),
            ("-NaN", "NaN"),
            ("+5", "5"),
            ("1.", "1"),
            (".5", "0.5"),
            ("1e5", "1E+5"),
            ("-0", "-0"),
            ("0.000000", "0.000000"),
            ("0.0000001", "1E-7"),
            ("0E-7", "0E-7"),
            ("1234567E-10", "0.0001234567"),
            ("12E-7", "0.0000012"),
            ("00012.500", "12.500"),
            ("1e0005", "1E+5"),
            ("1234567890123456789012345678901234567890", "1.234567890123456789012345678901234E+39"),
            ("0.12345678901234567890123456789012345678", "0.1234567890123456789012345678901234"),
            ("9999999999999999999999999999999999.5", "9999999999999999999999999999999999"),
        ] {
            assert_eq!(
                text.parse::<Decimal128>().map(|d| d.to_string()).ok().as_deref(),
                Some(shown),
                "{text}"
            );
        }
        for bad in [
            "",
            ".",
            "1e",
            "1e+",
            " 1",
            "1 ",
            "1_0",
            "0x10",
            "--1",
            "1d5",
            "NaN123",
            "1..2",
            "+",
            "1e5.",
            "1E+6145",
            "1E+7000",
            "1E-6177",
            "15E-6177",
            "1e99999999999999999999",
            "1e-99999999999999999999",
            "infinit",
        ] {
            assert!(bad.parse::<Decimal128>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ties_go_to_even_and_flags_tell() {
        for (text, shown) in [
            ("12345678901234567890123456789012345", "1.234567890123456789012345678901234E+34"),
            ("12345678901234567890123456789012335", "1.234567890123456789012345678901234E+34"),
            ("0.00000123456789012345678901234567890123456789", "0.000001234567890123456789012345678901235"),
            ("9999999999999999999999999999999999.5", "1.000000000000000000000000000000000E+34"),
            ("0.00000099999999999999999999999999999999999999", "0.000001000000000000000000000000000000000"),
            ("123456789012345678901234567890123450000001", "1.234567890123456789012345678901235E+41"),
        ] {
            let (d, flags) = parse(text).unwrap();
            assert_eq!(d.to_string(), shown);
            assert!(flags.inexact && !flags.overflow && !flags.underflow);
        }
        let (d, flags) = parse("1234567890E-6180").unwrap();
        assert_eq!(d.to_string(), "1.23457E-6171");
        assert!(flags.underflow && flags.inexact);
        assert_eq!(parse("4E-6177").unwrap().0.to_string(), "0E-6176");
        assert_eq!(parse("1E+9999").unwrap().0, Decimal128::INFINITY);
    }
}
