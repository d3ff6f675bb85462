//! Documents as bytes: borrowed [`RawDoc`], owned [`DocBuf`], and the walk over their elements.

use crate::scan::find_nul;
use crate::types::{Decimal128, ElementType, ObjectId};
use pando_base::Timestamp;
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

/// A whole BSON document (or array) as bytes: 4-byte length, elements, terminating zero.
#[repr(transparent)]
#[derive(PartialEq, Eq)]
pub struct RawDoc([u8]);

/// First double above every `i64`.
const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;

/// The empty document.
pub const EMPTY: &[u8] = &[5, 0, 0, 0, 0];

impl RawDoc {
    /// Views bytes that were validated before (see [`RawDoc::validate`]). Malformed bytes are memory-safe
    /// but read as a shorter or empty document.
    pub fn trusted(bytes: &[u8]) -> &RawDoc {
        let len = match bytes.first_chunk::<4>() {
            Some(head) => u32::from_le_bytes(*head) as usize,
            None => return RawDoc::empty(),
        };
        match bytes.get(..len) {
            Some(doc) if len >= 5 => RawDoc::wrap(doc),
            _ => RawDoc::empty(),
        }
    }
    pub fn empty() -> &'static RawDoc {
        RawDoc::wrap(EMPTY)
    }
    #[allow(unsafe_code)]
    fn wrap(bytes: &[u8]) -> &RawDoc {
        // SAFETY: RawDoc is repr(transparent) over [u8]; the lifetime is the input's.
        unsafe { &*(std::ptr::from_ref::<[u8]>(bytes) as *const RawDoc) }
    }
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    /// Length in bytes, header included.
    pub fn byte_len(&self) -> usize {
        self.0.len()
    }
    pub fn is_empty(&self) -> bool {
        self.0.len() <= 5
    }
    pub fn to_buf(&self) -> DocBuf {
        DocBuf(self.0.to_vec())
    }
    /// The elements in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: self.0.get(4..).unwrap_or_default() }
    }
    /// The element that starts at this byte offset (the first one is at 4) and the offset of the next;
    /// `None` at the end. For walks that remember positions.
    #[inline]
    pub fn elem_at(&self, offset: usize) -> Option<(Elem<'_>, usize)> {
        let mut iter = Iter { rest: self.0.get(offset..)? };
        let before = iter.rest.len();
        let elem = iter.next()?;
        Some((elem, offset + (before - iter.rest.len())))
    }
    /// The first element of that name.
    pub fn elem(&self, name: &str) -> Option<Elem<'_>> {
        self.iter().find(|e| e.is_named(name.as_bytes()))
    }
    /// The value of the first element of that name.
    pub fn get(&self, name: &str) -> Option<Value<'_>> {
        self.elem(name).map(|e| e.value())
    }
    pub fn first(&self) -> Option<Elem<'_>> {
        self.iter().next()
    }
    pub fn count(&self) -> usize {
        self.iter().count()
    }
    /// The value at a dotted path through sub-documents only (no array traversal).
    pub fn get_path(&self, path: &str) -> Option<Value<'_>> {
        let mut doc = self;
        let mut rest = path;
        loop {
            match rest.split_once('.') {
                None => return doc.get(rest),
                Some((head, tail)) => {
                    doc = match doc.get(head)? {
                        Value::Document(d) => d,
                        _ => return None,
                    };
                    rest = tail;
                }
            }
        }
    }
}

impl<'a> IntoIterator for &'a RawDoc {
    type Item = Elem<'a>;
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl ToOwned for RawDoc {
    type Owned = DocBuf;
    fn to_owned(&self) -> DocBuf {
        self.to_buf()
    }
}

impl fmt::Debug for RawDoc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|e| (e.name().to_owned(), e.value()))).finish()
    }
}

/// An owned document as bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DocBuf(pub(crate) Vec<u8>);

