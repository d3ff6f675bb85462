//! `hint` of a command.

use pando_base::{Error, Result};
use pando_bson::{DocBuf, RawDoc, Value};
use pando_query::source::Direction;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Hint {
    Name(String),
    Pattern(DocBuf),
    Natural(Direction),
}

impl Hint {
    pub(crate) fn parse(v: Value<'_>) -> Result<Option<Hint>> {
        match v {
            Value::String(name) => Ok(Some(Hint::Name(name.to_owned()))),
            Value::Document(d) if d.is_empty() => Ok(None),
            Value::Document(d) => Ok(Some(match natural_of(d)? {
                Some(dir) => Hint::Natural(dir),
                None => Hint::Pattern(d.to_buf()),
            })),
            _ => Err(Error::failed_to_parse("Hint must be a string or an object")),
        }
    }
}

pub(crate) fn natural_of(d: &RawDoc) -> Result<Option<Direction>> {
    match d.get("$natural").and_then(|v| v.as_i64()) {
        Some(1) => Ok(Some(Direction::Forward)),
        Some(-1) => Ok(Some(Direction::Backward)),
        _ => Ok(None),
    }
}
