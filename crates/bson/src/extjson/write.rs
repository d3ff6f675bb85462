//! Values to text.

use super::Mode;
use super::forms::{base64, date_text};
use crate::raw::{RawDoc, Value};
use crate::text::with_lossy_texts;
use pando_base::limits;
use std::fmt::Write;

/// Appends a document.
pub fn write_doc(out: &mut String, doc: &RawDoc, mode: Mode) {
    fields(out, doc, mode, 0);
}

/// Appends one value.
pub fn write_value(out: &mut String, v: Value<'_>, mode: Mode) {
    value(out, v, mode, 0);
}

/// Appends a document with `stands_for` in place of each value; names and nesting stay.
pub fn write_redacted(out: &mut String, doc: &RawDoc, stands_for: &str) {
    redacted(out, doc, ('{', '}'), stands_for, 0);
}

fn redacted(out: &mut String, doc: &RawDoc, (open, close): (char, char), stands_for: &str, depth: usize) {
    out.push(open);
    if depth <= limits::BSON_DEPTH_MAX {
        for (i, e) in doc.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            if open == '{' {
                write_json_string(out, &e.shown_name());
                out.push(':');
            }
            match e.value() {
                Value::Document(d) => redacted(out, d, ('{', '}'), stands_for, depth + 1),
                Value::Array(a) => redacted(out, a, ('[', ']'), stands_for, depth + 1),
                _ => write_json_string(out, stands_for),
            }
        }
    }
    out.push(close);
}

/// Appends a string in quotes with JSON's escapes.
pub fn write_json_string(out: &mut String, s: &str) {
    out.push('"');
    let mut plain = 0;
    for (i, b) in s.bytes().enumerate() {
        let escape = match b {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0C => "\\f",
            0..=0x1F => "",
            _ => continue,
        };
        out.push_str(&s[plain..i]);
        plain = i + 1;
        match escape {
            "" => {
                let _ = write!(out, "\\u{b:04x}");
            }
            _ => out.push_str(escape),
        }
    }
    out.push_str(&s[plain..]);
    out.push('"');
}

fn fields(out: &mut String, doc: &RawDoc, mode: Mode, depth: usize) {
    out.push('{');
    // Validated documents never nest deeper.
    if depth <= limits::BSON_DEPTH_MAX {
        for (i, e) in doc.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            write_json_string(out, &e.shown_name());
            out.push(':');
            value(out, e.value(), mode, depth);
        }
    }
    out.push('}');
}

/// `{"$name":"text"}`
fn wrapped(out: &mut String, name: &str, text: &str) {
    let _ = write!(out, "{{\"{name}\":");
    write_json_string(out, text);
    out.push('}');
}

fn value(out: &mut String, v: Value<'_>, mode: Mode, depth: usize) {
    let relaxed = mode == Mode::Relaxed;
    match v {
        Value::Double(x) => double(out, x, relaxed),
        Value::Int32(n) if relaxed => {
            let _ = write!(out, "{n}");
        }
        Value::Int64(n) if relaxed => {
            let _ = write!(out, "{n}");
        }
        Value::Int32(n) => wrapped(out, "$numberInt", &n.to_string()),
        Value::Int64(n) => wrapped(out, "$numberLong", &n.to_string()),
        Value::Decimal128(d) => wrapped(out, "$numberDecimal", &d.to_string()),
        Value::String(s) => write_json_string(out, s),
        Value::Symbol(s) => wrapped(out, "$symbol", s),
        Value::Document(d) => fields(out, d, mode, depth + 1),
        Value::Array(d) => {
            out.push('[');
            if depth < limits::BSON_DEPTH_MAX {
                for (i, e) in d.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    value(out, e.value(), mode, depth + 1);
                }
            }
            out.push(']');
        }
        Value::Binary { subtype, bytes } => binary(out, subtype, bytes),
        Value::ObjectId(o) => wrapped(out, "$oid", &o.to_hex()),
        Value::Boolean(b) => out.push_str(if b { "true" } else { "false" }),
        Value::DateTime(ms) => match date_text(ms).filter(|_| relaxed && ms >= 0) {
            Some(text) => wrapped(out, "$date", &text),
            None => {
                let _ = write!(out, "{{\"$date\":{{\"$numberLong\":\"{ms}\"}}}}");
            }
        },
        Value::Null => out.push_str("null"),
        Value::Undefined => out.push_str("{\"$undefined\":true}"),
        Value::Regex { pattern, options } => {
            out.push_str("{\"$regularExpression\":{\"pattern\":");
            write_json_string(out, pattern);
            out.push_str(",\"options\":");
            write_json_string(out, options);
            out.push_str("}}");
        }
        Value::DbPointer { ns, id } => {
            out.push_str("{\"$dbPointer\":{\"$ref\":");
            write_json_string(out, ns);
            let _ = write!(out, ",\"$id\":{{\"$oid\":\"{}\"}}}}}}", id.to_hex());
        }
        Value::JavaScript(code) => wrapped(out, "$code", code),
        Value::JavaScriptWithScope { code, scope } => {
            out.push_str("{\"$code\":");
            write_json_string(out, code);
            out.push_str(",\"$scope\":");
            fields(out, scope, mode, depth + 1);
            out.push('}');
        }
        Value::Timestamp(t) => {
            let _ = write!(out, "{{\"$timestamp\":{{\"t\":{},\"i\":{}}}}}", t.secs(), t.inc());
        }
        Value::MinKey => out.push_str("{\"$minKey\":1}"),
        Value::MaxKey => out.push_str("{\"$maxKey\":1}"),
        // JSON is UTF-8.
        Value::NotUtf8(v) => with_lossy_texts(v.texts(), |v| value(out, v, mode, depth)),
    }
}

fn double(out: &mut String, x: f64, relaxed: bool) {
    if relaxed && x.is_finite() {
        let _ = write!(out, "{x:?}");
        return;
    }
    match x {
        _ if x.is_nan() => wrapped(out, "$numberDouble", "NaN"),
        f64::INFINITY => wrapped(out, "$numberDouble", "Infinity"),
        f64::NEG_INFINITY => wrapped(out, "$numberDouble", "-Infinity"),
        _ => wrapped(out, "$numberDouble", &format!("{x:?}")),
    }
}

fn binary(out: &mut String, subtype: u8, bytes: &[u8]) {
    // The old subtype repeats its length inside; the text leaves it out.
    let bytes = match (subtype, bytes.split_first_chunk::<4>()) {
        (2, Some((len, rest))) if u32::from_le_bytes(*len) as usize == rest.len() => rest,
        _ => bytes,
    };
    let _ = write!(out, "{{\"$binary\":{{\"base64\":\"{}\",\"subType\":\"{subtype:02x}\"}}}}", base64(bytes));
}
