//! What an expression evaluates to.

use pando_base::limits::VALUE_DEPTH_MAX;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::depth::is_deeper_than;
use pando_bson::{ArrayBuilder, AsName, DocBuf, DocBuilder, RawDoc, Value};
use std::borrow::Cow;

/// A value in flight: borrowed from the document, the plan or a variable, or made by an operator.
///
/// Whatever its shape, operators look at it through [`Val::value`]; owned documents and arrays are bytes too.
#[derive(Clone, Debug)]
pub enum Val<'a> {
    /// No value at all, which is not null: a field set to it is left out.
    Missing,
    /// Borrowed, or any scalar.
    Ref(Value<'a>),
    Str(String),
    Doc(DocBuf),
    /// An array's bytes.
    Array(DocBuf),
    /// Any other owned type, as the only element of a document.
    Other(DocBuf),
}

impl<'a> Val<'a> {
    pub const NULL: Val<'static> = Val::Ref(Value::Null);

    pub fn int(n: i32) -> Val<'static> {
        Val::Ref(Value::Int32(n))
    }
    pub fn long(n: i64) -> Val<'static> {
        Val::Ref(Value::Int64(n))
    }
    pub fn double(d: f64) -> Val<'static> {
        Val::Ref(Value::Double(d))
    }
    pub fn bool(b: bool) -> Val<'static> {
        Val::Ref(Value::Boolean(b))
    }
    /// Milliseconds since the Unix epoch.
    pub fn date(ms: i64) -> Val<'static> {
        Val::Ref(Value::DateTime(ms))
    }
    pub fn string(s: impl Into<String>) -> Val<'static> {
        Val::Str(s.into())
    }
    /// A length or position as an int.
    pub fn count(n: usize) -> Val<'static> {
        match i32::try_from(n) {
            Ok(n) => Val::int(n),
            Err(_) => Val::long(n as i64),
        }
    }
    /// An array of these values; missing ones become null.
    pub fn array<'v>(values: impl IntoIterator<Item = Val<'v>>) -> Val<'static> {
        let mut b = ArrayBuilder::new();
        for v in values {
            v.push_to(&mut b);
        }
        Val::Array(b.finish())
    }
    pub fn binary(subtype: u8, bytes: &[u8]) -> Val<'static> {
        owned(Value::Binary { subtype, bytes })
    }
    pub fn option(v: Option<Value<'a>>) -> Val<'a> {
        v.map_or(Val::Missing, Val::Ref)
    }

    /// The value to look at; `None` when missing.
    #[inline]
    pub fn value(&self) -> Option<Value<'_>> {
        Some(match self {
            Val::Missing => return None,
            Val::Ref(v) => *v,
            Val::Str(s) => Value::String(s),
            Val::Doc(d) => Value::Document(d),
            Val::Array(a) => Value::Array(a),
            Val::Other(holder) => holder.first()?.value(),
        })
    }
    /// A view that borrows from this one.
    pub fn borrowed(&self) -> Val<'_> {
        Val::option(self.value())
    }
    /// A copy that borrows nothing.
    pub fn into_owned(self) -> Val<'static> {
        match self {
            Val::Missing => Val::Missing,
            Val::Ref(v) => owned(v),
            Val::Str(s) => Val::Str(s),
            Val::Doc(d) => Val::Doc(d),
            Val::Array(a) => Val::Array(a),
            Val::Other(holder) => Val::Other(holder),
        }
    }

    /// Bytes held outside this struct.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Val::Missing | Val::Ref(_) => 0,
            Val::Str(s) => s.len(),
            Val::Doc(d) | Val::Array(d) | Val::Other(d) => d.byte_len(),
        }
    }
    /// Made step by step, a value could nest deeper than anybody can walk over (15).
    pub(crate) fn check_depth(&self) -> Result<()> {
        let Some(Value::Document(d) | Value::Array(d)) = self.value() else { return Ok(()) };
        if !is_deeper_than(d, VALUE_DEPTH_MAX) {
            return Ok(());
        }
        let text = format!("a computed value exceeds the limit of {VALUE_DEPTH_MAX} levels of nesting");
        Err(Error::new(ErrorCode::Overflow, text))
    }
    pub fn is_missing(&self) -> bool {
        matches!(self, Val::Missing)
    }
    /// Missing, null or undefined.
    pub fn is_nullish(&self) -> bool {
        matches!(self, Val::Missing | Val::Ref(Value::Null | Value::Undefined))
    }
    /// Everything but false, zero, null, undefined and missing.
    pub fn is_truthy(&self) -> bool {
        self.value().is_some_and(|v| v.is_truthy())
    }
    /// As `$type` says: "missing" when there is none.
    pub fn type_name(&self) -> &'static str {
        self.value().map_or("missing", |v| v.type_name())
    }
    /// A string, made of its bytes.
    pub fn string_of(bytes: Vec<u8>) -> Val<'static> {
        String::from_utf8(bytes).map_or_else(
            |e| {
                let mut b = DocBuilder::new();
                b.string_bytes("", e.as_bytes());
                Val::Other(b.finish())
            },
            Val::Str,
        )
    }
    /// The bytes of a string, whether UTF-8 or not.
    pub fn string_bytes(&self) -> Option<&[u8]> {
        self.value()?.string_bytes()
    }
    /// A string as a word: one that is not UTF-8 holds U+FFFD, which is in no word that is known.
    pub fn as_word(&self) -> Option<Cow<'_, str>> {
        self.string_bytes().map(String::from_utf8_lossy)
    }
    /// A string's characters; `None` also when its bytes are not UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Val::Ref(Value::String(s)) => Some(s),
            Val::Str(s) => Some(s),
            _ => None,
        }
    }
    pub fn as_array(&self) -> Option<&RawDoc> {
        match self {
            Val::Ref(Value::Array(a)) => Some(a),
            Val::Array(a) => Some(a),
            _ => None,
        }
    }
    pub fn as_doc(&self) -> Option<&RawDoc> {
        match self {
            Val::Ref(Value::Document(d)) => Some(d),
            Val::Doc(d) => Some(d),
            _ => None,
        }
    }

    /// Appends under a name; missing leaves nothing.
    pub fn put_to(&self, b: &mut DocBuilder, name: impl AsName) {
        if let Some(v) = self.value() {
            b.value(name, v);
        }
    }
    /// Appends to an array; missing becomes null.
    pub fn push_to(&self, b: &mut ArrayBuilder) {
        b.value(self.value().unwrap_or(Value::Null));
    }
    /// As shown in error messages.
    pub fn shown(&self) -> String {
        self.value().map_or_else(|| "MISSING".to_owned(), |v| format!("{v:#}"))
    }
}

