//! Arithmetic against recorded results of another implementation (`data/make_decimal128.py`).

use pando_bson::Decimal128;
use pando_bson::decimal128::Rounding;
use std::cmp::Ordering;

fn dec(s: &str) -> Decimal128 {
    s.parse().unwrap_or_else(|e| panic!("{s}: {e}"))
}

#[test]
fn recorded_results_are_reproduced() {
    let mut failures = Vec::new();
    let mut seen = std::collections::BTreeMap::new();
    for line in include_str!("data/decimal128.txt").lines() {
        let words: Vec<_> = line.split(' ').collect();
        let (op, args, want) = (words[0], &words[1..words.len() - 1], words[words.len() - 1]);
        let a = || dec(args[0]);
        let b = || dec(args[1]);
        let got = match op {
            "add" => a() + b(),
            "sub" => a() - b(),
            "mul" => a() * b(),
            "div" => a() / b(),
            "rem" => a() % b(),
            "cmp" => Decimal128::from_i64(match a().total_cmp(b()) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            }),
            "sqrt" => a().sqrt(),
            "exp" => a().exp(),
            "ln" => a().ln(),
            "log10" => a().log10(),
            "sin" => a().sin(),
            "cos" => a().cos(),
            "tan" => a().tan(),
            "asin" => a().asin(),
            "acos" => a().acos(),
            "atan" => a().atan(),
            "sinh" => a().sinh(),
            "cosh" => a().cosh(),
            "tanh" => a().tanh(),
            "asinh" => a().asinh(),
            "acosh" => a().acosh(),
            "atanh" => a().atanh(),
            "pow" => a().pow(b()),
            "round" => a().round_to(args[1].parse().unwrap(), Rounding::HalfEven),
            "from_f64" => Decimal128::from_f64(args[0].parse().unwrap()),
            other => panic!("{other}"),
        };
        *seen.entry(op).or_insert(0) += 1;
        let same = if op == "from_f64" {
            got.total_cmp(dec(want)) == Ordering::Equal
        } else {
            got.to_string() == want
        };
        if !same {
            failures.push(format!("{line}  got {got}"));
        }
    }
    assert!(seen.len() == 25 && seen.values().all(|n| *n >= 40), "{seen:?}");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Answers of MongoDB 6.0's expressions.
#[test]
fn conversions_and_rounding_as_mongodb_does_them() {
    for (x, text) in [
        (0.1, "0.100000000000000"),
        (1.0, "1.00000000000000"),
        (1e20, "1.00000000000000E+20"),
        (123456789012345.6, "123456789012346"),
        (1234567890123456.7, "1.23456789012346E+15"),
        (1.0 / 3.0, "0.333333333333333"),
        (-0.0, "-0"),
        (5e-324, "4.94065645841247E-324"),
        (100.0, "100.000000000000"),
        (0.30000000000000004, "0.300000000000000"),
        (12345678.9, "12345678.9000000"),
        (f64::NEG_INFINITY, "-Infinity"),
    ] {
        assert_eq!(Decimal128::from_f64(x).to_string(), text);
    }
    assert_eq!(
        (dec("1") + Decimal128::from_f64_precise(0.1)).to_string(),
        "1.100000000000000005551115123125783"
    );
    for (x, places, text) in [
        ("2.5", 0, "2"),
        ("1.5", 4, "1.5000"),
        ("12345", -2, "1.23E+4"),
        ("25", -1, "2E+1"),
        ("1E+40", 2, "1.000000000000000000000000000000000E+40"),
        ("1234567890123456789012345678901234", 5, "1234567890123456789012345678901234"),
        ("-0.5", 0, "-0"),
        ("0.00", 5, "0.00000"),
        ("NaN", 2, "NaN"),
    ] {
        assert_eq!(dec(x).round_to(places, Rounding::HalfEven).to_string(), text);
    }
    assert_eq!(dec("12399").round_to(-2, Rounding::TowardZero).to_string(), "1.23E+4");
    assert_eq!(dec("1E+3").floor().to_string(), "1000");
    assert_eq!(dec("-1.5").floor().to_string(), "-2");
    assert_eq!(dec("-0.5").ceil().to_string(), "-0");
    assert_eq!(dec("1.2").ceil().to_string(), "2");
    assert_eq!((-dec("-0")).to_string(), "0");
    assert_eq!(dec("-1.50").abs().to_string(), "1.50");
}

#[test]
fn integers_and_doubles_out_of_decimals() {
    let to = |s: &str| dec(s).to_i64(Rounding::TowardZero);
    assert_eq!(to("-2.9"), Some(-2));
    assert_eq!(to("9223372036854775807.5"), Some(i64::MAX));
    assert_eq!(to("9223372036854775808"), None);
    assert_eq!(to("-9223372036854775808"), Some(i64::MIN));
    assert_eq!(to("0E+6000"), Some(0));
    assert_eq!(to("1E-6000"), Some(0));
    assert_eq!(to("NaN"), None);
    assert_eq!(dec("2.5").to_i64(Rounding::HalfEven), Some(2));
    assert_eq!(dec("-Infinity").to_i64_saturating(Rounding::HalfEven), i64::MIN);
    for (s, x) in [("0.1", 0.1), ("1E+400", f64::INFINITY), ("-1E-400", -0.0), ("3", 3.0), ("1E-330", 0.0)] {
        assert_eq!(dec(s).to_f64().to_bits(), f64::to_bits(x), "{s}");
    }
}

#[test]
fn powers_of_special_values() {
    let one = "1.000000000000000000000000000000000";
    for (x, y, text) in [
        ("0", "0", one),
        ("NaN", "0", one),
        ("Infinity", "0", one),
        ("1.000", "NaN", one),
        ("1", "1E+30", one),
        ("-1", "3", "-1.000000000000000000000000000000000"),
        ("2", "10", "1024.000000000000000000000000000000"),
        ("2", "-1", "0.5000000000000000000000000000000000"),
        ("10", "-3", "0.001000000000000000000000000000000000"),
        ("-2", "3", "-8.000000000000000000000000000000000"),
        ("-2", "0.5", "NaN"),
        ("4", "0.5", "2.000000000000000000000000000000000"),
        ("Infinity", "-1", "0E-6176"),
        ("-Infinity", "3", "-Infinity"),
        ("0.5", "Infinity", "0E-6176"),
        ("2", "Infinity", "Infinity"),
        ("1E+3000", "3", "Infinity"),
        ("1E+3000", "-3", "0E-6176"),
        ("1.000000000000000000000000000000001", "1E+41", "Infinity"),
        ("-8", "-3", "-0.001953125000000000000000000000000000"),
    ] {
        assert_eq!(dec(x).pow(dec(y)).to_string(), text, "{x} ^ {y}");
    }
    assert_eq!(dec("0").ln(), Decimal128::NEG_INFINITY);
    assert!(dec("-1").ln().is_nan() && dec("-1").sqrt().is_nan() && dec("-1").log10().is_nan());
    assert_eq!(dec("0.001").log10().to_string(), "-3");
    assert_eq!(dec("1E+100").log10().to_string(), "100");
    assert_eq!(dec("0").exp().to_string(), "1");
    assert_eq!(dec("20000").exp(), Decimal128::INFINITY);
    assert_eq!(dec("-Infinity").exp().to_string(), "0");
}
