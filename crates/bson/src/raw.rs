//! Documents as bytes: borrowed [`RawDoc`], owned [`DocBuf`], and the walk over their elements.

use crate::name::AsName;
use crate::scan::find_nul;
use crate::types::{Decimal128, ElementType, ObjectId};
use pando_base::{Error, Result, Timestamp};
use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

/// A whole BSON document (or array) as bytes: 4-byte length, elements, terminating zero.
#[repr(transparent)]
#[derive(PartialEq, Eq)]
pub struct RawDoc([u8]);

/// First double above every `i64`.
const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;

/// Stands for a name that is not UTF-8 where words are looked for: it is none of them, and no path.
pub const NOT_A_WORD: &str = "$\u{FFFD}";

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
    #[inline]
    pub fn elem(&self, name: impl AsName) -> Option<Elem<'_>> {
        let name = name.name_bytes();
        self.iter().find(|e| e.is_named(name))
    }
    /// The value of the first element of that name.
    #[inline]
    pub fn get(&self, name: impl AsName) -> Option<Value<'_>> {
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
        f.debug_map().entries(self.iter().map(|e| (e.shown_name(), e.value()))).finish()
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
    /// The field name where it is a word of the language; [`NOT_A_WORD`] when its bytes are not UTF-8. Names that are
    /// data are copied and compared as [`Elem::name_bytes`], names that lead somewhere are [`Elem::path`]s.
    #[inline]
    pub fn name(&self) -> &'a str {
        std::str::from_utf8(self.name).unwrap_or(NOT_A_WORD)
    }
    /// The field name as it is stored.
    #[inline]
    pub fn name_bytes(&self) -> &'a [u8] {
        self.name
    }
    /// The field name as a path, which has to be UTF-8.
    #[inline]
    pub fn path(&self) -> Result<&'a str> {
        std::str::from_utf8(self.name).map_err(|_| self.not_a_path())
    }
    #[cold]
    fn not_a_path(&self) -> Error {
        Error::bad_value(format!("a path has to be UTF-8, which '{}' is not", self.shown_name()))
    }
    /// The field name if it is UTF-8.
    #[inline]
    pub fn utf8_name(&self) -> Option<&'a str> {
        std::str::from_utf8(self.name).ok()
    }
    /// The field name for messages: what is not UTF-8 is shown as U+FFFD.
    pub fn shown_name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.name)
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
        write!(f, "{}: {:?}", self.shown_name(), self.value())
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
    /// A string, or another type that holds one, whose bytes are not UTF-8.
    NotUtf8(NotUtf8<'a>),
}

/// A value whose text is not UTF-8: stored, compared and returned as its bytes.
#[derive(Clone, Copy)]
pub struct NotUtf8<'a> {
    ty: ElementType,
    data: &'a [u8],
}

/// The texts of a value as bytes, whether UTF-8 or not.
#[derive(Clone, Copy)]
pub enum Texts<'a> {
    String(&'a [u8]),
    Symbol(&'a [u8]),
    JavaScript(&'a [u8]),
    JavaScriptWithScope { code: &'a [u8], scope: &'a RawDoc },
    Regex { pattern: &'a [u8], options: &'a [u8] },
    DbPointer { ns: &'a [u8], id: ObjectId },
}

impl<'a> NotUtf8<'a> {
    /// `None` when the encoded value is that of another type, or malformed.
    pub(crate) fn new(ty: ElementType, data: &'a [u8]) -> Option<NotUtf8<'a>> {
        texts(ty, data).map(|_| NotUtf8 { ty, data })
    }
    pub fn element_type(&self) -> ElementType {
        self.ty
    }
    /// The encoded value.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }
    pub fn texts(&self) -> Texts<'a> {
        texts(self.ty, self.data).unwrap_or(Texts::String(&[]))
    }
}

impl fmt::Debug for NotUtf8<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.texts() {
            Texts::String(s) | Texts::Symbol(s) | Texts::JavaScript(s) => s,
            Texts::JavaScriptWithScope { code, .. } => code,
            Texts::Regex { pattern, .. } => pattern,
            Texts::DbPointer { ns, .. } => ns,
        };
        write!(f, "NotUtf8({}, \"{}\")", self.ty.name(), text.escape_ascii())
    }
}

fn texts(ty: ElementType, data: &[u8]) -> Option<Texts<'_>> {
    Some(match ty {
        ElementType::String => Texts::String(counted_bytes(data)?.0),
        ElementType::Symbol => Texts::Symbol(counted_bytes(data)?.0),
        ElementType::JavaScript => Texts::JavaScript(counted_bytes(data)?.0),
        ElementType::JavaScriptWithScope => {
            let (code, end) = counted_bytes(data.get(4..)?)?;
            Texts::JavaScriptWithScope { code, scope: RawDoc::trusted(data.get(4 + end..)?) }
        }
        ElementType::Regex => {
            let mut parts = data.split(|b| *b == 0);
            Texts::Regex { pattern: parts.next()?, options: parts.next()? }
        }
        ElementType::DbPointer => {
            let (ns, end) = counted_bytes(data)?;
            Texts::DbPointer { ns, id: ObjectId(*data.get(end..)?.first_chunk()?) }
        }
        _ => return None,
    })
}

