//! Two decimals through every operation; text and order stay consistent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_bson::Decimal128;
use pando_bson::decimal128::Rounding;
use std::cmp::Ordering;

fuzz_target!(|input: ([u8; 16], [u8; 16], f64)| {
    let (a, b) = (Decimal128(input.0), Decimal128(input.1));
    let text = a.to_string();
    let back: Decimal128 = text.parse().expect("own text");
    assert_eq!(back.total_cmp(a), Ordering::Equal);
    assert_eq!(back.to_string(), text);
    let _ = (a + b, a - b, a * b, a / b, a % b, -a, a.abs());
    let _ = (a.floor(), a.ceil(), a.trunc(), a.round_to(input.0[0] as i8 as i32, Rounding::HalfEven));
    let _ = (a.to_i64(Rounding::HalfEven), a.to_f64(), a.sqrt());
    let _ = (Decimal128::from_f64(input.2), Decimal128::from_f64_precise(input.2));
    assert_eq!(a.total_cmp(b), b.total_cmp(a).reverse());
    if input.1[0] % 8 == 0 {
        let _ = (a.exp(), a.ln(), a.log10(), a.pow(b));
    }
});
