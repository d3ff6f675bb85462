//! Fields of the config servers' documents, with MongoDB's errors for those that are missing or of another type.

use pando_base::{Result, Timestamp, uuid::Uuid};
use pando_bson::fields::{missing, wrong_type};
use pando_bson::{ObjectId, RawDoc, Value};

/// A document of one kind, for its errors.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub(crate) kind: &'static str,
    pub(crate) doc: &'a RawDoc,
}

impl<'a> Fields<'a> {
    fn required<T>(self, name: &str, expected: &str, take: impl Fn(&Value<'a>) -> Option<T>) -> Result<T> {
        let v = self.doc.get(name).ok_or_else(|| missing(self.kind, name))?;
        take(&v).ok_or_else(|| wrong_type(self.kind, name, &v, &[expected]))
    }
    fn optional<T>(
        self,
        name: &str,
        expected: &str,
        take: impl Fn(&Value<'a>) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.doc.get(name) {
            None => Ok(None),
            Some(_) => self.required(name, expected, take).map(Some),
        }
    }
    pub(crate) fn text(self, name: &str) -> Result<&'a str> {
        self.required(name, "string", Value::as_str)
    }
    pub(crate) fn document(self, name: &str) -> Result<&'a RawDoc> {
        self.required(name, "object", Value::as_doc)
    }
    pub(crate) fn timestamp(self, name: &str) -> Result<Timestamp> {
        self.required(name, "timestamp", timestamp)
    }
    pub(crate) fn object_id(self, name: &str) -> Result<ObjectId> {
        self.required(name, "objectId", object_id)
    }
    pub(crate) fn uuid(self, name: &str) -> Result<Uuid> {
        self.required(name, "binData", uuid)
    }
    /// Null is none.
    pub(crate) fn optional_uuid(self, name: &str) -> Result<Option<Uuid>> {
        match self.doc.get(name) {
            Some(Value::Null | Value::Undefined) => Ok(None),
            _ => self.optional(name, "binData", uuid),
        }
    }
    pub(crate) fn int(self, name: &str) -> Result<i32> {
        self.required(name, "int", |v| match v {
            Value::Int32(n) => Some(*n),
            _ => None,
        })
    }
    /// A flag that may be missing.
    pub(crate) fn flag(self, name: &str) -> Result<Option<bool>> {
        self.optional(name, "bool", |v| match v {
            Value::Boolean(b) => Some(*b),
            _ => None,
        })
    }
    pub(crate) fn optional_document(self, name: &str) -> Result<Option<&'a RawDoc>> {
        self.optional(name, "object", Value::as_doc)
    }
    pub(crate) fn optional_object_id(self, name: &str) -> Result<Option<ObjectId>> {
        self.optional(name, "objectId", object_id)
    }
    /// Milliseconds since 1970.
    pub(crate) fn date(self, name: &str) -> Result<Option<i64>> {
        self.optional(name, "date", |v| match v {
            Value::DateTime(ms) => Some(*ms),
            _ => None,
        })
    }
    pub(crate) fn optional_array(self, name: &str) -> Result<Option<&'a RawDoc>> {
        self.optional(name, "array", Value::as_array)
    }
    /// Any number that is whole.
    pub(crate) fn optional_number(self, name: &str) -> Result<Option<i64>> {
        self.optional(name, "long", Value::as_i64)
    }
}

fn timestamp(v: &Value<'_>) -> Option<Timestamp> {
    match v {
        Value::Timestamp(t) => Some(*t),
        _ => None,
    }
}
fn object_id(v: &Value<'_>) -> Option<ObjectId> {
    match v {
        Value::ObjectId(id) => Some(*id),
        _ => None,
    }
}
fn uuid(v: &Value<'_>) -> Option<Uuid> {
    match v {
        Value::Binary { subtype: 4, bytes } => Uuid::from_slice(bytes),
        _ => None,
    }
}
