//! Users and roles as commands name them: by the name alone, or with its database.

use pando_base::{Error, Result};
use pando_bson::fields::safe_i64;
use pando_bson::{RawDoc, Value};

/// A user or a role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Principal<'a> {
    pub name: &'a str,
    pub db: &'a str,
}

/// How messages call one kind of them, and the field that has its name.
pub(super) struct Words {
    pub what: &'static str,
    pub field: &'static str,
    /// A name with other fields is refused.
    pub strict: bool,
}

pub(super) const ROLE: Words = Words { what: "RoleName", field: "role", strict: false };

/// 1 asks for all there are.
pub(super) fn means_all(v: &Value<'_>) -> bool {
    safe_i64(v) == Some(1)
}

/// One, or a list of them; a name alone is of the database `db`.
pub(super) fn named<'a>(words: &Words, db: &'a str, v: Value<'a>) -> Result<Vec<Principal<'a>>> {
    match v {
        Value::Array(list) => list.iter().map(|e| words.read(db, e.value())).collect(),
        v => Ok(vec![words.read(db, v)?]),
    }
}

impl Words {
    fn read<'a>(&self, db: &'a str, v: Value<'a>) -> Result<Principal<'a>> {
        let what = self.what;
        match v {
            Value::String(name) => Ok(Principal { name, db }),
            Value::Document(d) => self.read_fields(d),
            _ => Err(Error::bad_value(format!("{what} must be either a string or an object"))),
        }
    }
    fn read_fields<'a>(&self, d: &'a RawDoc) -> Result<Principal<'a>> {
        let what = self.what;
        if self.strict {
            // In the order of the document.
            for e in d {
                match e.name() {
                    name if name == self.field || name == "db" => drop(self.text(d, name)?),
                    // The quote stays open, as MongoDB writes it.
                    name => {
                        let text = format!("{what} contains an unknown field named: '{name}");
                        return Err(Error::bad_value(text));
                    }
                }
            }
        }
        Ok(Principal { name: self.text(d, self.field)?, db: self.text(d, "db")? })
    }
    fn text<'a>(&self, d: &'a RawDoc, field: &str) -> Result<&'a str> {
        let what = self.what;
        match d.get(field) {
            Some(Value::String(s)) => Ok(s),
            None => Err(Error::bad_value(format!("{what} must contain a field named: {field}"))),
            Some(v) => {
                let found = v.type_name();
                let text =
                    format!("{what} must contain a string field named: {field}. But, has type {found}");
                Err(Error::bad_value(text))
            }
        }
    }
}
