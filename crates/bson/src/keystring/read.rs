//! Keys back to values.

use super::type_bits::BitReader;
use super::{Directions, class, number};
use crate::builder::{ArrayBuilder, DocBuilder};
use crate::name::AsName;
use crate::owned::Bson;
use crate::raw::{DocBuf, RawDoc, Texts, Value};
use crate::types::ObjectId;
use pando_base::{Error, Result, Timestamp, limits};

/// Reads the fields of a key in order. Malformed keys give an error, never a panic.
#[derive(Clone)]
pub struct KeyReader<'a> {
    r: Reader<'a>,
    bits: BitReader<'a>,
    directions: Directions,
    field: usize,
}

impl<'a> KeyReader<'a> {
    /// `key` without its record id; `type_bits` as stored beside it.
    pub fn new(key: &'a [u8], directions: Directions, type_bits: &'a [u8]) -> KeyReader<'a> {
        KeyReader { r: Reader::new(key), bits: BitReader::new(type_bits), directions, field: 0 }
    }
    /// Bytes read so far: the end of the last field.
    pub fn position(&self) -> usize {
        self.r.at
    }
    /// The next field; `None` at the end of the key.
    pub fn next_value(&mut self) -> Result<Option<Bson>> {
        let mut b = DocBuilder::new();
        match self.next_into(&mut b, "")? {
            true => Ok(b.finish().first().map(|e| Bson::from(e.value()))),
            false => Ok(None),
        }
    }
    /// Appends the next field to a document under `name`; false at the end of the key.
    pub fn next_into(&mut self, out: &mut DocBuilder, name: impl AsName) -> Result<bool> {
        if self.r.is_at_end() {
            return Ok(false);
        }
        self.open_field();
        self.r.value(&mut self.bits, 0, &mut Sink::Field(out, name.name_bytes())).ok_or_else(malformed)?;
        Ok(true)
    }
    /// Moves past the next field without reading it; false at the end. The type bits of skipped numbers are
    /// not consumed, so read values only before the first skip.
    pub fn skip(&mut self) -> Result<bool> {
        if self.r.is_at_end() {
            return Ok(false);
        }
        self.open_field();
        self.r.skip(0).ok_or_else(malformed)?;
        Ok(true)
    }
    fn open_field(&mut self) {
        self.r.mask = if self.directions.is_descending(self.field) { 0xFF } else { 0 };
        self.field += 1;
    }
}

#[cold]
fn malformed() -> Error {
    Error::internal("index key cannot be decoded")
}

/// Bytes with the inversion of the current field taken off.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    mask: u8,
}

/// Where a value goes.
enum Sink<'s> {
    Field(&'s mut DocBuilder, &'s [u8]),
    Item(&'s mut ArrayBuilder),
}

