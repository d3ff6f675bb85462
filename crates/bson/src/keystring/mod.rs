//! Order-preserving keys: bytes whose `memcmp` order is the order of [`crate::compare`], field by field,
//! with descending fields turned round.
//!
//! ```text
//! key    = field*  [record id]
//! field  = class byte, payload        every bit inverted when the field is descending
//! ```
//!
//! * **Prefix-free.** No field's encoding is a prefix of another's, so fields need no separator and a bound may
//!   stop after any field: its bytes come before every key that continues them, the same bytes and
//!   [`AFTER`] come after all of these ([`KeyBuilder::finish_before`], [`KeyBuilder::finish_after`]).
//! * **Numbers of all types share one encoding** (module `number`): 1, 1L, 1.0 and decimal 1.00 give the same
//!   bytes, so a unique index sees one key. What was lost, [`TypeBits`] keep beside the key: with them a
//!   covered query returns the very value that was indexed.
//! * **Compact**: small integers take two bytes, an ObjectId thirteen, a string its length and two.
//!
//! Strings may be replaced by a collation's sort keys ([`KeyBuilder::append_with`]); such keys order and compare
//! but the strings cannot be read back. The record id behind the fields is read from the end
//! ([`split_record_id`], [`split_record_key`]), so nothing needs to be decoded to find it.

mod number;
mod read;
mod record;
mod type_bits;

pub use read::{KeyReader, key_document};
pub use record::{append_record_id, append_record_key, split_record_id, split_record_key};
pub use type_bits::TypeBits;

use crate::compare::StringOrder;
use crate::raw::{Elem, RawDoc, Texts, Value};
use crate::types::ElementType;
use pando_base::limits;

/// Sorts behind everything that may follow a field.
pub const AFTER: u8 = 0xFF;

/// Class bytes. All lie strictly between 0x04 and 0xFB, also inverted.
mod class {
    pub(super) const MIN_KEY: u8 = 0x0A;
    pub(super) const UNDEFINED: u8 = 0x0F;
    pub(super) const NULL: u8 = 0x14;
    /// 0x1E to 0x35 are the numbers, see `number`.
    pub(super) const NUMBER: u8 = 0x1E;
    pub(super) const STRING: u8 = 0x3C;
    pub(super) const OBJECT: u8 = 0x46;
    pub(super) const ARRAY: u8 = 0x50;
    pub(super) const BINARY: u8 = 0x5A;
    pub(super) const OBJECT_ID: u8 = 0x64;
    pub(super) const FALSE: u8 = 0x6E;
    pub(super) const TRUE: u8 = 0x6F;
    pub(super) const DATE: u8 = 0x78;
    pub(super) const TIMESTAMP: u8 = 0x82;
    pub(super) const REGEX: u8 = 0x8C;
    pub(super) const DB_POINTER: u8 = 0x96;
    pub(super) const CODE: u8 = 0xA0;
    pub(super) const CODE_WITH_SCOPE: u8 = 0xAA;
    pub(super) const MAX_KEY: u8 = 0xF0;
    /// Ends the fields of an object or array; below every class byte.
    pub(super) const END: u8 = 0x00;
}

/// The byte that stands for a type's whole class in front of a nested field's name.
fn class_of(ty: ElementType) -> u8 {
    use ElementType::*;
    match ty {
        MinKey => class::MIN_KEY,
        Undefined => class::UNDEFINED,
        Null => class::NULL,
        Double | Int32 | Int64 | Decimal128 => class::NUMBER,
        String | Symbol => class::STRING,
        Document => class::OBJECT,
        Array => class::ARRAY,
        Binary => class::BINARY,
        ObjectId => class::OBJECT_ID,
        Boolean => class::FALSE,
        DateTime => class::DATE,
        Timestamp => class::TIMESTAMP,
        Regex => class::REGEX,
        DbPointer => class::DB_POINTER,
        JavaScript => class::CODE,
        JavaScriptWithScope => class::CODE_WITH_SCOPE,
        MaxKey => class::MAX_KEY,
    }
}

/// Which fields of a key run downwards: bit `i` is field `i`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Directions(pub u32);

impl Directions {
    pub const ASCENDING: Directions = Directions(0);

    /// From the numbers of a key pattern: below zero is descending.
    pub fn from_pattern(pattern: &RawDoc) -> Directions {
        let down = |e: Elem<'_>| e.value().as_f64().is_some_and(|n| n < 0.0);
        let bits = pattern.iter().take(32).enumerate();
        Directions(bits.fold(0, |bits, (i, e)| bits | u32::from(down(e)) << i))
    }
    #[inline]
    pub fn is_descending(self, field: usize) -> bool {
        field < 32 && self.0 >> field & 1 != 0
    }
}

/// Builds one key after another in the same buffer.
#[derive(Clone, Debug, Default)]
pub struct KeyBuilder {
    buf: Vec<u8>,
    bits: TypeBits,
    directions: Directions,
    field: usize,
    uncollated: bool,
}

