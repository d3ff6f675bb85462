//! Owned values and documents: trees, for code that changes them.

use crate::builder::DocBuilder;
use crate::name::{AsName, Name};
use crate::raw::{DocBuf, NotUtf8, RawDoc, Value};
use crate::types::{Binary, Decimal128, ElementType, ObjectId, Regex};
use pando_base::Timestamp;

/// An owned value.
///
/// `==` is structural identity (type and bits, NaN equals itself); MongoDB's equality across numeric types is
/// the comparison module's.
#[derive(Clone, Debug)]
pub enum Bson {
    Double(f64),
    String(String),
    Document(Document),
    Array(Vec<Bson>),
    Binary(Binary),
    Undefined,
    ObjectId(ObjectId),
    Boolean(bool),
    /// Milliseconds since the Unix epoch.
    DateTime(i64),
    Null,
    Regex(Regex),
    DbPointer(String, ObjectId),
    JavaScript(String),
    Symbol(String),
    JavaScriptWithScope(String, Document),
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
    /// A type that holds a text whose bytes are not UTF-8, with the encoded value.
    NotUtf8(ElementType, Vec<u8>),
}

impl Bson {
    /// A borrowed view of a scalar; `None` for documents, arrays and code with scope.
    pub fn scalar(&self) -> Option<Value<'_>> {
        Some(match self {
            Bson::Double(d) => Value::Double(*d),
            Bson::String(s) => Value::String(s),
            Bson::Binary(b) => Value::Binary { subtype: b.subtype, bytes: &b.bytes },
            Bson::Undefined => Value::Undefined,
            Bson::ObjectId(o) => Value::ObjectId(*o),
            Bson::Boolean(b) => Value::Boolean(*b),
            Bson::DateTime(ms) => Value::DateTime(*ms),
            Bson::Null => Value::Null,
            Bson::Regex(r) => Value::Regex { pattern: &r.pattern, options: &r.options },
            Bson::DbPointer(ns, id) => Value::DbPointer { ns, id: *id },
            Bson::JavaScript(s) => Value::JavaScript(s),
            Bson::Symbol(s) => Value::Symbol(s),
            Bson::Int32(n) => Value::Int32(*n),
            Bson::Timestamp(t) => Value::Timestamp(*t),
            Bson::Int64(n) => Value::Int64(*n),
            Bson::Decimal128(d) => Value::Decimal128(*d),
            Bson::MinKey => Value::MinKey,
            Bson::MaxKey => Value::MaxKey,
            Bson::NotUtf8(ty, data) => NotUtf8::new(*ty, data).map(Value::NotUtf8)?,
            Bson::Document(_) | Bson::Array(_) | Bson::JavaScriptWithScope(..) => return None,
        })
    }
    pub fn element_type(&self) -> ElementType {
        match self {
            Bson::Document(_) => ElementType::Document,
            Bson::Array(_) => ElementType::Array,
            Bson::JavaScriptWithScope(..) => ElementType::JavaScriptWithScope,
            Bson::NotUtf8(ty, _) => *ty,
            scalar => scalar.scalar().map_or(ElementType::Null, |v| v.element_type()),
        }
    }
    pub fn type_name(&self) -> &'static str {
        self.element_type().name()
    }
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Bson::String(s) => Some(s),
            _ => None,
        }
    }
    pub fn as_doc(&self) -> Option<&Document> {
        match self {
            Bson::Document(d) => Some(d),
            _ => None,
        }
    }
    pub fn as_array(&self) -> Option<&[Bson]> {
        match self {
            Bson::Array(a) => Some(a),
            _ => None,
        }
    }
    pub fn as_i64(&self) -> Option<i64> {
        self.scalar().and_then(|v| v.as_i64())
    }
    pub fn as_f64(&self) -> Option<f64> {
        self.scalar().and_then(|v| v.as_f64())
    }
    pub fn is_number(&self) -> bool {
        self.scalar().is_some_and(|v| v.is_number())
    }
    pub fn is_truthy(&self) -> bool {
        self.scalar().is_none_or(|v| v.is_truthy())
    }
}

