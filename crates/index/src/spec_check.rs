//! What a specification may say: each check with MongoDB's code and text, in MongoDB's order.

use crate::spec::{is_id_key, is_wildcard_name, kind_of, plugin_name, seconds};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, ElementType, RawDoc, Value};
use pando_query::collation::Collation;
use pando_query::geo::parse::number;
use pando_query::source::IndexKind;
use pando_query::timeseries::BUCKET_2DSPHERE;

pub(crate) fn cannot_create(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorCode::CannotCreateIndex, message)
}

/// `_id` alone with a number that is 1 or -1 as an integer, but not 1. Others pass in MongoDB too.
pub(crate) fn is_odd_id_key(key: &RawDoc) -> bool {
    let odd = |v: Value<'_>| matches!(integer(v), Some(1 | -1)) && number(v) != Some(1.0);
    key.count() == 1 && key.first().is_some_and(|e| e.name() == "_id" && odd(e.value()))
}

/// A number as 32 bits: cut off, or a decimal rounded to the nearest, and the even one of two.
pub(crate) fn integer(v: Value<'_>) -> Option<i32> {
    match v {
        Value::Decimal128(_) => number(v).map(|n| n.round_ties_even() as i32),
        v => number(v).map(|n| n as i32),
    }
}

/// The fields of a specification after the first round of checks.
pub(crate) struct Fields<'a> {
    pub(crate) name: &'a str,
    pub(crate) key: &'a RawDoc,
    pub(crate) version: i32,
    pub(crate) unique: bool,
    pub(crate) prepare_unique: bool,
    pub(crate) clustered: bool,
    sparse: bool,
    partial: Option<&'a RawDoc>,
    storage_engine: Option<Elem<'a>>,
    ttl: Option<Elem<'a>>,
    pub(crate) kind: IndexKind,
}

/// Fields that `createIndexes` accepts beside those with rules of their own.
pub(crate) const PLAIN_NUMBERS: &[&str] = &["2dsphereIndexVersion", "textIndexVersion", "bits", "min", "max"];
pub(crate) const IGNORED: &[&str] = &["ns", "dropDups", "_id"];
/// All that the specification of a clustered index may say.
const CLUSTERED: &[&str] = &["key", "name", "unique", "v", "clustered"];
/// Fields with rules of their own.
pub(crate) const CHECKED: &[&str] = &[
    "v",
    "key",
    "name",
    "unique",
    "sparse",
    "hidden",
    "clustered",
    "background",
    "prepareUnique",
    "partialFilterExpression",
    "originalSpec",
    "collation",
    "wildcardProjection",
    "storageEngine",
    "expireAfterSeconds",
];
/// Fields that only text indexes or indexes on places look at, beside the numbers.
pub(crate) const OF_A_KIND: &[&str] =
    &["weights", "default_language", "language_override", "coarsestIndexedLevel", "finestIndexedLevel"];

impl Fields<'_> {
    /// What a specification means that says nothing.
    fn none() -> Self {
        Fields {
            name: "",
            key: RawDoc::empty(),
            version: 2,
            unique: false,
            prepare_unique: false,
            clustered: false,
            sparse: false,
            partial: None,
            storage_engine: None,
            ttl: None,
            kind: IndexKind::Btree,
        }
    }
}

/// Names of fields come before anything about their values.
fn check_names(raw: &RawDoc) -> Result<()> {
    let refuse = |name: &str, kind: &str| {
        let text = format!("The field '{name}' is not valid for {kind} specification. Specification: {raw}");
        Err(Error::new(ErrorCode::InvalidIndexSpecificationOption, text))
    };
    if raw.elem("clustered").is_some() {
        return match raw.iter().find(|e| !CLUSTERED.contains(&e.name())) {
            Some(e) => refuse(e.name(), "a clustered index"),
            None => Ok(()),
        };
    }
    match raw.iter().find(|e| !is_known(e.name())) {
        Some(e) => refuse(e.name(), "an index"),
        None => Ok(()),
    }
}

