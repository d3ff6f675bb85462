//! `encryptionInformation`: what a driver with automatic encryption adds to reads and writes of encrypted collections.
//! There are none here, so that nothing may be done as if it had been understood: what has a wrong form is told as MongoDB
//! tells it, and what is sound is not supported.

use crate::args::{Arg, safe_i64};
use crate::request::{missing, unknown, wrong_type};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::Value;

impl Arg<'_> {
    /// Checks the argument; fine when it is null, or when it asks for nothing.
    pub fn no_encryption(&self) -> Result<()> {
        let command = self.struct_name;
        let owner = format!("{command}.encryptionInformation");
        let info = match self.value() {
            Value::Null | Value::Undefined => return Ok(()),
            Value::Document(d) => d,
            _ => return Err(self.wrong_type(&["object"])),
        };
        let (mut schema, mut processed) = (None, false);
        for e in info {
            let v = e.value();
            match (e.name(), &v) {
                ("type" | "schema" | "deleteTokens" | "crudProcessed", Value::Null | Value::Undefined) => {}
                ("type", _) if safe_i64(&v).is_some() => {}
                ("type", _) => {
                    return Err(wrong_type(&owner, "type", &v, &["long", "int", "decimal", "double"]));
                }
                ("schema", Value::Document(d)) => schema = Some(*d),
                ("deleteTokens", Value::Document(_)) => {}
                ("crudProcessed", Value::Boolean(on)) => processed = *on,
                ("crudProcessed", _) if v.is_number() => processed = v.is_truthy(),
                (name @ ("schema" | "deleteTokens"), _) => {
                    return Err(wrong_type(&owner, name, &v, &["object"]));
                }
                ("crudProcessed", _) => {
                    let expected = ["bool", "long", "int", "decimal", "double"];
                    return Err(wrong_type(&owner, "crudProcessed", &v, &expected));
                }
                (name, _) => return Err(unknown(&owner, name)),
            }
        }
        let schema = schema.ok_or_else(|| missing(&owner, "schema"))?;
        let writes = matches!(command, "insert" | "update" | "delete" | "findAndModify" | "bulkWrite.nsInfo");
        match schema.first().map(|e| e.value()) {
            _ if processed && writes => Ok(()),
            None if matches!(command, "update" | "delete") => Ok(()),
            Some(Value::Document(of)) if of.get("fields").is_none() => Err(missing("schema", "fields")),
            Some(Value::Document(_)) => Err(Error::new(
                ErrorCode::CommandNotSupported,
                "encrypted collections are not supported by this server yet",
            )),
            _ => Err(Error::location(6_371_205, "Expected an object for schema in EncryptionInformation")),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::args::Args;
    use pando_bson::{Bson, Document, doc};

    fn code(command: &'static str, info: impl Into<Bson>) -> i32 {
        let mut d: Document = doc! { "x": 1 };
        d.push("encryptionInformation", info);
        let raw = d.to_raw();
        let arg = Args::new(command, &raw).next().unwrap();
        arg.no_encryption().map_or_else(|e| e.code.0, |()| 0)
    }

    #[test]
    fn encryption_is_never_dropped_in_silence() {
        assert_eq!(code("insert", Bson::Null), 0);
        assert_eq!(code("insert", 5), 14);
        assert_eq!(code("find", doc! {}), 40414);
        assert_eq!(code("count", doc! { "schema": {}, "foo": 1 }), 40415);
        assert_eq!(code("count", doc! { "schema": {}, "type": "x" }), 14);
        assert_eq!(code("aggregate", doc! { "type": 1, "schema": {} }), 6_371_205);
        assert_eq!(code("update", doc! { "type": 1, "schema": {} }), 0);
        assert_eq!(code("find", doc! { "schema": { "d.c": {} } }), 40414);
        for command in ["insert", "update", "delete", "find", "findAndModify"] {
            assert_eq!(code(command, doc! { "type": 1, "schema": { "d.c": { "fields": [] } } }), 115);
        }
        assert_eq!(code("insert", doc! { "schema": {}, "crudProcessed": true }), 0);
        assert_eq!(code("find", doc! { "schema": {}, "crudProcessed": true }), 6_371_205);
    }
}