impl KeyBuilder {
    pub fn new(directions: Directions) -> KeyBuilder {
        KeyBuilder { directions, ..KeyBuilder::default() }
    }
    /// Forgets the key so far; the buffers stay.
    pub fn clear(&mut self) {
        self.buf.clear();
        self.bits.clear();
        self.field = 0;
    }
    /// Forgets the key so far and takes other directions; the buffers stay.
    pub fn restart(&mut self, directions: Directions) {
        self.clear();
        self.directions = directions;
    }
    /// Whether a symbol has been appended beside a collation, which orders strings only; forgets it.
    pub fn take_uncollated(&mut self) -> bool {
        std::mem::take(&mut self.uncollated)
    }
    /// Fields appended so far.
    pub fn fields(&self) -> usize {
        self.field
    }
    /// The key so far.
    pub fn bytes(&self) -> &[u8] {
        &self.buf
    }
    /// What [`KeyReader`] needs beside the key to give values their types back; empty for the most usual ones
    /// (int32, strings, and everything that is not a number).
    pub fn type_bits(&self) -> &[u8] {
        self.bits.as_bytes()
    }
    /// Appends a value as the next field.
    #[inline]
    pub fn append(&mut self, v: Value<'_>) -> &mut Self {
        self.append_with(v, None)
    }
    /// Appends a value whose strings are ordered by a collation.
    pub fn append_with(&mut self, v: Value<'_>, order: Option<&dyn StringOrder>) -> &mut Self {
        let start = self.buf.len();
        self.writer(order).value(v, 0);
        self.close_field(start)
    }
    /// Appends a string of any bytes, ordered by its bytes.
    pub fn append_string_bytes(&mut self, s: &[u8]) -> &mut Self {
        let start = self.buf.len();
        self.writer(None).texts(Texts::String(s), 0);
        self.close_field(start)
    }
    /// Appends an element's value; strings are not decoded on the way.
    pub fn append_elem(&mut self, e: &Elem<'_>, order: Option<&dyn StringOrder>) -> &mut Self {
        if let (ElementType::String, None, [_, _, _, _, text @ .., _]) = (e.ty, order, e.data()) {
            let start = self.buf.len();
            let mut w = self.writer(order);
            w.bits.push(0, 1);
            w.buf.push(class::STRING);
            w.text(text);
            return self.close_field(start);
        }
        self.append_with(e.value(), order)
    }
    #[inline]
    fn writer<'w>(&'w mut self, order: Option<&'w dyn StringOrder>) -> Writer<'w> {
        Writer { buf: &mut self.buf, bits: &mut self.bits, order, uncollated: &mut self.uncollated }
    }
    #[inline]
    fn close_field(&mut self, start: usize) -> &mut Self {
        if self.directions.is_descending(self.field) {
            invert(&mut self.buf[start..]);
        }
        self.field += 1;
        self
    }
    /// Appends the record id; nothing may follow it.
    pub fn append_record_id(&mut self, id: i64) -> &mut Self {
        append_record_id(&mut self.buf, id);
        self
    }
    pub fn finish(self) -> Vec<u8> {
        self.buf
    }
    /// A bound just before every key that starts with these fields.
    pub fn finish_before(self) -> Vec<u8> {
        self.buf
    }
    /// A bound just after every key that starts with these fields.
    pub fn finish_after(mut self) -> Vec<u8> {
        self.buf.push(AFTER);
        self.buf
    }
}

/// The key of one ascending value, for maps keyed by values.
pub fn key_of(v: Value<'_>) -> Vec<u8> {
    let mut b = KeyBuilder::default();
    b.append(v);
    b.finish()
}

fn invert(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|b| *b = !*b);
}

/// Writes values ascending.
struct Writer<'a> {
    buf: &'a mut Vec<u8>,
    bits: &'a mut TypeBits,
    order: Option<&'a dyn StringOrder>,
    /// A symbol was met beside an order.
    uncollated: &'a mut bool,
}

