//! Documents as JSON text for log lines: relaxed extended JSON, one line.

use pando_bson::{RawDoc, Value};
use pando_env::log::push_json_string;
use std::fmt::Write as _;

/// The document as relaxed extended JSON.
pub fn relaxed(doc: &RawDoc) -> String {
    let mut out = String::with_capacity(doc.byte_len() * 2);
    push_doc(&mut out, doc, false, 0);
    out
}

fn push_doc(out: &mut String, doc: &RawDoc, array: bool, depth: usize) {
    if depth > pando_base::limits::BSON_DEPTH_MAX {
        out.push_str("null");
        return;
    }
    out.push(if array { '[' } else { '{' });
    for (i, e) in doc.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        if !array {
            push_json_string(out, e.name());
            out.push(':');
        }
        push_value(out, &e.value(), depth + 1);
    }
    out.push(if array { ']' } else { '}' });
}

fn push_value(out: &mut String, v: &Value<'_>, depth: usize) {
    match v {
        Value::Double(d) if d.is_finite() => drop(write!(out, "{d:?}")),
        Value::Double(d) => drop(write!(out, "{{\"$numberDouble\":\"{d}\"}}")),
        Value::String(s) | Value::Symbol(s) => push_json_string(out, s),
        Value::Document(d) => push_doc(out, d, false, depth),
        Value::Array(a) => push_doc(out, a, true, depth),
        Value::Binary { subtype: 4, bytes } if bytes.len() == 16 => {
            out.push_str("{\"$uuid\":\"");
            for (i, b) in bytes.iter().enumerate() {
                if matches!(i, 4 | 6 | 8 | 10) {
                    out.push('-');
                }
                let _ = write!(out, "{b:02x}");
            }
            out.push_str("\"}");
        }
        Value::Binary { subtype, bytes } => {
            let _ = write!(
                out,
                "{{\"$binary\":{{\"base64\":\"{}\",\"subType\":\"{subtype:x}\"}}}}",
                base64(bytes)
            );
        }
        Value::ObjectId(o) => drop(write!(out, "{{\"$oid\":\"{}\"}}", o.to_hex())),
        Value::Boolean(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::DateTime(ms) => drop(write!(out, "{{\"$date\":{{\"$numberLong\":\"{ms}\"}}}}")),
        Value::Null => out.push_str("null"),
        Value::Undefined => out.push_str("{\"$undefined\":true}"),
        Value::Regex { pattern, options } => {
            out.push_str("{\"$regularExpression\":{\"pattern\":");
            push_json_string(out, pattern);
            out.push_str(",\"options\":");
            push_json_string(out, options);
            out.push_str("}}");
        }
        Value::JavaScript(s) | Value::JavaScriptWithScope { code: s, .. } => {
            out.push_str("{\"$code\":");
            push_json_string(out, s);
            out.push('}');
        }
        Value::Int32(n) => drop(write!(out, "{n}")),
        Value::Int64(n) => drop(write!(out, "{n}")),
        Value::Timestamp(t) => {
            let _ = write!(out, "{{\"$timestamp\":{{\"t\":{},\"i\":{}}}}}", t.secs(), t.inc());
        }
        Value::Decimal128(_) => out.push_str("{\"$numberDecimal\":\"?\"}"),
        Value::DbPointer { ns, id } => {
            out.push_str("{\"$dbPointer\":{\"$ref\":");
            push_json_string(out, ns);
            let _ = write!(out, ",\"$id\":{{\"$oid\":\"{}\"}}}}}}", id.to_hex());
        }
        Value::MinKey => out.push_str("{\"$minKey\":1}"),
        Value::MaxKey => out.push_str("{\"$maxKey\":1}"),
    }
}

fn base64(bytes: &[u8]) -> String {
    const ABC: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let c = ABC[(n >> (18 - 6 * i) & 63) as usize] as char;
            out.push(if i <= chunk.len() { c } else { '=' });
        }
    }
    out
}