impl Sink<'_> {
    fn put(&mut self, v: Value<'_>) {
        match self {
            Sink::Field(b, name) => {
                b.value(*name, v);
            }
            Sink::Item(b) => {
                b.value(v);
            }
        }
    }
    fn put_texts(&mut self, v: Texts<'_>) {
        match self {
            Sink::Field(b, name) => {
                b.texts(*name, v);
            }
            Sink::Item(b) => {
                b.texts(v);
            }
        }
    }
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0, mask: 0 }
    }
    fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }
    /// Turns the inversion round: negative numbers invert once more.
    pub(super) fn flip(&mut self) {
        self.mask = !self.mask;
    }
    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let b = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(b ^ self.mask)
    }
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).map(|b| b ^ self.mask)
    }
    fn take(&mut self, len: usize) -> Option<Vec<u8>> {
        let raw = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(raw.iter().map(|b| b ^ self.mask).collect())
    }
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut out = [0; N];
        for b in &mut out {
            *b = self.byte()?;
        }
        Some(out)
    }
    fn text(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            match self.byte()? {
                0 => return Some(out),
                1 => out.push(self.byte()?.checked_sub(1).filter(|b| *b <= 1)?),
                b => out.push(b),
            }
        }
    }
    /// A part of a regular expression: one that holds a zero is no document's.
    fn pattern(&mut self) -> Option<Vec<u8>> {
        self.text().filter(|s| !s.contains(&0))
    }
    fn name(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            match self.byte()? {
                0 => return Some(out),
                b => out.push(b),
            }
        }
    }
    fn binary_len(&mut self) -> Option<usize> {
        Some(match self.byte()? {
            0xFF => u32::from_be_bytes(self.array()?) as usize,
            short => usize::from(short),
        })
    }

    fn value(&mut self, bits: &mut BitReader<'_>, depth: usize, out: &mut Sink<'_>) -> Option<()> {
        let head = self.byte()?;
        match head {
            class::MIN_KEY => out.put(Value::MinKey),
            class::UNDEFINED => out.put(Value::Undefined),
            class::NULL => out.put(Value::Null),
            number::FIRST..=number::LAST => {
                let v = number::take(self, head, bits)?;
                out.put(v);
            }
            class::STRING => {
                let symbol = bits.take(1) == 1;
                let s = self.text()?;
                out.put_texts(if symbol { Texts::Symbol(&s) } else { Texts::String(&s) });
            }
            class::OBJECT => {
                let doc = self.fields(bits, depth + 1)?;
                out.put(Value::Document(&doc));
            }
            class::ARRAY => {
                let items = self.items(bits, depth)?;
                out.put(Value::Array(&items));
            }
            class::BINARY => {
                let len = self.binary_len()?;
                let subtype = self.byte()?;
                let bytes = self.take(len)?;
                out.put(Value::Binary { subtype, bytes: &bytes });
            }
            class::OBJECT_ID => {
                let id = ObjectId(self.array()?);
                out.put(Value::ObjectId(id));
            }
            class::FALSE => out.put(Value::Boolean(false)),
            class::TRUE => out.put(Value::Boolean(true)),
            class::DATE => {
                let ms = (u64::from_be_bytes(self.array()?) ^ 1 << 63) as i64;
                out.put(Value::DateTime(ms));
            }
            class::TIMESTAMP => {
                let t = Timestamp(u64::from_be_bytes(self.array()?));
                out.put(Value::Timestamp(t));
            }
            class::REGEX => {
                let (pattern, options) = (self.pattern()?, self.pattern()?);
                out.put_texts(Texts::Regex { pattern: &pattern, options: &options });
            }
            class::DB_POINTER => {
                let len = u32::from_be_bytes(self.array()?) as usize;
                let ns = self.take(len)?;
                let id = ObjectId(self.array()?);
                out.put_texts(Texts::DbPointer { ns: &ns, id });
            }
            class::CODE => {
                let code = self.text()?;
                out.put_texts(Texts::JavaScript(&code));
            }
            class::CODE_WITH_SCOPE => {
                let code = self.text()?;
                let scope = self.fields(bits, depth + 1)?;
                out.put_texts(Texts::JavaScriptWithScope { code: &code, scope: &scope });
            }
            class::MAX_KEY => out.put(Value::MaxKey),
            _ => return None,
        }
        Some(())
    }
    fn items(&mut self, bits: &mut BitReader<'_>, depth: usize) -> Option<DocBuf> {
        if depth >= limits::BSON_DEPTH_MAX {
            return None;
        }
        let mut items = ArrayBuilder::new();
        while self.peek()? != class::END {
            self.value(bits, depth + 1, &mut Sink::Item(&mut items))?;
        }
        self.byte()?;
        Some(items.finish())
    }
    fn fields(&mut self, bits: &mut BitReader<'_>, depth: usize) -> Option<DocBuf> {
        if depth > limits::BSON_DEPTH_MAX {
            return None;
        }
        let mut doc = DocBuilder::new();
        while self.byte()? != class::END {
            let name = self.name()?;
            self.value(bits, depth, &mut Sink::Field(&mut doc, &name))?;
        }
        Some(doc.finish())
    }

    fn advance(&mut self, len: usize) -> Option<()> {
        self.at = self.at.checked_add(len).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }
    fn skip_text(&mut self) -> Option<()> {
        while self.byte()? != 0 {}
        Some(())
    }
    fn skip(&mut self, depth: usize) -> Option<()> {
        if depth > limits::BSON_DEPTH_MAX {
            return None;
        }
        let head = self.byte()?;
        match head {
            class::MIN_KEY | class::UNDEFINED | class::NULL | class::MAX_KEY => Some(()),
            class::FALSE | class::TRUE => Some(()),
            number::FIRST..=number::LAST => number::skip(self, head),
            class::STRING | class::CODE => self.skip_text(),
            class::OBJECT => self.skip_fields(depth + 1),
            class::ARRAY => {
                while self.peek()? != class::END {
                    self.skip(depth + 1)?;
                }
                self.advance(1)
            }
            class::BINARY => {
                let len = self.binary_len()?;
                self.advance(len.checked_add(1)?)
            }
            class::OBJECT_ID => self.advance(12),
            class::DATE | class::TIMESTAMP => self.advance(8),
            class::REGEX => self.skip_text().and_then(|()| self.skip_text()),
            class::DB_POINTER => {
                let len = u32::from_be_bytes(self.array()?) as usize;
                self.advance(len.checked_add(12)?)
            }
            class::CODE_WITH_SCOPE => {
                self.skip_text()?;
                self.skip_fields(depth + 1)
            }
            _ => None,
        }
    }
    fn skip_fields(&mut self, depth: usize) -> Option<()> {
        while self.byte()? != class::END {
            self.skip_text()?;
            self.skip(depth)?;
        }
        Some(())
    }
}

/// The fields of a key as a document under the names of a key pattern, for errors and `returnKey`.
pub fn key_document(
    key: &[u8],
    directions: Directions,
    type_bits: &[u8],
    pattern: &RawDoc,
) -> Result<DocBuf> {
    let mut reader = KeyReader::new(key, directions, type_bits);
    let mut out = DocBuilder::new();
    for e in pattern {
        if !reader.next_into(&mut out, e.name_bytes())? {
            break;
        }
    }
    Ok(out.finish())
}
