//! Building documents straight into bytes.

use crate::name::AsName;
use crate::owned::{Bson, Document};
use crate::raw::{DocBuf, Elem, RawDoc, Texts, Value};
use crate::types::{Decimal128, ElementType, ObjectId};
use pando_base::Timestamp;

/// Appends elements to a growing document; [`DocBuilder::finish`] closes it.
///
/// Nested documents share the buffer: `b.doc("a", |a| { a.i32("x", 1); })`.
#[derive(Debug)]
pub struct DocBuilder {
    buf: Vec<u8>,
    start: usize,
}

impl Default for DocBuilder {
    fn default() -> Self {
        DocBuilder::new()
    }
}

/// From here on a value is given just the room it takes.
const LARGE: usize = 1 << 20;
/// For names, lengths and ends that stand around it.
const AROUND: usize = 4096;

impl DocBuilder {
    pub fn new() -> DocBuilder {
        DocBuilder::with_capacity(128)
    }
    pub fn with_capacity(bytes: usize) -> DocBuilder {
        DocBuilder::append_to(Vec::with_capacity(bytes))
    }
    /// Starts a document at the end of an existing buffer; get the buffer back with [`DocBuilder::into_buffer`].
    pub fn append_to(mut buf: Vec<u8>) -> DocBuilder {
        let start = buf.len();
        buf.extend_from_slice(&[0; 4]);
        DocBuilder { buf, start }
    }
    /// Bytes so far, header included.
    pub fn byte_len(&self) -> usize {
        self.buf.len() - self.start
    }
    /// Bytes that fit before the buffer must grow.
    pub fn spare_capacity(&self) -> usize {
        self.buf.capacity() - self.buf.len()
    }
    /// Makes room for exactly `bytes` more.
    pub fn reserve_exact(&mut self, bytes: usize) {
        self.buf.reserve_exact(bytes);
    }
    /// Length of the whole buffer so far, what stood before this document included.
    pub fn buffer_len(&self) -> usize {
        self.buf.len()
    }
    fn close(&mut self, start: usize) {
        self.buf.push(0);
        let len = (self.buf.len() - start) as u32;
        self.buf[start..start + 4].copy_from_slice(&len.to_le_bytes());
    }
    pub fn finish(mut self) -> DocBuf {
        debug_assert_eq!(self.start, 0);
        self.close(self.start);
        DocBuf(self.buf)
    }
    /// Closes the document and returns the whole buffer it was appended to.
    pub fn into_buffer(mut self) -> Vec<u8> {
        self.close(self.start);
        self.buf
    }
    #[inline]
    fn head(&mut self, ty: ElementType, name: &[u8]) {
        self.buf.push(ty as u8);
        // A NUL would cut the name short and shift everything after it.
        debug_assert!(!name.contains(&0));
        self.buf.extend_from_slice(name);
        self.buf.push(0);
    }
    /// Copies an already encoded value under a new name.
    #[inline]
    pub fn raw(&mut self, ty: ElementType, name: impl AsName, data: &[u8]) -> &mut Self {
        self.head(ty, name.name_bytes());
        self.copy(data);
        self
    }
    #[inline]
    fn copy(&mut self, data: &[u8]) {
        if data.len() >= LARGE {
            self.make_room(data.len());
        }
        self.buf.extend_from_slice(data);
    }
    /// For a large value and what ends it. Doubling would take twice as much as there is.
    #[cold]
    fn make_room(&mut self, bytes: usize) {
        let wanted = bytes + AROUND;
        if self.spare_capacity() < wanted {
            self.buf.reserve_exact(wanted.max(self.buf.len() / 4));
        }
    }
    /// Copies an element as it is.
    #[inline]
    pub fn elem(&mut self, e: Elem<'_>) -> &mut Self {
        self.buf.push(e.ty as u8);
        self.buf.extend_from_slice(e.name_bytes());
        self.buf.push(0);
        self.copy(e.data());
        self
    }
    /// Copies all elements of a document.
    pub fn elems_of(&mut self, doc: &RawDoc) -> &mut Self {
        let bytes = doc.as_bytes();
        self.copy(bytes.get(4..bytes.len() - 1).unwrap_or_default());
        self
    }
    pub fn f64(&mut self, name: &str, v: f64) -> &mut Self {
        self.raw(ElementType::Double, name, &v.to_le_bytes())
    }
    pub fn i32(&mut self, name: &str, v: i32) -> &mut Self {
        self.raw(ElementType::Int32, name, &v.to_le_bytes())
    }
    pub fn i64(&mut self, name: &str, v: i64) -> &mut Self {
        self.raw(ElementType::Int64, name, &v.to_le_bytes())
    }
    /// An int32 where the number fits, else an int64: how MongoDB stores whole numbers of definitions.
    pub fn i32_or_i64(&mut self, name: &str, v: i64) -> &mut Self {
        match i32::try_from(v) {
            Ok(small) => self.i32(name, small),
            Err(_) => self.i64(name, v),
        }
    }
    pub fn bool(&mut self, name: &str, v: bool) -> &mut Self {
        self.raw(ElementType::Boolean, name, &[u8::from(v)])
    }
    pub fn null(&mut self, name: &str) -> &mut Self {
        self.raw(ElementType::Null, name, &[])
    }
    /// Milliseconds since the Unix epoch.
    pub fn date(&mut self, name: &str, ms: i64) -> &mut Self {
        self.raw(ElementType::DateTime, name, &ms.to_le_bytes())
    }
    pub fn timestamp(&mut self, name: &str, v: Timestamp) -> &mut Self {
        self.raw(ElementType::Timestamp, name, &v.0.to_le_bytes())
    }
    pub fn object_id(&mut self, name: &str, v: ObjectId) -> &mut Self {
        self.raw(ElementType::ObjectId, name, &v.0)
    }
    pub fn decimal(&mut self, name: &str, v: Decimal128) -> &mut Self {
        self.raw(ElementType::Decimal128, name, &v.0)
    }
    fn counted(&mut self, ty: ElementType, name: &[u8], s: &[u8]) -> &mut Self {
        self.head(ty, name);
        self.buf.extend_from_slice(&(s.len() as u32 + 1).to_le_bytes());
        self.buf.extend_from_slice(s);
        self.buf.push(0);
        self
    }
    pub fn str(&mut self, name: impl AsName, s: &str) -> &mut Self {
        self.counted(ElementType::String, name.name_bytes(), s.as_bytes())
    }
    pub fn binary(&mut self, name: impl AsName, subtype: u8, bytes: &[u8]) -> &mut Self {
        self.head(ElementType::Binary, name.name_bytes());
        self.buf.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.buf.push(subtype);
        self.buf.extend_from_slice(bytes);
        self
    }
    /// Subtype 4.
    pub fn uuid(&mut self, name: &str, v: &[u8; 16]) -> &mut Self {
        self.binary(name, 4, v)
    }
    pub fn regex(&mut self, name: impl AsName, pattern: &str, options: &str) -> &mut Self {
        self.texts(name, Texts::Regex { pattern: pattern.as_bytes(), options: options.as_bytes() })
    }
    /// A string of any bytes.
    pub fn string_bytes(&mut self, name: impl AsName, s: &[u8]) -> &mut Self {
        self.counted(ElementType::String, name.name_bytes(), s)
    }
    /// A value that holds texts, which may be any bytes (in regular expressions, none that are zero).
    pub fn texts(&mut self, name: impl AsName, v: Texts<'_>) -> &mut Self {
        let name = name.name_bytes();
        match v {
            Texts::String(s) => self.counted(ElementType::String, name, s),
            Texts::Symbol(s) => self.counted(ElementType::Symbol, name, s),
            Texts::JavaScript(s) => self.counted(ElementType::JavaScript, name, s),
            Texts::JavaScriptWithScope { code, scope } => {
                self.head(ElementType::JavaScriptWithScope, name);
                let len = 4 + 4 + code.len() + 1 + scope.byte_len();
                self.buf.extend_from_slice(&(len as u32).to_le_bytes());
                self.buf.extend_from_slice(&(code.len() as u32 + 1).to_le_bytes());
                self.buf.extend_from_slice(code);
                self.buf.push(0);
                self.buf.extend_from_slice(scope.as_bytes());
                self
            }
            Texts::Regex { pattern, options } => {
                self.head(ElementType::Regex, name);
                for part in [pattern, options] {
                    self.buf.extend_from_slice(part);
                    self.buf.push(0);
                }
                self
            }
            Texts::DbPointer { ns, id } => {
                self.counted(ElementType::DbPointer, name, ns);
                self.buf.extend_from_slice(&id.0);
                self
            }
        }
    }
    /// A nested document copied from bytes.
    pub fn raw_doc(&mut self, name: impl AsName, doc: &RawDoc) -> &mut Self {
        self.raw(ElementType::Document, name, doc.as_bytes())
    }
    /// A nested array copied from bytes.
    pub fn raw_array(&mut self, name: impl AsName, array: &RawDoc) -> &mut Self {
        self.raw(ElementType::Array, name, array.as_bytes())
    }
    /// A nested document written in place.
    pub fn doc(&mut self, name: impl AsName, fill: impl FnOnce(&mut DocBuilder)) -> &mut Self {
        self.head(ElementType::Document, name.name_bytes());
        self.nested(fill)
    }
    /// Opens a nested document or array that is written across calls (a batch filled as rows arrive); end it with
    /// [`DocBuilder::close_nested`] before anything else goes into the outer document.
    pub fn open_nested(&mut self, ty: ElementType, name: impl AsName) -> Nested {
        self.head(ty, name.name_bytes());
        let at = self.buf.len();
        self.buf.extend_from_slice(&[0; 4]);
        Nested(at)
    }
    pub fn close_nested(&mut self, nested: Nested) -> &mut Self {
        self.close(nested.0);
        self
    }
    fn nested(&mut self, fill: impl FnOnce(&mut DocBuilder)) -> &mut Self {
        let mut inner = DocBuilder::append_to(std::mem::take(&mut self.buf));
        fill(&mut inner);
        self.buf = inner.into_buffer();
        self
    }
    /// A nested array written in place.
    pub fn array(&mut self, name: impl AsName, fill: impl FnOnce(&mut ArrayBuilder)) -> &mut Self {
        self.head(ElementType::Array, name.name_bytes());
        let mut inner = ArrayBuilder { doc: DocBuilder::append_to(std::mem::take(&mut self.buf)), next: 0 };
        fill(&mut inner);
        self.buf = inner.doc.into_buffer();
        self
    }
    pub fn value(&mut self, name: impl AsName, v: Value<'_>) -> &mut Self {
        let name = name.name_bytes();
        match v {
            Value::Double(d) => self.raw(ElementType::Double, name, &d.to_le_bytes()),
            Value::String(s) => self.counted(ElementType::String, name, s.as_bytes()),
            Value::Document(d) => self.raw_doc(name, d),
            Value::Array(a) => self.raw_array(name, a),
            Value::Binary { subtype, bytes } => self.binary(name, subtype, bytes),
            Value::Undefined => self.raw(ElementType::Undefined, name, &[]),
            Value::ObjectId(o) => self.raw(ElementType::ObjectId, name, &o.0),
            Value::Boolean(b) => self.raw(ElementType::Boolean, name, &[u8::from(b)]),
            Value::DateTime(ms) => self.raw(ElementType::DateTime, name, &ms.to_le_bytes()),
            Value::Null => self.raw(ElementType::Null, name, &[]),
            Value::Int32(n) => self.raw(ElementType::Int32, name, &n.to_le_bytes()),
            Value::Timestamp(t) => self.raw(ElementType::Timestamp, name, &t.0.to_le_bytes()),
            Value::Int64(n) => self.raw(ElementType::Int64, name, &n.to_le_bytes()),
            Value::Decimal128(d) => self.raw(ElementType::Decimal128, name, &d.0),
            Value::MinKey => self.raw(ElementType::MinKey, name, &[]),
            Value::MaxKey => self.raw(ElementType::MaxKey, name, &[]),
            Value::NotUtf8(v) => self.raw(v.element_type(), name, v.data()),
            Value::Symbol(s) => self.texts(name, Texts::Symbol(s.as_bytes())),
            Value::JavaScript(s) => self.texts(name, Texts::JavaScript(s.as_bytes())),
            Value::JavaScriptWithScope { code, scope } => {
                self.texts(name, Texts::JavaScriptWithScope { code: code.as_bytes(), scope })
            }
            Value::Regex { pattern, options } => self.regex(name, pattern, options),
            Value::DbPointer { ns, id } => self.texts(name, Texts::DbPointer { ns: ns.as_bytes(), id }),
        }
    }
    pub fn bson(&mut self, name: impl AsName, v: &Bson) -> &mut Self {
        match v {
            Bson::Document(d) => self.doc(name, |b| b.document(d)),
            Bson::Array(items) => self.array(name, |b| {
                for item in items {
                    b.bson(item);
                }
            }),
            Bson::JavaScriptWithScope(code, scope) => {
                let scope = scope.to_raw();
                self.value(name, Value::JavaScriptWithScope { code, scope: &scope })
            }
            Bson::NotUtf8(ty, data) => self.raw(*ty, name, data),
            scalar => self.value(name, scalar.scalar().unwrap_or(Value::Null)),
        }
    }
    /// Appends all fields of an owned document.
    pub fn document(&mut self, d: &Document) {
        for (name, v) in d.fields() {
            self.bson(name, v);
        }
    }
}

