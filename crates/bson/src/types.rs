//! Element types and the small value types.

use std::fmt;

/// The type byte of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum ElementType {
    Double = 0x01,
    String = 0x02,
    Document = 0x03,
    Array = 0x04,
    Binary = 0x05,
    Undefined = 0x06,
    ObjectId = 0x07,
    Boolean = 0x08,
    DateTime = 0x09,
    Null = 0x0A,
    Regex = 0x0B,
    DbPointer = 0x0C,
    JavaScript = 0x0D,
    Symbol = 0x0E,
    JavaScriptWithScope = 0x0F,
    Int32 = 0x10,
    Timestamp = 0x11,
    Int64 = 0x12,
    Decimal128 = 0x13,
    MaxKey = 0x7F,
    MinKey = 0xFF,
}

impl ElementType {
    pub const ALL: [ElementType; 21] = {
        use ElementType::*;
        [
            Double,
            String,
            Document,
            Array,
            Binary,
            Undefined,
            ObjectId,
            Boolean,
            DateTime,
            Null,
            Regex,
            DbPointer,
            JavaScript,
            Symbol,
            JavaScriptWithScope,
            Int32,
            Timestamp,
            Int64,
            Decimal128,
            MinKey,
            MaxKey,
        ]
    };

    pub fn from_byte(b: u8) -> Option<ElementType> {
        use ElementType::*;
        Some(match b {
            0x01 => Double,
            0x02 => String,
            0x03 => Document,
            0x04 => Array,
            0x05 => Binary,
            0x06 => Undefined,
            0x07 => ObjectId,
            0x08 => Boolean,
            0x09 => DateTime,
            0x0A => Null,
            0x0B => Regex,
            0x0C => DbPointer,
            0x0D => JavaScript,
            0x0E => Symbol,
            0x0F => JavaScriptWithScope,
            0x10 => Int32,
            0x11 => Timestamp,
            0x12 => Int64,
            0x13 => Decimal128,
            0x7F => MaxKey,
            0xFF => MinKey,
            _ => return None,
        })
    }

    /// The name used by `$type` and error messages.
    pub fn name(self) -> &'static str {
        use ElementType::*;
        match self {
            Double => "double",
            String => "string",
            Document => "object",
            Array => "array",
            Binary => "binData",
            Undefined => "undefined",
            ObjectId => "objectId",
            Boolean => "bool",
            DateTime => "date",
            Null => "null",
            Regex => "regex",
            DbPointer => "dbPointer",
            JavaScript => "javascript",
            Symbol => "symbol",
            JavaScriptWithScope => "javascriptWithScope",
            Int32 => "int",
            Timestamp => "timestamp",
            Int64 => "long",
            Decimal128 => "decimal",
            MaxKey => "maxKey",
            MinKey => "minKey",
        }
    }
    /// The type with this name.
    pub fn named(name: &str) -> Option<ElementType> {
        ElementType::ALL.into_iter().find(|t| t.name() == name)
    }
}

/// A 12-byte object id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 12]);

impl ObjectId {
    pub fn to_hex(self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }
    pub fn from_hex(s: &str) -> Option<ObjectId> {
        if s.len() != 24 || !s.is_ascii() {
            return None;
        }
        let mut out = [0; 12];
        for (i, byte) in out.iter_mut().enumerate() {
            *byte = u8::from_str_radix(s.get(i * 2..i * 2 + 2)?, 16).ok()?;
        }
        Some(ObjectId(out))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId('{}')", self.to_hex())
    }
}

/// IEEE 754-2008 decimal128 in BID encoding, as 16 little-endian bytes. Arithmetic is in `decimal128`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Decimal128(pub [u8; 16]);

/// Binary data with its subtype.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binary {
    pub subtype: u8,
    pub bytes: Vec<u8>,
}

/// A regular expression as stored: pattern and option letters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Regex {
    pub pattern: String,
    pub options: String,
}