impl<'a> From<Value<'a>> for Val<'a> {
    fn from(v: Value<'a>) -> Val<'a> {
        Val::Ref(v)
    }
}

fn owned(v: Value<'_>) -> Val<'static> {
    match v {
        Value::String(s) => Val::Str(s.to_owned()),
        Value::Document(d) => Val::Doc(d.to_buf()),
        Value::Array(a) => Val::Array(a.to_buf()),
        Value::Double(d) => Val::Ref(Value::Double(d)),
        Value::Undefined => Val::Ref(Value::Undefined),
        Value::ObjectId(o) => Val::Ref(Value::ObjectId(o)),
        Value::Boolean(b) => Val::Ref(Value::Boolean(b)),
        Value::DateTime(ms) => Val::Ref(Value::DateTime(ms)),
        Value::Null => Val::NULL,
        Value::Int32(n) => Val::Ref(Value::Int32(n)),
        Value::Timestamp(t) => Val::Ref(Value::Timestamp(t)),
        Value::Int64(n) => Val::Ref(Value::Int64(n)),
        Value::Decimal128(d) => Val::Ref(Value::Decimal128(d)),
        Value::MinKey => Val::Ref(Value::MinKey),
        Value::MaxKey => Val::Ref(Value::MaxKey),
        other => {
            let mut b = DocBuilder::new();
            b.value("", other);
            Val::Other(b.finish())
        }
    }
}

/// A value as aggregation messages print it: `5`, `"x"`, `[1, 2]`, `{a: 1}`, dates in ISO form, doubles with six
/// digits.
pub fn shown(v: &Val<'_>) -> String {
    let mut out = String::new();
    match v.value() {
        Some(v) => show(v, &mut out),
        None => out.push_str("MISSING"),
    }
    out
}

fn show(v: Value<'_>, out: &mut String) {
    use std::fmt::Write;
    // Writing to a String cannot fail.
    let _ = match v {
        Value::Double(d) => out.write_str(&crate::number::short_double(d)),
        Value::DateTime(ms) => out.write_str(&crate::date::iso(ms)),
        Value::ObjectId(o) => out.write_str(&o.to_hex()),
        Value::Decimal128(d) => write!(out, "{d}"),
        Value::Document(d) => {
            out.push('{');
            for (i, e) in d.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                out.push_str(&e.shown_name());
                out.push_str(": ");
                show(e.value(), out);
            }
            out.write_char('}')
        }
        Value::Array(a) => {
            out.push('[');
            for (i, e) in a.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                show(e.value(), out);
            }
            out.write_char(']')
        }
        v => write!(out, "{v:#}"),
    };
}