/// Where an open nested document starts; see [`DocBuilder::open_nested`].
#[derive(Debug)]
#[must_use]
pub struct Nested(usize);

/// Appends values to an array, numbering them.
#[derive(Debug)]
pub struct ArrayBuilder {
    doc: DocBuilder,
    next: u32,
}

impl Default for ArrayBuilder {
    fn default() -> Self {
        ArrayBuilder::new()
    }
}

impl ArrayBuilder {
    pub fn new() -> ArrayBuilder {
        ArrayBuilder { doc: DocBuilder::new(), next: 0 }
    }
    pub fn len(&self) -> usize {
        self.next as usize
    }
    pub fn is_empty(&self) -> bool {
        self.next == 0
    }
    pub fn byte_len(&self) -> usize {
        self.doc.byte_len()
    }
    fn with_name(&mut self, put: impl FnOnce(&mut DocBuilder, &[u8])) {
        let mut digits = [0u8; 10];
        let mut at = digits.len();
        let mut n = self.next;
        loop {
            at -= 1;
            digits[at] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                break;
            }
        }
        self.next += 1;
        put(&mut self.doc, &digits[at..]);
    }
    pub fn value(&mut self, v: Value<'_>) -> &mut Self {
        self.with_name(|b, name| {
            b.value(name, v);
        });
        self
    }
    pub fn bson(&mut self, v: &Bson) -> &mut Self {
        self.with_name(|b, name| {
            b.bson(name, v);
        });
        self
    }
    pub fn str(&mut self, s: &str) -> &mut Self {
        self.value(Value::String(s))
    }
    /// A string of any bytes.
    pub fn string_bytes(&mut self, s: &[u8]) -> &mut Self {
        self.with_name(|b, name| {
            b.string_bytes(name, s);
        });
        self
    }
    /// A value that holds texts, which may be any bytes.
    pub fn texts(&mut self, v: Texts<'_>) -> &mut Self {
        self.with_name(|b, name| {
            b.texts(name, v);
        });
        self
    }
    pub fn raw_doc(&mut self, doc: &RawDoc) -> &mut Self {
        self.value(Value::Document(doc))
    }
    /// Copies an encoded value.
    pub fn raw(&mut self, ty: ElementType, data: &[u8]) -> &mut Self {
        self.with_name(|b, name| {
            b.raw(ty, name, data);
        });
        self
    }
    pub fn doc(&mut self, fill: impl FnOnce(&mut DocBuilder)) -> &mut Self {
        self.with_name(|b, name| {
            b.doc(name, fill);
        });
        self
    }
    pub fn array(&mut self, fill: impl FnOnce(&mut ArrayBuilder)) -> &mut Self {
        self.with_name(|b, name| {
            b.array(name, fill);
        });
        self
    }
    /// The array as a document of numbered fields.
    pub fn finish(self) -> DocBuf {
        self.doc.finish()
    }
}
