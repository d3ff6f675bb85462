//! `encryptedFields` of `create`: checked as MongoDB checks it. Encrypted collections themselves are not supported, and
//! whoever asks for one with a sound configuration is told so.

use crate::schema::options::{CollectionOptions, ValidationAction, ValidationLevel};
use pando_base::{Error, ErrorCode, HashSet, Result};
use pando_bson::fields::{missing, unknown, wrong_type};
use pando_bson::{RawDoc, Value};

const OWNER: &str = "create.encryptedFields";

/// Types whose values can be looked up while encrypted.
const EQUALITY: &[&str] = &[
    "string",
    "binData",
    "objectId",
    "bool",
    "date",
    "regex",
    "dbPointer",
    "javascript",
    "symbol",
    "int",
    "timestamp",
    "long",
];

/// Names of types, those above included.
const TYPES: &[&str] = &[
    "double",
    "string",
    "object",
    "array",
    "binData",
    "undefined",
    "objectId",
    "bool",
    "date",
    "null",
    "regex",
    "dbPointer",
    "javascript",
    "symbol",
    "javascriptWithScope",
    "int",
    "timestamp",
    "long",
    "decimal",
    "minKey",
    "maxKey",
];

/// Each field by itself.
pub(crate) fn check_form(config: &RawDoc) -> Result<()> {
    let mut has_fields = false;
    for e in config {
        match (e.name(), e.value()) {
            ("escCollection" | "eccCollection" | "ecocCollection", Value::String(_)) => {}
            (
                "escCollection" | "eccCollection" | "ecocCollection" | "fields",
                Value::Null | Value::Undefined,
            ) => {}
            (name @ ("escCollection" | "eccCollection" | "ecocCollection"), v) => {
                return Err(wrong_type(OWNER, name, &v, &["string"]));
            }
            ("fields", Value::Array(list)) => {
                has_fields = true;
                for f in list {
                    match f.value() {
                        Value::Document(field) => check_field(field)?,
                        v => return Err(wrong_type(OWNER, &format!("fields.{}", f.name()), &v, &["object"])),
                    }
                }
            }
            ("fields", v) => return Err(wrong_type(OWNER, "fields", &v, &["array"])),
            (other, _) => return Err(unknown(OWNER, other)),
        }
    }
    if has_fields { Ok(()) } else { Err(missing(OWNER, "fields")) }
}

fn check_field(field: &RawDoc) -> Result<()> {
    let owner = format!("{OWNER}.fields");
    let (mut has_key, mut has_path) = (false, false);
    for e in field {
        let v = e.value();
        match (e.name(), &v) {
            ("queries", Value::Null | Value::Undefined) => {
                return Err(Error::type_mismatch(format!(
                    "BSON field '{owner}.queries' is the wrong type 'null', expected types '[']"
                )));
            }
            ("keyId" | "path" | "bsonType", Value::Null | Value::Undefined) => {}
            ("keyId", Value::Binary { subtype: 4, bytes }) if bytes.len() == 16 => has_key = true,
            ("keyId", Value::Binary { subtype: 4, .. }) => {
                return Err(Error::new(
                    ErrorCode::InvalidUUID,
                    "uuid must be a 16-byte binary field with UUID (4) subtype",
                ));
            }
            ("keyId", Value::Binary { .. }) => {
                return Err(Error::type_mismatch(format!(
                    "BSON field '{owner}.keyId' is the wrong binData type, expected type 'UUID'"
                )));
            }
            ("keyId", _) => return Err(wrong_type(&owner, "keyId", &v, &["binData"])),
            ("path", Value::String(_)) => has_path = true,
            ("bsonType", Value::String(_)) => {}
            (name @ ("path" | "bsonType"), _) => return Err(wrong_type(&owner, name, &v, &["string"])),
            ("queries", Value::Document(q)) => check_query(q)?,
            ("queries", Value::Array(list)) => {
                for q in *list {
                    match q.value() {
                        Value::Document(q) => check_query(q)?,
                        v => {
                            return Err(wrong_type(
                                &owner,
                                &format!("queries.{}", q.name()),
                                &v,
                                &["object"],
                            ));
                        }
                    }
                }
            }
            ("queries", v) => {
                return Err(Error::type_mismatch(format!(
                    "BSON field '{owner}.queries' is the wrong type '{}', expected types '[']",
                    v.type_name()
                )));
            }
            (other, _) => return Err(unknown(&owner, other)),
        }
    }
    match (has_key, has_path) {
        (false, _) => Err(missing(&owner, "keyId")),
        (_, false) => Err(missing(&owner, "path")),
        _ => Ok(()),
    }
}