impl PartialEq for Bson {
    fn eq(&self, other: &Bson) -> bool {
        match (self, other) {
            (Bson::Double(a), Bson::Double(b)) => a.to_bits() == b.to_bits() || a == b,
            (Bson::Document(a), Bson::Document(b)) => a == b,
            (Bson::Array(a), Bson::Array(b)) => a == b,
            (Bson::JavaScriptWithScope(a, s), Bson::JavaScriptWithScope(b, t)) => a == b && s == t,
            (Bson::String(a), Bson::String(b))
            | (Bson::JavaScript(a), Bson::JavaScript(b))
            | (Bson::Symbol(a), Bson::Symbol(b)) => a == b,
            (Bson::Binary(a), Bson::Binary(b)) => a == b,
            (Bson::Regex(a), Bson::Regex(b)) => a == b,
            (Bson::DbPointer(a, i), Bson::DbPointer(b, j)) => a == b && i == j,
            (Bson::ObjectId(a), Bson::ObjectId(b)) => a == b,
            (Bson::Boolean(a), Bson::Boolean(b)) => a == b,
            (Bson::DateTime(a), Bson::DateTime(b)) | (Bson::Int64(a), Bson::Int64(b)) => a == b,
            (Bson::Int32(a), Bson::Int32(b)) => a == b,
            (Bson::Timestamp(a), Bson::Timestamp(b)) => a == b,
            (Bson::Decimal128(a), Bson::Decimal128(b)) => a == b,
            (Bson::Undefined, Bson::Undefined)
            | (Bson::Null, Bson::Null)
            | (Bson::MinKey, Bson::MinKey)
            | (Bson::MaxKey, Bson::MaxKey) => true,
            (Bson::NotUtf8(a, x), Bson::NotUtf8(b, y)) => a == b && x == y,
            _ => false,
        }
    }
}

impl From<Value<'_>> for Bson {
    fn from(v: Value<'_>) -> Bson {
        match v {
            Value::Double(d) => Bson::Double(d),
            Value::String(s) => Bson::String(s.to_owned()),
            Value::Document(d) => Bson::Document(Document::from(d)),
            Value::Array(a) => Bson::Array(a.iter().map(|e| Bson::from(e.value())).collect()),
            Value::Binary { subtype, bytes } => Bson::Binary(Binary { subtype, bytes: bytes.to_vec() }),
            Value::Undefined => Bson::Undefined,
            Value::ObjectId(o) => Bson::ObjectId(o),
            Value::Boolean(b) => Bson::Boolean(b),
            Value::DateTime(ms) => Bson::DateTime(ms),
            Value::Null => Bson::Null,
            Value::Regex { pattern, options } => {
                Bson::Regex(Regex { pattern: pattern.to_owned(), options: options.to_owned() })
            }
            Value::DbPointer { ns, id } => Bson::DbPointer(ns.to_owned(), id),
            Value::JavaScript(s) => Bson::JavaScript(s.to_owned()),
            Value::Symbol(s) => Bson::Symbol(s.to_owned()),
            Value::JavaScriptWithScope { code, scope } => {
                Bson::JavaScriptWithScope(code.to_owned(), Document::from(scope))
            }
            Value::Int32(n) => Bson::Int32(n),
            Value::Timestamp(t) => Bson::Timestamp(t),
            Value::Int64(n) => Bson::Int64(n),
            Value::Decimal128(d) => Bson::Decimal128(d),
            Value::MinKey => Bson::MinKey,
            Value::MaxKey => Bson::MaxKey,
            Value::NotUtf8(v) => Bson::NotUtf8(v.element_type(), v.data().to_vec()),
        }
    }
}

macro_rules! from_native {
    ($($ty:ty => |$v:ident| $make:expr;)*) => {
        $(impl From<$ty> for Bson {
            fn from($v: $ty) -> Bson {
                $make
            }
        })*
    };
}
from_native! {
    f64 => |v| Bson::Double(v);
    &str => |v| Bson::String(v.to_owned());
    String => |v| Bson::String(v);
    bool => |v| Bson::Boolean(v);
    i32 => |v| Bson::Int32(v);
    i64 => |v| Bson::Int64(v);
    ObjectId => |v| Bson::ObjectId(v);
    Timestamp => |v| Bson::Timestamp(v);
    Document => |v| Bson::Document(v);
    Vec<Bson> => |v| Bson::Array(v);
    Decimal128 => |v| Bson::Decimal128(v);
}

/// An owned document: fields in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    fields: Vec<(Name, Bson)>,
}

