//! `encryptedFields` of `create`: checked as MongoDB checks it. Encrypted collections themselves are not supported, and
//! whoever asks for one with a sound configuration is told so.

use super::create::CreateArgs;
use crate::declare::kind;
use crate::declare::kinds::Object;
use pando_base::{Error, HashSet, Result};
use pando_bson::decimal128::Rounding;
use pando_bson::shape::{Field, Means, Null, Range, Shape, check_fields, wrong_type_at};
use pando_bson::{ElementType, RawDoc, Value};

/// Types whose values can be looked up while encrypted.
const EQUALITY: &[ElementType] = &[
    ElementType::String,
    ElementType::Binary,
    ElementType::ObjectId,
    ElementType::Boolean,
    ElementType::DateTime,
    ElementType::Regex,
    ElementType::DbPointer,
    ElementType::JavaScript,
    ElementType::Symbol,
    ElementType::Int32,
    ElementType::Timestamp,
    ElementType::Int64,
];

/// One query of a field.
const QUERY: &[Field] = &[
    Field::required("queryType", Shape::Word(&["equality"])),
    Field::optional(
        "contention",
        Shape::Checked { like: &[Shape::Integer(Range::at_least(0))], check: check_contention },
    ),
];
const FIELD: &[Field] = &[
    Field::required("keyId", Shape::Uuid),
    Field::required("path", Shape::String).means(Means::FieldName),
    Field::optional("bsonType", Shape::Checked { like: &[Shape::String], check: check_type }),
    Field::optional("queries", Shape::Checked { like: &[Shape::Fields(QUERY)], check: check_queries })
        .null(Null::Value),
];
const CONFIG: &[Field] = &[
    Field::optional("escCollection", Shape::String),
    Field::optional("eccCollection", Shape::String),
    Field::optional("ecocCollection", Shape::String),
    Field::required("fields", Shape::List(&Shape::Fields(FIELD))),
];
kind! { pub EncryptedFields like Object { SHAPE: Shape::Fields(CONFIG) } }

/// A whole number that fits 64 bits and is not negative.
fn check_contention(path: &str, v: &Value<'_>) -> Result<()> {
    Shape::Integer(Range::between(i64::MIN, i64::MAX)).check(path, v)?;
    let exact = match v {
        Value::Double(d) if d.is_nan() => Err("Expected an integer, but found NaN in"),
        Value::Double(d) if !(-9.223_372_036_854_775_808e18..9.223_372_036_854_775_808e18).contains(d) => {
            Err("Cannot represent as a 64-bit integer")
        }
        Value::Double(d) if d.fract() != 0.0 => Err("Expected an integer"),
        Value::Decimal128(d) if !d.is_integer() || d.to_i64(Rounding::TowardZero).is_none() => {
            Err("Cannot represent as a 64-bit integer")
        }
        _ => Ok(()),
    };
    exact.map_err(|text| Error::failed_to_parse(format!("{text}: contention: {v}")))?;
    Shape::Integer(Range::at_least(0)).check(path, v)
}

fn check_type(path: &str, v: &Value<'_>) -> Result<()> {
    match v.as_str() {
        Some(name) if ElementType::named(name).is_some() => Ok(()),
        Some(name) => Err(Error::bad_value(format!("Unknown type name: {name}"))),
        None => Err(wrong_type_at(path, v, &["string"])),
    }
}

/// A query, whose fields are told as if they were the field's, or a list of them.
fn check_queries(path: &str, v: &Value<'_>) -> Result<()> {
    let told = |expected: &str| {
        let found = v.type_name();
        let text = format!("BSON field '{path}' is the wrong type '{found}', expected types '[{expected}']");
        Err(Error::type_mismatch(text))
    };
    match v {
        Value::Document(query) => check_fields(QUERY, owner_of(path), query),
        Value::Array(list) => list.iter().try_for_each(|q| match q.value() {
            Value::Document(query) => check_fields(QUERY, path, query),
            _ => told("object"),
        }),
        _ => told(""),
    }
}

fn owner_of(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(owner, _)| owner)
}

/// The fields together, and with the collection's other options.
pub(crate) fn check(config: &RawDoc, a: &CreateArgs<'_>) -> Result<()> {
    if a.view_on.is_some() || a.time_series.is_some() {
        return Err(Error::location(
            6_346_401,
            "Encrypted fields cannot be used with views or timeseries collections",
        ));
    }
    if a.is_capped() {
        return Err(Error::location(6_367_301, "Encrypted fields cannot be used with capped collections"));
    }
    check_paths(config)?;
    if a.validation_action == Some("warn") {
        return Err(Error::bad_value("Validation action of 'warn' is not allowed on encrypted collections"));
    }
    if a.validation_level.is_some_and(|level| level != "strict") {
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
        let bson_type = f.get("bsonType").and_then(|v| ElementType::named(v.as_str()?));
        let queries = f.get("queries");
        if bson_type.is_none() && matches!(queries, Some(Value::Document(_))) {
            return Err(Error::location(
                6_412_601,
                "Bson type needs to be specified for equality indexed field",
            ));
        }
        if let Some(Value::Array(list)) = &queries
            && list.count() != 1
        {
            return Err(Error::location(6_338_404, "Only 1 equality queryType can be specified per field"));
        }
        if let Some(ty) = bson_type
            && queries.is_some()
            && !EQUALITY.contains(&ty)
        {
            return Err(Error::location(
                6_338_405,
                format!("Type '{}' is not a supported equality indexed type", ty.name()),
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