/// Whether any index has such an option.
pub(crate) fn is_known(name: &str) -> bool {
    [CHECKED, OF_A_KIND, PLAIN_NUMBERS, IGNORED].iter().any(|list| list.contains(&name))
}

/// The first round: each field by itself, in the order they came; then what must be there.
pub(crate) fn check_fields(raw: &RawDoc) -> Result<Fields<'_>> {
    check_names(raw)?;
    let (mut name, mut key) = (None, None);
    let mut f = Fields::none();
    for e in raw {
        match e.name() {
            "key" => {
                let k = must_be_object(e)?;
                check_key_pattern(k)?;
                key = Some(k);
            }
            "name" => {
                name = Some(e.value().as_str().ok_or_else(|| must_be(e, "a string"))?);
            }
            "v" => f.version = check_version(raw, e)?,
            "unique" => f.unique = flag(e)?,
            "sparse" => f.sparse = flag(e)?,
            "prepareUnique" => f.prepare_unique = flag(e)?,
            "clustered" => f.clustered = flag(e)?,
            "hidden" => check_hidden(e)?,
            "partialFilterExpression" => {
                let filter = must_be_object(e)?;
                crate::partial::check_form(filter)?;
                f.partial = Some(filter);
            }
            "collation" | "originalSpec" => {
                if must_be_object(e)?.is_empty() {
                    let text = format!("The field '{}' cannot be an empty object.", e.name());
                    return Err(Error::bad_value(text));
                }
            }
            "wildcardProjection" => check_projection(raw, e)?,
            "background" | "dropDups" => {
                flag(e)?;
            }
            "storageEngine" => f.storage_engine = Some(e),
            "expireAfterSeconds" => f.ttl = Some(e),
            _ => check_of_a_kind(e)?,
        }
    }
    let required = |f: &str| {
        Error::failed_to_parse(format!("The '{f}' field is a required property of an index specification"))
    };
    f.key = key.ok_or_else(|| required("key"))?;
    f.name = name.ok_or_else(|| required("name"))?;
    f.kind = kind_of(f.key);
    check_pairs(raw, &f)?;
    Ok(f)
}

/// What two fields mean together, whatever the rest says.
fn check_pairs(raw: &RawDoc, f: &Fields<'_>) -> Result<()> {
    let refuse = |why: &str| Err(cannot_create(format!("Invalid index specification {raw}; {why}")));
    if f.version < 2 && raw.elem("collation").is_some() {
        let with = format!("cannot create an index with the 'collation' option and v={}", f.version);
        return refuse(&with);
    }
    if f.unique && f.prepare_unique {
        return refuse("cannot create an index with the 'unique' option and the 'prepareUnique' option");
    }
    if f.kind != IndexKind::Text && raw.elem("weights").is_some() {
        return refuse("the field 'weights' can only be specified with text indexes");
    }
    match raw.get("originalSpec").and_then(|v| v.as_doc()) {
        Some(original) => check_fields(original).map(drop),
        None => Ok(()),
    }
}

fn check_hidden(e: Elem<'_>) -> Result<()> {
    match e.ty {
        ElementType::Boolean => Ok(()),
        // The other field's name is MongoDB's.
        _ => Err(Error::type_mismatch(format!(
            "The field 'name' must be a bool, but got {}",
            e.value().type_name()
        ))),
    }
}

/// Checks an option that only text indexes or indexes on places look at.
fn check_of_a_kind(e: Elem<'_>) -> Result<()> {
    match e.name() {
        "weights" if !matches!(e.value(), Value::Document(_) | Value::Array(_) | Value::String(_)) => {
            Err(must_be(e, "an object"))
        }
        "default_language" | "language_override" if e.value().as_str().is_none() => {
            Err(must_be(e, "a string"))
        }
        n if PLAIN_NUMBERS.contains(&n) && !e.value().is_number() => Err(must_be(e, "a number")),
        _ => Ok(()),
    }
}

