//! Documents as MongoDB's messages print them: `{ a: 1, b: { c: "x" } }`.
//!
//! This is the form inside error texts ("dup key: { a: 1 }"), not extended JSON and not meant to be parsed.
//! What is not UTF-8 is shown as U+FFFD. With `{:#}` strings of 160 bytes and more are cut, as in messages about updates.

use crate::raw::{Elem, RawDoc, Texts, Value};
use std::fmt::{self, Write};

impl fmt::Display for RawDoc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = f.alternate();
        write_doc(f, self, false, cut)
    }
}

impl fmt::Display for crate::DocBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = f.alternate();
        write_value(f, *self, cut)
    }
}

/// `name: value`
impl fmt::Display for Elem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown_name())?;
        f.write_str(": ")?;
        fmt::Display::fmt(&self.value(), f)
    }
}

/// Strings this long are cut to [`STRING_SHOWN_BYTES`] and end in three dots, when cutting is wanted.
const STRING_CUT_BYTES: usize = 160;
const STRING_SHOWN_BYTES: usize = 150;

fn shown(s: &str, cut: bool) -> (&str, &'static str) {
    if !cut || s.len() < STRING_CUT_BYTES {
        return (s, "");
    }
    let mut end = STRING_SHOWN_BYTES;
    while !s.is_char_boundary(end) {
        end -= 1;
    }
    (&s[..end], "...")
}

fn write_doc(f: &mut impl Write, doc: &RawDoc, array: bool, cut: bool) -> fmt::Result {
    let (open, close) = if array { ("[", "]") } else { ("{", "}") };
    f.write_str(open)?;
    let mut any = false;
    for e in doc {
        f.write_str(if any { ", " } else { " " })?;
        any = true;
        if !array {
            f.write_str(&e.shown_name())?;
            f.write_str(": ")?;
        }
        write_value(f, e.value(), cut)?;
    }
    if any {
        f.write_str(" ")?;
    }
    f.write_str(close)
}

fn write_value(f: &mut impl Write, v: Value<'_>, cut: bool) -> fmt::Result {
    match v {
        Value::Double(d) => f.write_str(&double_text(d)),
        Value::String(s) | Value::Symbol(s) => {
            let (s, dots) = shown(s, cut);
            write!(f, "\"{s}{dots}\"")
        }
        Value::Document(d) => write_doc(f, d, false, cut),
        Value::Array(a) => write_doc(f, a, true, cut),
        Value::Binary { subtype: 4, bytes } if bytes.len() == 16 => {
            let uuid = pando_base::Uuid::from_slice(bytes).unwrap_or_default();
            write!(f, "UUID(\"{uuid}\")")
        }
        Value::Binary { subtype, bytes } => {
            write!(f, "BinData({subtype}, ")?;
            for b in bytes {
                write!(f, "{b:02X}")?;
            }
            f.write_str(")")
        }
        Value::Undefined => f.write_str("undefined"),
        Value::ObjectId(o) => write!(f, "ObjectId('{}')", o.to_hex()),
        Value::Boolean(b) => write!(f, "{b}"),
        Value::DateTime(ms) => write!(f, "new Date({ms})"),
        Value::Null => f.write_str("null"),
        Value::Regex { pattern, options } => write!(f, "/{pattern}/{options}"),
        Value::DbPointer { ns, id } => write!(f, "DBRef('{ns}',{})", id.to_hex()),
        Value::JavaScript(s) => {
            let (s, dots) = shown(s, cut);
            write!(f, "{s}{dots}")
        }
        Value::JavaScriptWithScope { code, scope } => {
            write!(f, "CodeWScope( {code}, ")?;
            write_doc(f, scope, false, cut)?;
            f.write_str(")")
        }
        Value::Int32(n) => write!(f, "{n}"),
        Value::Int64(n) => write!(f, "{n}"),
        Value::Timestamp(t) => write!(f, "Timestamp({}, {})", t.secs(), t.inc()),
        Value::Decimal128(d) => write!(f, "{d}"),
        Value::MinKey => f.write_str("MinKey"),
        Value::MaxKey => f.write_str("MaxKey"),
        Value::NotUtf8(v) => with_lossy_texts(v.texts(), |v| write_value(f, v, cut)),
    }
}

/// Shows the value to `show` with U+FFFD where its texts are not UTF-8.
pub(crate) fn with_lossy_texts<R>(v: Texts<'_>, show: impl FnOnce(Value<'_>) -> R) -> R {
    let lossy = |bytes| String::from_utf8_lossy(bytes);
    match v {
        Texts::String(s) => show(Value::String(&lossy(s))),
        Texts::Symbol(s) => show(Value::Symbol(&lossy(s))),
        Texts::JavaScript(s) => show(Value::JavaScript(&lossy(s))),
        Texts::JavaScriptWithScope { code, scope } => {
            show(Value::JavaScriptWithScope { code: &lossy(code), scope })
        }
        Texts::Regex { pattern, options } => {
            show(Value::Regex { pattern: &lossy(pattern), options: &lossy(options) })
        }
        Texts::DbPointer { ns, id } => show(Value::DbPointer { ns: &lossy(ns), id }),
    }
}

/// Sixteen significant digits as C's `%.16g`, with `.0` put behind when no point is there.
pub fn double_text(d: f64) -> String {
    if d.is_nan() {
        return "nan.0".to_owned();
    }
    if d.is_infinite() {
        return if d > 0.0 { "inf.0" } else { "-inf.0" }.to_owned();
    }
    let mut s = general_16(d);
    if !s.contains('.') {
        s.push_str(".0");
    }
    s
}

fn general_16(d: f64) -> String {
    if d == 0.0 {
        return if d.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{d:.15e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let fixed = format!("{d:.*}", (15 - exponent).max(0) as usize);
        return trim_zeros(&fixed).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim_zeros(mantissa), exponent.unsigned_abs())
}

fn trim_zeros(s: &str) -> &str {
    if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.') } else { s }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DocBuilder;

    #[test]
    fn doubles_have_sixteen_digits_and_a_point() {
        let cases = [
            (1.5, "1.5"),
            (1e20, "1e+20.0"),
            (1.0, "1.0"),
            (1e-7, "1e-07.0"),
            (123_456_789.123, "123456789.123"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16.0"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (0.1 + 0.2, "0.3"),
            (1e300, "1e+300.0"),
            (f64::NAN, "nan.0"),
            (f64::NEG_INFINITY, "-inf.0"),
        ];
        for (d, text) in cases {
            assert_eq!(double_text(d), text);
        }
    }

    #[test]
    fn the_alternate_form_cuts_long_strings_at_150_bytes() {
        let long = "a".repeat(160);
        assert_eq!(format!("{:#}", Value::String(&long)), format!("\"{}...\"", "a".repeat(150)));
        assert_eq!(format!("{}", Value::String(&long)).len(), 162);
        assert_eq!(format!("{:#}", Value::String(&long[1..])).len(), 161);
        let wide = "é".repeat(100);
        assert_eq!(format!("{:#}", Value::String(&wide)).len(), 155);
    }

    #[test]
    fn documents_print_with_spaces_inside_braces() {
        let mut b = DocBuilder::new();
        b.i32("b", 1);
        b.doc("c", |_| {});
        b.array("a", |a| {
            a.str("x");
        });
        b.array("e", |_| {});
        b.date("d", -3);
        b.binary("z", 0, b"abc");
        assert_eq!(
            b.finish().to_string(),
            r#"{ b: 1, c: {}, a: [ "x" ], e: [], d: new Date(-3), z: BinData(0, 616263) }"#
        );
    }
}
