//! Extended JSON: what is written reads back the same; wrappers are strict; rubbish is refused.

mod random;

use pando_base::{ErrorCode, limits};
use pando_bson::extjson::*;
use pando_bson::{Bson, doc};
use random::Random;

#[test]
fn canonical_keeps_every_value_of_every_type() {
    let mut r = Random::new(7);
    for _ in 0..20_000 {
        let d = r.document(3);
        let raw = d.to_raw();
        let text = to_canonical(&raw);
        let back = parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        // Decimals and doubles compare as text: NaN payloads do not survive, cohorts do.
        assert_eq!(to_canonical(&back.to_raw()), text, "{d:?}");
        let relaxed = to_relaxed(&raw);
        assert!(parse(&relaxed).is_ok(), "{relaxed}");
    }
}

#[test]
fn both_forms_as_the_specification_prints_them() {
    let mut d = doc! { "i": 5, "l": 6i64, "d": 1.0, "s": "a\"\n\u{1}é", "t": true };
    d.push("date", Bson::DateTime(1_356_351_330_501));
    d.push("old", Bson::DateTime(-1));
    d.push("nan", f64::NAN);
    d.push("dec", Bson::Decimal128("1.50".parse().unwrap()));
    d.push("n", Bson::Null);
    let raw = d.to_raw();
    assert_eq!(
        to_canonical(&raw),
        r#"{"i":{"$numberInt":"5"},"l":{"$numberLong":"6"},"d":{"$numberDouble":"1.0"},"s":"a\"\n\u0001é","t":true,"date":{"$date":{"$numberLong":"1356351330501"}},"old":{"$date":{"$numberLong":"-1"}},"nan":{"$numberDouble":"NaN"},"dec":{"$numberDecimal":"1.50"},"n":null}"#
    );
    assert_eq!(
        to_relaxed(&raw),
        r#"{"i":5,"l":6,"d":1.0,"s":"a\"\n\u0001é","t":true,"date":{"$date":"2012-12-24T12:15:30.501Z"},"old":{"$date":{"$numberLong":"-1"}},"nan":{"$numberDouble":"NaN"},"dec":{"$numberDecimal":"1.50"},"n":null}"#
    );
}