/// Which key a projection may stand beside comes before what it is.
fn check_projection(raw: &RawDoc, e: Elem<'_>) -> Result<()> {
    let key = raw.get("key").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
    if kind_of(key) != IndexKind::Wildcard {
        return Err(Error::bad_value(
            "The field 'wildcardProjection' is only allowed in an 'wildcard' index",
        ));
    }
    let projection = e.value().as_doc().ok_or_else(|| must_be(e, "a non-empty object"))?;
    if key.elem("$**").is_none() {
        return Err(Error::failed_to_parse(
            "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": \u{b1}1}",
        ));
    }
    if projection.is_empty() {
        return Err(Error::failed_to_parse("The 'wildcardProjection' field can't be an empty object"));
    }
    crate::wildcard::check_projection(projection)
        .map_err(|e| e.context("Failed to parse: wildcardProjection"))
}

fn must_be(e: Elem<'_>, what: &str) -> Error {
    Error::type_mismatch(format!(
        "The field '{}' must be {what}, but got {}",
        e.name(),
        e.value().type_name()
    ))
}

fn must_be_object(e: Elem<'_>) -> Result<&RawDoc> {
    e.value().as_doc().ok_or_else(|| must_be(e, "an object"))
}

fn flag(e: Elem<'_>) -> Result<bool> {
    let v = e.value();
    if matches!(v, Value::Boolean(_)) || v.is_number() {
        return Ok(v.is_truthy());
    }
    // The unbalanced quote is MongoDB's.
    Err(Error::type_mismatch(format!(
        "The field '{} has value {}: {v}, which is not convertible to bool",
        e.name(),
        e.name()
    )))
}

fn check_version(raw: &RawDoc, e: Elem<'_>) -> Result<i32> {
    let v = e.value();
    if !v.is_number() {
        return Err(must_be(e, "a number"));
    }
    // A decimal counts as the nearest double.
    let whole = match v {
        Value::Decimal128(d) => {
            let near: Option<f64> = d.to_string().parse().ok();
            near.filter(|n| n.fract() == 0.0 && n.abs() < 2_147_483_648.0).map(|n| n as i32)
        }
        v => v.as_i64().and_then(|n| i32::try_from(n).ok()),
    };
    match whole {
        Some(n @ (1 | 2)) => Ok(n),
        Some(n) => Err(cannot_create(format!(
            "Invalid index specification {raw}; cannot create an index with v={n}"
        ))),
        None => Err(Error::bad_value(format!(
            "Index version must be representable as a 32-bit integer, but got {v}"
        ))),
    }
}

fn check_key_pattern(key: &RawDoc) -> Result<()> {
    if key.is_empty() {
        return Err(cannot_create("Index keys cannot be empty."));
    }
    crate::geo_spec::check_one_plugin(key)?;
    let wildcards = key.iter().filter(|e| is_wildcard_name(e.name())).count();
    let plugin = plugin_name(key);
    for e in key {
        check_key_value(e, plugin, wildcards > 0)?;
        check_key_name(e, plugin)?;
    }
    if wildcards > 1 {
        return Err(cannot_create("wildcard indexes do not allow more than one wildcard field"));
    }
    if wildcards == 1 && plugin == Some("text") && key.get("$**").and_then(|v| v.as_str()).is_none() {
        return Err(cannot_create("wildcard indexes do not allow compounding"));
    }
    Ok(())
}

fn check_key_value(e: Elem<'_>, plugin: Option<&str>, wildcard: bool) -> Result<()> {
    match e.value() {
        Value::String(s) if Some(s) != plugin => {
            Err(cannot_create("Can't use more than one index plugin for a single index."))
        }
        Value::String("") => Err(cannot_create("Values in the index key pattern cannot be empty strings")),
        Value::String("wildcard") => Err(cannot_create(
            "The key pattern value for an 'wildcard' index must be a non-zero number, not a string.",
        )),
        Value::String("geoHaystack") => {
            Err(cannot_create("GeoHaystack indexes cannot be created in version 5.0 and above"))
        }
        Value::String("hashed" | "text" | "2d" | "2dsphere") => Ok(()),
        Value::String(BUCKET_2DSPHERE) if e.name().starts_with("data.") => Ok(()),
        Value::String(other) => Err(cannot_create(format!("Unknown index plugin '{other}'"))),
        v if v.is_number() => match number(v) {
            Some(n) if n.is_nan() => Err(cannot_create("Values in the index key pattern cannot be NaN.")),
            Some(n) if n != 0.0 => {
                if wildcard && is_wildcard_name(e.name()) && n < 0.0 {
                    return Err(cannot_create(
                        "A numeric value in a $** index key pattern must be positive.",
                    ));
                }
                Ok(())
            }
            _ => Err(cannot_create("Values in the index key pattern cannot be 0.")),
        },
        v => Err(cannot_create(format!(
            "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are \
             allowed.",
            v.type_name()
        ))),
    }
}