impl Document {
    pub fn new() -> Document {
        Document::default()
    }
    pub fn len(&self) -> usize {
        self.fields.len()
    }
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Bson)> + ExactSizeIterator {
        self.fields.iter().map(|(k, v)| (k.as_str(), v))
    }
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Bson)> {
        self.fields.iter_mut().map(|(k, v)| (k.as_str(), v))
    }
    pub fn get(&self, name: impl AsName) -> Option<&Bson> {
        self.fields.iter().find(|(k, _)| k.as_bytes() == name.name_bytes()).map(|(_, v)| v)
    }
    pub fn get_mut(&mut self, name: impl AsName) -> Option<&mut Bson> {
        self.fields.iter_mut().find(|(k, _)| k.as_bytes() == name.name_bytes()).map(|(_, v)| v)
    }
    pub fn contains(&self, name: impl AsName) -> bool {
        self.get(name).is_some()
    }
    /// Appends without looking for an existing field.
    pub fn push(&mut self, name: impl Into<Name>, v: impl Into<Bson>) {
        self.fields.push((name.into(), v.into()));
    }
    /// Replaces in place, or appends.
    pub fn set(&mut self, name: impl Into<Name>, v: impl Into<Bson>) {
        let name = name.into();
        match self.fields.iter_mut().find(|(k, _)| *k == name) {
            Some((_, slot)) => *slot = v.into(),
            None => self.fields.push((name, v.into())),
        }
    }
    pub fn remove(&mut self, name: impl AsName) -> Option<Bson> {
        let i = self.fields.iter().position(|(k, _)| k.as_bytes() == name.name_bytes())?;
        Some(self.fields.remove(i).1)
    }
    pub fn insert_at(&mut self, index: usize, name: impl Into<Name>, v: impl Into<Bson>) {
        self.fields.insert(index, (name.into(), v.into()));
    }
    pub fn fields(&self) -> &[(Name, Bson)] {
        &self.fields
    }
    pub fn into_fields(self) -> Vec<(Name, Bson)> {
        self.fields
    }
    pub fn to_raw(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.document(self);
        b.finish()
    }
}

impl From<&RawDoc> for Document {
    fn from(raw: &RawDoc) -> Document {
        Document { fields: raw.iter().map(|e| (Name::from(e.name_bytes()), Bson::from(e.value()))).collect() }
    }
}

impl From<Vec<(String, Bson)>> for Document {
    fn from(fields: Vec<(String, Bson)>) -> Document {
        Document { fields: fields.into_iter().map(|(name, v)| (Name::from(name), v)).collect() }
    }
}

impl From<Vec<(Name, Bson)>> for Document {
    fn from(fields: Vec<(Name, Bson)>) -> Document {
        Document { fields }
    }
}

impl IntoIterator for Document {
    type Item = (Name, Bson);
    type IntoIter = std::vec::IntoIter<(Name, Bson)>;
    fn into_iter(self) -> Self::IntoIter {
        self.fields.into_iter()
    }
}

/// `doc! { "a": 1, "b": { "c": [1, 2] } }` as an owned [`Document`].
#[macro_export]
macro_rules! doc {
    () => { $crate::Document::new() };
    ($($rest:tt)+) => {{
        let mut document = $crate::Document::new();
        $crate::doc_fields!(document; $($rest)+);
        document
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! doc_fields {
    ($d:ident;) => {};
    ($d:ident; $k:literal : { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $d.push($k, $crate::doc! { $($inner)* });
        $( $crate::doc_fields!($d; $($rest)*); )?
    };
    ($d:ident; $k:literal : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $d.push($k, $crate::Bson::Array($crate::bson_array!($($inner)*)));
        $( $crate::doc_fields!($d; $($rest)*); )?
    };
    ($d:ident; $k:literal : $v:expr $(, $($rest:tt)*)?) => {
        $d.push($k, $crate::Bson::from($v));
        $( $crate::doc_fields!($d; $($rest)*); )?
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! bson_array {
    (@acc $a:ident;) => {};
    (@acc $a:ident; { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $a.push($crate::Bson::Document($crate::doc! { $($inner)* }));
        $( $crate::bson_array!(@acc $a; $($rest)*); )?
    };
    (@acc $a:ident; [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $a.push($crate::Bson::Array($crate::bson_array!($($inner)*)));
        $( $crate::bson_array!(@acc $a; $($rest)*); )?
    };
    (@acc $a:ident; $v:expr $(, $($rest:tt)*)?) => {
        $a.push($crate::Bson::from($v));
        $( $crate::bson_array!(@acc $a; $($rest)*); )?
    };
    ($($t:tt)*) => {{
        #[allow(unused_mut, clippy::vec_init_then_push)]
        let mut array: Vec<$crate::Bson> = Vec::new();
        $crate::bson_array!(@acc array; $($t)*);
        array
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_and_bytes_round_trip() {
        let d = doc! { "a": 1, "b": { "c": [1i64, "x", { "y": true }] }, "z": 1.5 };
        let raw = d.to_raw();
        assert_eq!(Document::from(&*raw), d);
        assert_eq!(raw.get_path("b.c").and_then(|v| v.as_array()).map(|a| a.count()), Some(3));
    }
}