impl DocBuf {
    pub fn new() -> DocBuf {
        DocBuf(EMPTY.to_vec())
    }
    /// Takes bytes that are known to be one whole valid document.
    pub fn from_trusted(bytes: Vec<u8>) -> DocBuf {
        debug_assert!(bytes.len() >= 5);
        DocBuf(bytes)
    }
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl Default for DocBuf {
    fn default() -> Self {
        DocBuf::new()
    }
}
impl Deref for DocBuf {
    type Target = RawDoc;
    fn deref(&self) -> &RawDoc {
        RawDoc::trusted(&self.0)
    }
}
impl Borrow<RawDoc> for DocBuf {
    fn borrow(&self) -> &RawDoc {
        self
    }
}
impl AsRef<RawDoc> for DocBuf {
    fn as_ref(&self) -> &RawDoc {
        self
    }
}
impl fmt::Debug for DocBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Walks the elements of a document; ends early on malformed bytes.
#[derive(Clone)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = Elem<'a>;
    #[inline]
    fn next(&mut self) -> Option<Elem<'a>> {
        let (&tag, rest) = self.rest.split_first()?;
        let ty = ElementType::from_byte(tag)?;
        let name_len = find_nul(rest)?;
        let after = rest.get(name_len + 1..)?;
        let size = value_size(ty, after)?;
        let data = after.get(..size)?;
        self.rest = &after[size..];
        Some(Elem { ty, name: &rest[..name_len], data })
    }
}

#[inline]
fn le_u32(bytes: &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(*bytes.first_chunk::<4>()?) as usize)
}

/// Marks types in [`SIZES`] whose values say their own size.
const VARIABLE: u8 = u8::MAX;

/// Bytes of a value by type byte.
const SIZES: [u8; 256] = {
    let mut sizes = [VARIABLE; 256];
    let fixed = [
        (0x01, 8),
        (0x06, 0),
        (0x07, 12),
        (0x08, 1),
        (0x09, 8),
        (0x0A, 0),
        (0x10, 4),
        (0x11, 8),
        (0x12, 8),
        (0x13, 16),
        (0x7F, 0),
        (0xFF, 0),
    ];
    let mut i = 0;
    while i < fixed.len() {
        sizes[fixed[i].0] = fixed[i].1;
        i += 1;
    }
    sizes
};

/// Bytes that a value of this type occupies at the front of `data`.
#[inline]
pub(crate) fn value_size(ty: ElementType, data: &[u8]) -> Option<usize> {
    match SIZES[ty as u8 as usize] {
        VARIABLE => variable_size(ty, data),
        fixed => Some(usize::from(fixed)),
    }
}

#[inline]
fn variable_size(ty: ElementType, data: &[u8]) -> Option<usize> {
    use ElementType::*;
    Some(match ty {
        Double | DateTime | Timestamp | Int64 => 8,
        Int32 => 4,
        Boolean => 1,
        Null | Undefined | MinKey | MaxKey => 0,
        ObjectId => 12,
        Decimal128 => 16,
        String | JavaScript | Symbol => le_u32(data)?.checked_add(4)?,
        Document | Array | JavaScriptWithScope => le_u32(data)?.max(5),
        Binary => le_u32(data)?.checked_add(5)?,
        DbPointer => le_u32(data)?.checked_add(16)?,
        Regex => {
            let p = find_nul(data)?;
            let o = find_nul(data.get(p + 1..)?)?;
            p + o + 2
        }
    })
}

/// One element: type, name and undecoded value bytes.
#[derive(Clone, Copy)]
pub struct Elem<'a> {
    pub ty: ElementType,
    name: &'a [u8],
    data: &'a [u8],
}

impl<'a> Elem<'a> {
    pub fn new(ty: ElementType, name: &'a str, data: &'a [u8]) -> Elem<'a> {
        Elem { ty, name: name.as_bytes(), data }
    }
    /// The field name; empty when the bytes are not UTF-8 (validated documents never are).
    #[inline]
    pub fn name(&self) -> &'a str {
        std::str::from_utf8(self.name).unwrap_or_default()
    }
    #[inline]
    pub fn name_bytes(&self) -> &'a [u8] {
        self.name
    }
    /// Is this its name? Most names differ in length or first byte, which costs no call.
    #[inline]
    pub fn is_named(&self, name: &[u8]) -> bool {
        self.name.len() == name.len() && self.name.first() == name.first() && self.name == name
    }
    /// The encoded value, without type and name.
    #[inline]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }
    /// Decodes the value (sub-documents stay bytes).
    #[inline]
    pub fn value(&self) -> Value<'a> {
        decode(self.ty, self.data).unwrap_or(Value::Undefined)
    }
}