fn check_key_name(e: Elem<'_>, plugin: Option<&str>) -> Result<()> {
    let name = e.path()?;
    if name.is_empty() {
        return Err(cannot_create("Index keys cannot be an empty field."));
    }
    let text_wildcard = e.value().as_str() == Some("text");
    if matches!(name, "_fts" | "_ftsx") && (plugin != Some("text") || !crate::text_spec::is_stored_field(e)) {
        return Err(cannot_create(format!("Index key contains an illegal field name: '{name}'")));
    }
    if (is_wildcard_name(name) && plugin.is_none()) || (text_wildcard && name == "$**") {
        return match name.strip_suffix(".$**") {
            Some(prefix) => check_components(prefix),
            None => Ok(()),
        };
    }
    check_components(name)
}

fn check_components(path: &str) -> Result<()> {
    for part in path.split('.') {
        if part.is_empty() {
            return Err(cannot_create("Index keys cannot contain an empty field."));
        }
        let reference = matches!(part, "$id" | "$ref" | "$db") && path.contains('.');
        if part.starts_with('$') && !reference {
            return Err(cannot_create(
                "Index key contains an illegal field name: field name starts with '$'.",
            ));
        }
    }
    Ok(())
}

pub(crate) fn with_version(raw: &RawDoc, version: i32) -> DocBuf {
    let mut b = DocBuilder::with_capacity(raw.byte_len() + 16);
    b.elems_of(raw);
    if raw.elem("v").is_none() {
        b.i32("v", version);
    }
    b.finish()
}

/// The full form of the index's collation: its own, or else the collection's.
pub(crate) fn resolve_collation(
    raw: &RawDoc,
    with_v: &RawDoc,
    default: Option<&RawDoc>,
) -> Result<Option<DocBuf>> {
    match raw.get("collation").and_then(|v| v.as_doc()) {
        // What is wrong is told of the collation as given.
        Some(spec) => Collation::parse(spec).and_then(|_| crate::collation::full_form(spec)).map_err(|e| {
            e.context(format_args!(
                "failed to add collation information to index spec for index creation: {with_v}"
            ))
        }),
        None => Ok(default.map(|d| d.to_buf())),
    }
}

/// Checks the `idIndex` of a new collection.
pub fn check_id_index_spec(raw: &RawDoc, default: Option<&RawDoc>) -> Result<()> {
    let fields = check_fields(raw)?;
    let with_v = with_version(raw, fields.version);
    let collation = resolve_collation(raw, &with_v, default)?;
    if !is_id_key(fields.key) {
        return Err(Error::bad_value(format!(
            "The field 'key' for an _id index must be {{_id: 1}}, but got {}",
            fields.key
        )));
    }
    check_id_index(&fields, &with_v)?;
    check_id_collation(&fields, collation.as_deref(), default)
}

pub(crate) fn check_id_index(f: &Fields<'_>, with_v: &RawDoc) -> Result<()> {
    if !is_id_key(f.key) {
        return Err(Error::bad_value(format!(
            "The index name '_id_' is reserved for the _id index, which must have key pattern {{_id: 1}}, found \
             key: {}",
            f.key
        )));
    }
    if f.clustered { Ok(()) } else { check_id_options(with_v) }
}