impl<'a> Texts<'a> {
    /// The value with its type; `None` when a text is not UTF-8.
    fn value(self) -> Option<Value<'a>> {
        Some(match self {
            Texts::String(s) => Value::String(text(s)?),
            Texts::Symbol(s) => Value::Symbol(text(s)?),
            Texts::JavaScript(s) => Value::JavaScript(text(s)?),
            Texts::JavaScriptWithScope { code, scope } => {
                Value::JavaScriptWithScope { code: text(code)?, scope }
            }
            Texts::Regex { pattern, options } => {
                Value::Regex { pattern: text(pattern)?, options: text(options)? }
            }
            Texts::DbPointer { ns, id } => Value::DbPointer { ns: text(ns)?, id },
        })
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// What a counted string holds, without the zero behind it, and where it ends.
#[inline]
fn counted_bytes(data: &[u8]) -> Option<(&[u8], usize)> {
    let len = le_u32(data)?;
    let body = data.get(4..4usize.checked_add(len)?)?;
    let (_, s) = body.split_last()?;
    Some((s, 4 + len))
}

#[inline]
fn decode(ty: ElementType, data: &[u8]) -> Option<Value<'_>> {
    Some(match ty {
        ElementType::Double => Value::Double(f64::from_le_bytes(*data.first_chunk()?)),
        ElementType::String => match text(counted_bytes(data)?.0) {
            Some(s) => Value::String(s),
            None => Value::NotUtf8(NotUtf8 { ty, data }),
        },
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
        ElementType::Symbol
        | ElementType::JavaScript
        | ElementType::JavaScriptWithScope
        | ElementType::Regex
        | ElementType::DbPointer => match texts(ty, data)?.value() {
            Some(v) => v,
            None => Value::NotUtf8(NotUtf8 { ty, data }),
        },
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
            Value::NotUtf8(v) => v.ty,
        }
    }
    /// The texts that it holds, for what works on bytes.
    pub fn texts(&self) -> Option<Texts<'a>> {
        Some(match *self {
            Value::String(s) => Texts::String(s.as_bytes()),
            Value::Symbol(s) => Texts::Symbol(s.as_bytes()),
            Value::JavaScript(s) => Texts::JavaScript(s.as_bytes()),
            Value::JavaScriptWithScope { code, scope } => {
                Texts::JavaScriptWithScope { code: code.as_bytes(), scope }
            }
            Value::Regex { pattern, options } => {
                Texts::Regex { pattern: pattern.as_bytes(), options: options.as_bytes() }
            }
            Value::DbPointer { ns, id } => Texts::DbPointer { ns: ns.as_bytes(), id },
            Value::NotUtf8(v) => v.texts(),
            _ => return None,
        })
    }
    /// The bytes of a string, whether UTF-8 or not.
    pub fn string_bytes(&self) -> Option<&'a [u8]> {
        match self.texts()? {
            Texts::String(s) => Some(s),
            _ => None,
        }
    }
    pub fn type_name(&self) -> &'static str {
        self.element_type().name()
    }
    /// A string's characters; `None` also when its bytes are not UTF-8.
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

    /// A document of a string `s` and of a field, whose name and value are not UTF-8.
    fn odd() -> DocBuf {
        let mut b = DocBuilder::new();
        b.string_bytes("s", b"a\xFF").string_bytes(b"\xFEn".as_slice(), b"\xC3").str("t", "\u{E9}");
        b.finish()
    }

    #[test]
    fn what_is_not_utf8_is_kept_and_is_no_word() {
        let doc = odd();
        assert!(RawDoc::validate(doc.as_bytes()).is_ok());
        let elems: Vec<_> = doc.iter().collect();
        assert_eq!(elems[0].value().string_bytes(), Some(&b"a\xFF"[..]));
        assert_eq!((elems[0].value().as_str(), elems[0].value().type_name()), (None, "string"));
        assert_eq!((elems[1].name(), elems[1].name_bytes()), (NOT_A_WORD, &b"\xFEn"[..]));
        assert_eq!(elems[1].path().unwrap_err().code, pando_base::ErrorCode::BadValue);
        assert_eq!(elems[2].value().as_str(), Some("\u{E9}"));
        assert_eq!(doc.elem(b"\xFEn".as_slice()).map(|e| e.name_bytes()), Some(&b"\xFEn"[..]));
        assert!(doc.get(NOT_A_WORD).is_none());
        assert_eq!(doc.to_string(), "{ s: \"a\u{FFFD}\", \u{FFFD}n: \"\u{FFFD}\", t: \"\u{E9}\" }");
    }

    #[test]
    fn trees_keys_and_copies_of_what_is_not_utf8_are_byte_for_byte() {
        use crate::keystring::{Directions, KeyBuilder, KeyReader};
        let mut b = DocBuilder::new();
        let scope = odd();
        for (name, v) in [
            ("s", Texts::String(b"\x00\xFF\x01")),
            ("y", Texts::Symbol(b"\xFF")),
            ("j", Texts::JavaScript(b"\xFF")),
            ("w", Texts::JavaScriptWithScope { code: b"\xFF", scope: &scope }),
            ("r", Texts::Regex { pattern: b"\xFF", options: b"i" }),
            ("p", Texts::DbPointer { ns: b"\xFF.x", id: ObjectId([7; 12]) }),
        ] {
            b.texts(name, v);
        }
        b.raw_doc("d", &scope);
        let doc = b.finish();
        assert!(RawDoc::validate(doc.as_bytes()).is_ok());
        let tree = crate::Document::from(&*doc);
        assert_eq!(tree.to_raw().as_bytes(), doc.as_bytes());
        assert_eq!(crate::Bson::Document(tree.clone()), crate::Bson::Document(tree.clone()));
        let whole = Value::Document(&doc);
        assert_eq!(crate::hash_bson(&crate::Bson::Document(tree.clone())), crate::hash_value(whole));
        assert!(crate::compare::cmp_bson_value(&crate::Bson::Document(tree), whole, None).is_eq());
        for e in &*doc {
            let mut key = KeyBuilder::new(Directions(0));
            key.append(e.value());
            let mut by_elem = KeyBuilder::new(Directions(0));
            by_elem.append_elem(&e, None);
            assert_eq!(key.bytes(), by_elem.bytes());
            let mut back = DocBuilder::new();
            let mut reader = KeyReader::new(key.bytes(), Directions(0), key.type_bits());
            assert!(reader.next_into(&mut back, e.name()).unwrap());
            let mut same = DocBuilder::new();
            same.elem(e);
            assert_eq!(back.finish().as_bytes(), same.finish().as_bytes(), "{e:?}");
        }
    }

    #[test]
    fn strings_order_by_bytes_whether_utf8_or_not() {
        let texts: [&[u8]; 8] =
            [b"", b"a", b"a\x80", b"a\xC3", b"a\xC3\xA9", b"z", b"\xF0\x9F\x98\x80", b"\xFF"];
        let docs = texts.map(|s| {
            let mut b = DocBuilder::new();
            b.string_bytes("s", s);
            b.finish()
        });
        for (i, a) in docs.iter().enumerate() {
            for (j, b) in docs.iter().enumerate() {
                let (x, y) = (a.first().unwrap().value(), b.first().unwrap().value());
                assert_eq!(crate::cmp_values(x, y), i.cmp(&j));
                assert_eq!(crate::cmp_docs(a, b), i.cmp(&j));
                assert_eq!(crate::keystring::key_of(x).cmp(&crate::keystring::key_of(y)), i.cmp(&j));
                assert_eq!(crate::hash_value(x) == crate::hash_value(y), i == j);
                let (s, t) = (Texts::String(texts[i]), Texts::Symbol(texts[i]));
                let mut b = DocBuilder::new();
                b.texts("s", s).texts("t", t);
                let pair = b.finish();
                let two: Vec<_> = pair.iter().map(|e| e.value()).collect();
                assert!(crate::values_equal(two[0], two[1]));
                assert_eq!(crate::hash_value(two[0]), crate::hash_value(two[1]));
            }
        }
    }

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