fn check_query(q: &RawDoc) -> Result<()> {
    let owner = format!("{OWNER}.fields.queries");
    let mut has_type = false;
    for e in q {
        let v = e.value();
        match (e.name(), &v) {
            ("queryType", Value::String("equality")) => has_type = true,
            ("queryType", Value::String(other)) => {
                return Err(Error::bad_value(format!(
                    "Enumeration value '{other}' for field '{owner}.queryType' is not a valid value."
                )));
            }
            ("queryType", _) => return Err(wrong_type(&owner, "queryType", &v, &["string"])),
            ("contention", v) => match pando_bson::fields::safe_i64(v) {
                Some(n) if n < 0 => {
                    return Err(Error::location(
                        51024,
                        format!("BSON field 'contention' value must be >= 0, actual value '{n}'"),
                    ));
                }
                Some(_) => {}
                None => {
                    return Err(wrong_type(&owner, "contention", v, &["long", "int", "decimal", "double"]));
                }
            },
            (other, _) => return Err(unknown(&owner, other)),
        }
    }
    if has_type { Ok(()) } else { Err(missing(&owner, "queryType")) }
}

/// The fields together, and with the collection's other options.
pub(crate) fn check(config: &RawDoc, o: &CollectionOptions, capped: bool, view: bool) -> Result<()> {
    if view || o.time_series.is_some() {
        return Err(Error::location(
            6_346_401,
            "Encrypted fields cannot be used with views or timeseries collections",
        ));
    }
    if capped {
        return Err(Error::location(6_367_301, "Encrypted fields cannot be used with capped collections"));
    }
    check_paths(config)?;
    if o.validation_action == Some(ValidationAction::Warn) {
        return Err(Error::bad_value("Validation action of 'warn' is not allowed on encrypted collections"));
    }
    if o.validation_level.is_some_and(|level| level != ValidationLevel::Strict) {
        return Err(Error::bad_value(
            "Only a validation level of 'strict' is allowed on encrypted collections",
        ));
    }
    Ok(())
}

fn check_paths(config: &RawDoc) -> Result<()> {
    let list = config.get("fields").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    let (mut keys, mut paths) = (HashSet::default(), Vec::new());
    for f in list.iter().filter_map(|f| f.value().as_doc()) {
        if let Some(Value::Binary { bytes, .. }) = f.get("keyId")
            && !keys.insert(bytes)
        {
            return Err(Error::location(6_338_401, "Duplicate key ids are not allowed"));
        }
        let bson_type = f.get("bsonType").and_then(|v| v.as_str());
        if let Some(name) = bson_type
            && !TYPES.contains(&name)
        {
            return Err(Error::bad_value(format!("Unknown type name: {name}")));
        }
        let queries = f.get("queries");
        if let Some(Value::Array(list)) = &queries
            && list.count() != 1
        {
            return Err(Error::location(6_338_404, "Only 1 equality queryType can be specified per field"));
        }
        if let Some(name) = bson_type
            && queries.is_some()
            && !EQUALITY.contains(&name)
        {
            return Err(Error::location(
                6_338_405,
                format!("Type '{name}' is not a supported equality indexed type"),
            ));
        }
        paths.push(f.get("path").and_then(|v| v.as_str()).unwrap_or_default());
    }
    paths.sort_unstable();
    for pair in paths.windows(2) {
        let [a, b] = pair else { continue };
        if a == b {
            return Err(Error::location(6_338_402, "Duplicate paths are not allowed"));
        }
        if b.strip_prefix(a).is_some_and(|rest| rest.starts_with('.')) {
            return Err(Error::location(
                6_338_403,
                format!("Conflicting index paths found as one is a prefix of another '{a}' and '{b}'"),
            ));
        }
    }
    Ok(())
}