/// Options that the index on `_id` does not have.
pub(crate) fn check_id_options(with_v: &RawDoc) -> Result<()> {
    if let Some(e) =
        with_v.iter().find(|e| !matches!(e.name(), "key" | "name" | "v" | "ns" | "_id" | "collation"))
    {
        return Err(Error::new(
            ErrorCode::InvalidIndexSpecificationOption,
            format!(
                "The field '{}' is not valid for an _id index specification. Specification: {with_v}",
                e.name()
            ),
        ));
    }
    Ok(())
}

pub(crate) fn check_id_collation(
    f: &Fields<'_>,
    collation: Option<&RawDoc>,
    default: Option<&RawDoc>,
) -> Result<()> {
    if !f.clustered && collation != default {
        let text =
            |c: Option<&RawDoc>| c.map_or_else(|| "{ locale: \"simple\" }".to_owned(), |d| d.to_string());
        return Err(Error::bad_value(format!(
            "The _id index must have the same collation as the collection. Index collation: {}, collection \
             collation: {}",
            text(collation),
            text(default)
        )));
    }
    Ok(())
}

/// Checks a TTL value; `Err` has the text that follows "TTL index 'expireAfterSeconds' option ".
pub fn check_ttl_value(v: Value<'_>) -> Result<i64, String> {
    if !v.is_number() {
        return Err(format!("must be numeric, but received a type of '{}'", v.type_name()));
    }
    match seconds(v) {
        Ok(n) if n < 0 => Err("cannot be less than 0".to_owned()),
        Ok(n) if n > i64::from(i32::MAX) => {
            Err("must be within an acceptable range, try a lower number".to_owned())
        }
        Ok(n) => Ok(n),
        Err(_) => Err("must be within an acceptable range, try a lower number".to_owned()),
    }
}

pub(crate) fn check_ttl(raw: &RawDoc, f: &Fields<'_>) -> Result<()> {
    let Some(e) = f.ttl else { return Ok(()) };
    if let Err(why) = check_ttl_value(e.value()) {
        return Err(cannot_create(format!("TTL index 'expireAfterSeconds' option {why}. Index spec: {raw}")));
    }
    if f.key.count() != 1 {
        return Err(cannot_create(format!(
            "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: {raw}"
        )));
    }
    Ok(())
}

pub(crate) fn check_options(f: &Fields<'_>) -> Result<()> {
    if f.name.is_empty() {
        return Err(cannot_create("index name cannot be empty"));
    }
    if f.name.contains('\0') {
        return Err(cannot_create("index name cannot contain NUL bytes"));
    }
    if f.kind == IndexKind::Wildcard && f.version < 2 {
        return Err(cannot_create(format!(
            "bad index key pattern {}: 'wildcard' index plugin is not allowed with index version v:{}",
            f.key, f.version
        )));
    }
    if let Some(e) = f.storage_engine {
        let Value::Document(d) = e.value() else {
            return Err(cannot_create("\"storageEngine\" options must be a document if present"));
        };
        if d.is_empty() {
            return Err(cannot_create(
                "Empty \"storageEngine\" options are invalid. Please remove the field or include valid options.",
            ));
        }
    }
    if f.kind == IndexKind::Wildcard {
        let unsupported = |what: &str| {
            Err(cannot_create(format!("Index type 'wildcard' does not support the {what} option")))
        };
        if f.sparse {
            return unsupported("sparse");
        }
        if f.unique || f.prepare_unique {
            return unsupported("unique");
        }
        if f.ttl.is_some() {
            return Err(cannot_create("Index type 'wildcard' cannot be a TTL index"));
        }
    }
    if let Some(partial) = f.partial {
        if f.sparse {
            return Err(cannot_create("cannot mix \"partialFilterExpression\" and \"sparse\" options"));
        }
        crate::partial::check(partial)?;
    }
    // What the engine makes of its options comes last.
    match f.storage_engine.map(|e| e.value()) {
        Some(Value::Document(d)) => crate::storage_engine::check_of_index(d),
        _ => Ok(()),
    }
}