#[test]
fn numbers_take_the_smallest_type() {
    let d =
        parse(r#"{"a": 1, "b": 2147483648, "c": 1.0, "d": 1e3, "e": 9223372036854775808, "f": -0}"#).unwrap();
    assert_eq!(d.get("a"), Some(&Bson::Int32(1)));
    assert_eq!(d.get("b"), Some(&Bson::Int64(2_147_483_648)));
    assert_eq!(d.get("c"), Some(&Bson::Double(1.0)));
    assert_eq!(d.get("d"), Some(&Bson::Double(1000.0)));
    assert_eq!(d.get("e"), Some(&Bson::Double(9_223_372_036_854_775_808.0)));
    assert_eq!(d.get("f"), Some(&Bson::Int32(0)));
}

#[test]
fn query_operators_and_references_are_plain_documents() {
    for text in [
        r#"{"x":{"$type":"string"}}"#,
        r#"{"$regex":"a","$options":"i"}"#,
        r#"{"r":{"$ref":"c","$id":5,"$db":"d"}}"#,
        r#"{"$and":[{"a":{"$gt":1}}]}"#,
    ] {
        assert_eq!(to_relaxed(&parse(text).unwrap().to_raw()), text);
    }
}

#[test]
fn malformed_wrappers_and_syntax_are_errors() {
    for bad in [
        r#"{"a":{"$oid":42}}"#,
        r#"{"a":{"$oid":"56e1fc72e0c917e9c4714161","x":true}}"#,
        r#"{"a":{"$numberInt":42}}"#,
        r#"{"a":{"$numberInt":"2147483648"}}"#,
        r#"{"a":{"$numberDouble":"inf"}}"#,
        r#"{"a":{"$numberDecimal":"x"}}"#,
        r#"{"a":{"$numberDecimal":"12345678901234567890123456789012345"}}"#,
        r#"{"a":{"$binary":{"base64":"//8="}}}"#,
        r#"{"a":{"$binary":{"base64":"//8=","subType":0}}}"#,
        r#"{"a":{"$uuid":"73ff-d26444b-34c6-990e8e-7d1dfc035d4"}}"#,
        r#"{"a":{"$code":"","x":true}}"#,
        r#"{"a":{"$code":"","$scope":42}}"#,
        r#"{"a":{"$scope":{}}}"#,
        r#"{"a":{"$timestamp":{"t":1,"i":2,"x":3}}}"#,
        r#"{"a":{"$timestamp":{"t":-1,"i":2}}}"#,
        r#"{"a":{"$date":42}}"#,
        r#"{"a":{"$minKey":true}}"#,
        r#"{"a":{"$regularExpression":{"pattern":"a\u0000","options":""}}}"#,
        "{\"a\\u0000\":1}",
        r#"{"a":1,}"#,
        r#"{"a":01}"#,
        r#"{"a":1.}"#,
        r#"{"a":+1}"#,
        r#"{"a":"\ud800"}"#,
        r#"{"a":"\ud800\u0041"}"#,
        "{\"a\":\"\n\"}",
        r#"{"a":tru}"#,
        r#"{"a":1} x"#,
        r#"{"a":1"#,
        "[1]",
        "",
    ] {
        assert_eq!(parse(bad).unwrap_err().code, ErrorCode::FailedToParse, "{bad}");
    }
    let old = doc_with_binary(2, &[2, 0, 0, 0, 255, 255]);
    assert_eq!(to_canonical(&old), r#"{"x":{"$binary":{"base64":"//8=","subType":"02"}}}"#);
    assert_eq!(parse(&to_canonical(&old)).unwrap().to_raw(), old);
    assert_eq!(parse(r#"{"a":"\ud83d\ude00\/"}"#).unwrap().get("a"), Some(&Bson::from("😀/")));
}

fn doc_with_binary(subtype: u8, bytes: &[u8]) -> pando_bson::DocBuf {
    let mut b = pando_bson::DocBuilder::new();
    b.binary("x", subtype, bytes);
    b.finish()
}

#[test]
fn nesting_is_bounded() {
    let nested = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    assert!(parse_value(&nested(limits::BSON_DEPTH_MAX)).is_ok());
    assert_eq!(parse_value(&nested(1_000_000)).unwrap_err().code, ErrorCode::Overflow);
}

#[test]
fn streams_are_read_value_by_value() {
    let text = "{\"a\":1}\n{\"a\":2} [3]";
    let (mut at, mut seen) = (0, 0);
    while at < text.len() {
        let (_, end) = parse_prefix(&text[at..]).unwrap();
        at += end;
        seen += 1;
    }
    assert_eq!(seen, 3);
}

#[test]
fn mutated_texts_are_read_or_refused() {
    let mut r = Random::new(8);
    let alphabet: Vec<char> = "{}[]\",:\\u0123eE+-.$ \u{e9}\u{1}ntf".chars().collect();
    let (mut good, mut bad) = (0, 0);
    for _ in 0..30_000 {
        let mut text: Vec<char> = to_canonical(&r.document(2).to_raw()).chars().collect();
        for _ in 0..1 + r.below(2) {
            let at = r.below(text.len() as u64) as usize;
            match r.below(3) {
                0 => text[at] = *r.pick(&alphabet),
                1 => text.insert(at, *r.pick(&alphabet)),
                _ => {
                    text.remove(at);
                }
            }
        }
        match parse(&text.into_iter().collect::<String>()) {
            Ok(_) => good += 1,
            Err(_) => bad += 1,
        }
    }
    assert!(good > 500 && bad > 5000, "{good} {bad}");
}