impl fmt::Debug for Elem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.name(), self.value())
    }
}

/// A decoded value; strings, binaries and sub-documents borrow from the document.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    Double(f64),
    String(&'a str),
    Document(&'a RawDoc),
    Array(&'a RawDoc),
    Binary {
        subtype: u8,
        bytes: &'a [u8],
    },
    Undefined,
    ObjectId(ObjectId),
    Boolean(bool),
    /// Milliseconds since the Unix epoch.
    DateTime(i64),
    Null,
    Regex {
        pattern: &'a str,
        options: &'a str,
    },
    DbPointer {
        ns: &'a str,
        id: ObjectId,
    },
    JavaScript(&'a str),
    Symbol(&'a str),
    JavaScriptWithScope {
        code: &'a str,
        scope: &'a RawDoc,
    },
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn counted_text(data: &[u8]) -> Option<(&str, usize)> {
    let len = le_u32(data)?;
    let body = data.get(4..4usize.checked_add(len)?)?;
    let (_, s) = body.split_last()?;
    Some((text(s)?, 4 + len))
}

#[inline]
fn decode(ty: ElementType, data: &[u8]) -> Option<Value<'_>> {
    Some(match ty {
        ElementType::Double => Value::Double(f64::from_le_bytes(*data.first_chunk()?)),
        ElementType::String => Value::String(counted_text(data)?.0),
        ElementType::Document => Value::Document(RawDoc::trusted(data)),
        ElementType::Array => Value::Array(RawDoc::trusted(data)),
        ElementType::Binary => {
            let len = le_u32(data)?;
            let subtype = *data.get(4)?;
            Value::Binary { subtype, bytes: data.get(5..5usize.checked_add(len)?)? }
        }
        ElementType::Undefined => Value::Undefined,
        ElementType::ObjectId => Value::ObjectId(ObjectId(*data.first_chunk()?)),
        ElementType::Boolean => Value::Boolean(*data.first()? != 0),
        ElementType::DateTime => Value::DateTime(i64::from_le_bytes(*data.first_chunk()?)),
        ElementType::Null => Value::Null,
        ElementType::Regex => {
            let mut parts = data.split(|b| *b == 0);
            Value::Regex { pattern: text(parts.next()?)?, options: text(parts.next()?)? }
        }
        ElementType::DbPointer => {
            let (ns, end) = counted_text(data)?;
            Value::DbPointer { ns, id: ObjectId(*data.get(end..)?.first_chunk()?) }
        }
        ElementType::JavaScript => Value::JavaScript(counted_text(data)?.0),
        ElementType::Symbol => Value::Symbol(counted_text(data)?.0),
        ElementType::JavaScriptWithScope => {
            let (code, end) = counted_text(data.get(4..)?)?;
            Value::JavaScriptWithScope { code, scope: RawDoc::trusted(data.get(4 + end..)?) }
        }
        ElementType::Int32 => Value::Int32(i32::from_le_bytes(*data.first_chunk()?)),
        ElementType::Timestamp => Value::Timestamp(Timestamp(u64::from_le_bytes(*data.first_chunk()?))),
        ElementType::Int64 => Value::Int64(i64::from_le_bytes(*data.first_chunk()?)),
        ElementType::Decimal128 => Value::Decimal128(Decimal128(*data.first_chunk()?)),
        ElementType::MinKey => Value::MinKey,
        ElementType::MaxKey => Value::MaxKey,
    })
}

impl<'a> Value<'a> {
    pub fn element_type(&self) -> ElementType {
        match self {
            Value::Double(_) => ElementType::Double,
            Value::String(_) => ElementType::String,
            Value::Document(_) => ElementType::Document,
            Value::Array(_) => ElementType::Array,
            Value::Binary { .. } => ElementType::Binary,
            Value::Undefined => ElementType::Undefined,
            Value::ObjectId(_) => ElementType::ObjectId,
            Value::Boolean(_) => ElementType::Boolean,
            Value::DateTime(_) => ElementType::DateTime,
            Value::Null => ElementType::Null,
            Value::Regex { .. } => ElementType::Regex,
            Value::DbPointer { .. } => ElementType::DbPointer,
            Value::JavaScript(_) => ElementType::JavaScript,
            Value::Symbol(_) => ElementType::Symbol,
            Value::JavaScriptWithScope { .. } => ElementType::JavaScriptWithScope,
            Value::Int32(_) => ElementType::Int32,
            Value::Timestamp(_) => ElementType::Timestamp,
            Value::Int64(_) => ElementType::Int64,
            Value::Decimal128(_) => ElementType::Decimal128,
            Value::MinKey => ElementType::MinKey,
            Value::MaxKey => ElementType::MaxKey,
        }
    }
    pub fn type_name(&self) -> &'static str {
        self.element_type().name()
    }
    pub fn as_str(&self) -> Option<&'a str> {
        match self {
            Value::String(s) => Some(s),
            _ => None,
        }
    }
    pub fn as_doc(&self) -> Option<&'a RawDoc> {
        match self {
            Value::Document(d) => Some(d),
            _ => None,
        }
    }
    pub fn as_array(&self) -> Option<&'a RawDoc> {
        match self {
            Value::Array(d) => Some(d),
            _ => None,
        }
    }
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Boolean(b) => Some(*b),
            _ => None,
        }
    }
    /// Integral value of any numeric type, if it is exactly one (decimals excepted).
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int32(n) => Some(i64::from(*n)),
            Value::Int64(n) => Some(*n),
            Value::Double(d) if d.fract() == 0.0 && (-TWO_POW_63..TWO_POW_63).contains(d) => Some(*d as i64),
            _ => None,
        }
    }
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int32(n) => Some(f64::from(*n)),
            Value::Int64(n) => Some(*n as f64),
            Value::Double(d) => Some(*d),
            _ => None,
        }
    }
    pub fn is_number(&self) -> bool {
        matches!(self, Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_))
    }
    /// MongoDB's idea of truth in command options and expressions: everything but false, zero, null, undefined.
    pub fn is_truthy(&self) -> bool {
        match self {
            Value::Boolean(b) => *b,
            Value::Int32(n) => *n != 0,
            Value::Int64(n) => *n != 0,
            Value::Double(d) => *d != 0.0,
            Value::Decimal128(d) => !d.is_zero(),
            Value::Null | Value::Undefined => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DocBuilder;

    #[test]
    fn elements_come_back_in_order_with_their_values() {
        let mut b = DocBuilder::new();
        b.i32("a", 7);
        b.str("s", "héllo");
        b.doc("d", |d| {
            d.f64("x", 1.5);
        });
        let doc = b.finish();
        let names: Vec<_> = doc.iter().map(|e| e.name().to_owned()).collect();
        assert_eq!(names, ["a", "s", "d"]);
        assert_eq!(doc.get("s").and_then(|v| v.as_str()), Some("héllo"));
        assert_eq!(doc.get_path("d.x").and_then(|v| v.as_f64()), Some(1.5));
        assert!(doc.get("zz").is_none());
    }

    #[test]
    fn malformed_bytes_end_the_walk_without_panicking() {
        let mut b = DocBuilder::new();
        b.str("s", "hello");
        b.i64("n", 3);
        let good = b.finish().into_bytes();
        for cut in 0..good.len() {
            let _ = RawDoc::trusted(&good[..cut]).iter().map(|e| e.value().type_name().len()).sum::<usize>();
            let mut lie = good.clone();
            lie[cut] = 0xFF;
            let _ = RawDoc::trusted(&lie).iter().map(|e| e.value().type_name().len()).sum::<usize>();
        }
    }
}