impl Writer<'_> {
    #[inline]
    fn value(&mut self, v: Value<'_>, depth: usize) {
        match v {
            Value::Int32(n) => {
                self.bits.push(type_bits::INT32, 2);
                number::put_i64(self.buf, i64::from(n));
            }
            Value::ObjectId(o) => {
                self.buf.push(class::OBJECT_ID);
                self.buf.extend_from_slice(&o.0);
            }
            Value::String(s) => {
                self.bits.push(0, 1);
                self.string(s);
            }
            other => self.other(other, depth),
        }
    }
    fn other(&mut self, v: Value<'_>, depth: usize) {
        use Value::*;
        match v {
            Int64(n) => {
                self.bits.push(type_bits::INT64, 2);
                number::put_i64(self.buf, n);
            }
            Double(x) => number::put_f64(self.buf, self.bits, x),
            Decimal128(x) => number::put_decimal(self.buf, self.bits, x),
            Symbol(s) => {
                self.bits.push(1, 1);
                // Collations order strings only.
                *self.uncollated |= self.order.is_some();
                self.buf.push(class::STRING);
                self.text(s.as_bytes());
            }
            Document(d) => {
                self.buf.push(class::OBJECT);
                self.fields(d, depth + 1);
            }
            Array(d) => {
                self.buf.push(class::ARRAY);
                if depth < limits::BSON_DEPTH_MAX {
                    d.iter().for_each(|e| self.value(e.value(), depth + 1));
                }
                self.buf.push(class::END);
            }
            Binary { subtype, bytes } => self.binary(subtype, bytes),
            Boolean(b) => self.buf.push(if b { class::TRUE } else { class::FALSE }),
            DateTime(ms) => {
                self.buf.push(class::DATE);
                self.buf.extend_from_slice(&(ms as u64 ^ 1 << 63).to_be_bytes());
            }
            Timestamp(t) => {
                self.buf.push(class::TIMESTAMP);
                self.buf.extend_from_slice(&t.0.to_be_bytes());
            }
            Regex { pattern, options } => {
                self.buf.push(class::REGEX);
                self.text(pattern.as_bytes());
                self.text(options.as_bytes());
            }
            DbPointer { ns, id } => {
                self.buf.push(class::DB_POINTER);
                self.buf.extend_from_slice(&(ns.len() as u32).to_be_bytes());
                self.buf.extend_from_slice(ns.as_bytes());
                self.buf.extend_from_slice(&id.0);
            }
            JavaScript(code) => {
                self.buf.push(class::CODE);
                self.text(code.as_bytes());
            }
            JavaScriptWithScope { code, scope } => {
                self.buf.push(class::CODE_WITH_SCOPE);
                self.text(code.as_bytes());
                let before = *self.uncollated;
                self.fields(scope, depth + 1);
                *self.uncollated = before;
            }
            MinKey => self.buf.push(class::MIN_KEY),
            Undefined => self.buf.push(class::UNDEFINED),
            Null => self.buf.push(class::NULL),
            MaxKey => self.buf.push(class::MAX_KEY),
            NotUtf8(v) => self.texts(v.texts(), depth),
            // Already written by `value`.
            Int32(_) | ObjectId(_) | String(_) => {}
        }
    }
    /// As the same value whose texts are UTF-8.
    #[cold]
    fn texts(&mut self, v: Texts<'_>, depth: usize) {
        match v {
            Texts::String(s) => {
                self.bits.push(0, 1);
                match self.order {
                    Some(_) => self.string(&String::from_utf8_lossy(s)),
                    None => {
                        self.buf.push(class::STRING);
                        self.text(s);
                    }
                }
            }
            Texts::Symbol(s) => {
                self.bits.push(1, 1);
                *self.uncollated |= self.order.is_some();
                self.buf.push(class::STRING);
                self.text(s);
            }
            Texts::Regex { pattern, options } => {
                self.buf.push(class::REGEX);
                self.text(pattern);
                self.text(options);
            }
            Texts::DbPointer { ns, id } => {
                self.buf.push(class::DB_POINTER);
                self.buf.extend_from_slice(&(ns.len() as u32).to_be_bytes());
                self.buf.extend_from_slice(ns);
                self.buf.extend_from_slice(&id.0);
            }
            Texts::JavaScript(code) => {
                self.buf.push(class::CODE);
                self.text(code);
            }
            Texts::JavaScriptWithScope { code, scope } => {
                self.buf.push(class::CODE_WITH_SCOPE);
                self.text(code);
                self.fields(scope, depth + 1);
            }
        }
    }
    /// By length first, then by subtype.
    fn binary(&mut self, subtype: u8, bytes: &[u8]) {
        self.buf.push(class::BINARY);
        match u8::try_from(bytes.len()) {
            Ok(short) if short < 0xFF => self.buf.push(short),
            _ => {
                self.buf.push(0xFF);
                self.buf.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            }
        }
        self.buf.push(subtype);
        self.buf.extend_from_slice(bytes);
    }
    fn string(&mut self, s: &str) {
        self.buf.push(class::STRING);
        match self.order {
            None => self.text(s.as_bytes()),
            Some(order) => {
                let mut key = Vec::with_capacity(2 * s.len() + 8);
                order.sort_key(s, &mut key);
                self.text(&key);
            }
        }
    }
    /// Ends with a zero; a zero inside becomes 01 01 and a one 01 02, which keeps the order and leaves no
    /// encoding a prefix of another.
    #[inline]
    fn text(&mut self, bytes: &[u8]) {
        if bytes.iter().all(|b| *b > 1) {
            self.buf.extend_from_slice(bytes);
        } else {
            for b in bytes {
                match b {
                    0 | 1 => self.buf.extend_from_slice(&[1, b + 1]),
                    _ => self.buf.push(*b),
                }
            }
        }
        self.buf.push(0);
    }
    /// Each field: class, name, value; the class comes first because it is compared first.
    fn fields(&mut self, doc: &RawDoc, depth: usize) {
        // Validated documents never nest deeper.
        if depth <= limits::BSON_DEPTH_MAX {
            for e in doc {
                self.buf.push(class_of(e.ty));
                self.buf.extend_from_slice(e.name_bytes());
                self.buf.push(0);
                self.value(e.value(), depth);
            }
        }
        self.buf.push(class::END);
    }
}
