//! Arguments of commands that 6.0 reads field by field, and what it says where one is missing or of another type.

use super::super::prelude::*;
use pando_base::{Timestamp, Uuid};
use pando_bson::ObjectId;
use pando_bson::fields::{missing, wrong_type};
use pando_routing::ChunkVersion;

fn had_wrong_type(name: &str, expected: &str, v: &Value<'_>) -> Error {
    let found = v.type_name();
    Error::type_mismatch(format!("\"{name}\" had the wrong type. Expected {expected}, found {found}"))
}

pub(super) fn given<'a>(body: &'a RawDoc, name: &str) -> Result<Value<'a>> {
    let lacks = || Error::new(ErrorCode::NoSuchKey, format!("Missing expected field \"{name}\""));
    body.get(name).ok_or_else(lacks)
}
pub(super) fn text<'a>(body: &'a RawDoc, name: &str) -> Result<&'a str> {
    let v = given(body, name)?;
    v.as_str().ok_or_else(|| had_wrong_type(name, "string", &v))
}
pub(super) fn optional_text<'a>(body: &'a RawDoc, name: &str) -> Result<Option<&'a str>> {
    body.get(name).map(|_| text(body, name)).transpose()
}
pub(super) fn object_id(body: &RawDoc, name: &str) -> Result<ObjectId> {
    match given(body, name)? {
        Value::ObjectId(id) => Ok(id),
        v => Err(had_wrong_type(name, "objectId", &v)),
    }
}
pub(super) fn array<'a>(body: &'a RawDoc, name: &str) -> Result<&'a RawDoc> {
    let v = given(body, name)?;
    v.as_array().ok_or_else(|| had_wrong_type(name, "array", &v))
}
pub(super) fn object<'a>(body: &'a RawDoc, name: &str) -> Result<&'a RawDoc> {
    let v = given(body, name)?;
    v.as_doc().ok_or_else(|| had_wrong_type(name, "object", &v))
}
/// `min` and `max`.
pub(super) fn range(body: &RawDoc) -> Result<(DocBuf, DocBuf)> {
    let bound = |name: &str| {
        object(body, name).map(RawDoc::to_buf).map_err(|e| {
            Error::new(e.code, format!("The field '{name}' cannot be parsed :: caused by :: {}", e.message))
        })
    };
    Ok((bound("min")?, bound("max")?))
}
pub(super) fn optional_timestamp(body: &RawDoc, owner: &str, name: &str) -> Result<Option<Timestamp>> {
    match body.get(name) {
        None => Ok(None),
        Some(Value::Timestamp(t)) => Ok(Some(t)),
        Some(v) => Err(wrong_type(owner, name, &v, &["timestamp"])),
    }
}
pub(super) fn version(body: &RawDoc, name: &str) -> Result<ChunkVersion> {
    match body.get(name) {
        Some(v) => ChunkVersion::parse_argument(&v),
        None => Err(Error::location(10_065, "invalid parameter: expected an object ()")),
    }
}
/// The whole namespace that a command's own element names; `strict` readers name the command's type.
pub(super) fn namespace(req: &Request<'_>) -> Result<Namespace> {
    let name = own_text(req)?;
    let full = Namespace::parse(name).ok().filter(|ns| !ns.coll().is_empty());
    full.ok_or_else(|| {
        Error::new(ErrorCode::InvalidNamespace, format!("Invalid namespace specified '{name}'"))
    })
}
/// The command's own element where 6.0 reads the arguments by a table.
pub(super) fn own_text<'a>(req: &Request<'a>) -> Result<&'a str> {
    let v = req.first().value();
    v.as_str().ok_or_else(|| wrong_type(req.name, req.name, &v, &["string"]))
}
/// The same where it reads them one by one.
pub(super) fn own_text_of_old<'a>(req: &Request<'a>) -> Result<&'a str> {
    let v = req.first().value();
    v.as_str().ok_or_else(|| had_wrong_type(req.name, "string", &v))
}
pub(super) fn required<'a>(req: &Request<'a>, name: &str) -> Result<Value<'a>> {
    req.body.get(name).ok_or_else(|| missing(req.name, name))
}

/// A UUID as old servers and new ones give it: bare, or as `{uuid: <UUID>}`.
pub(super) fn uuid_of(v: &Value<'_>) -> Option<Uuid> {
    match v {
        Value::Binary { subtype: 4, bytes } => Uuid::from_slice(bytes),
        Value::Document(d) => d.get("uuid").as_ref().and_then(uuid_of),
        _ => None,
    }
}
