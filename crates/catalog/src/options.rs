//! Collection options: parsed from `create` and from catalog rows, shown by `listCollections`.

use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};
use pando_query::timeseries::TimeSeries;

/// What `create` may say about a collection or view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionOptions {
    pub capped: Option<Capped>,
    pub validator: Option<DocBuf>,
    pub validation_level: Option<ValidationLevel>,
    pub validation_action: Option<ValidationAction>,
    /// With all fields filled in; `None` is the simple collation.
    pub collation: Option<DocBuf>,
    pub clustered: Option<ClusteredIndex>,
    /// Seconds; clustered collections only.
    pub expire_after_seconds: Option<i64>,
    pub change_stream_pre_and_post_images: bool,
    pub storage_engine: Option<DocBuf>,
    pub index_option_defaults: Option<DocBuf>,
    /// Goes away at the next start.
    pub temp: bool,
    pub view: Option<ViewDefinition>,
    /// Of a collection of buckets; in a command, of the time series to be made.
    pub time_series: Option<TimeSeries>,
    /// `autoIndexId` as it was given. `false` only unreplicated collections may have, and it is never stored.
    pub auto_index_id: Option<bool>,
}

/// Bounds of a capped collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capped {
    /// Bytes, a multiple of 256.
    pub size: i64,
    /// Documents; `None` is no bound.
    pub max: Option<i64>,
}

/// The index a clustered collection's records are ordered by: `{_id: 1}`, unique.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusteredIndex {
    pub name: String,
}

/// What a view stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewDefinition {
    /// Collection or view name in the same database.
    pub view_on: String,
    /// An array of stages, as bytes.
    pub pipeline: DocBuf,
}

/// Which writes are validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ValidationLevel {
    Off,
    /// Inserts, and updates of documents that were valid before.
    Moderate,
    #[default]
    Strict,
}

/// What happens to an invalid write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ValidationAction {
    Warn,
    #[default]
    Error,
}

impl ValidationLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            ValidationLevel::Off => "off",
            ValidationLevel::Moderate => "moderate",
            ValidationLevel::Strict => "strict",
        }
    }
    /// `field` is the full name for the error text, such as `create.validationLevel`.
    pub fn parse(s: &str, field: &str) -> Result<ValidationLevel> {
        match s {
            "off" => Ok(ValidationLevel::Off),
            "moderate" => Ok(ValidationLevel::Moderate),
            "strict" => Ok(ValidationLevel::Strict),
            _ => Err(bad_enum(s, field)),
        }
    }
}

impl ValidationAction {
    pub fn as_str(self) -> &'static str {
        match self {
            ValidationAction::Warn => "warn",
            ValidationAction::Error => "error",
        }
    }
    pub fn parse(s: &str, field: &str) -> Result<ValidationAction> {
        match s {
            "warn" => Ok(ValidationAction::Warn),
            "error" => Ok(ValidationAction::Error),
            _ => Err(bad_enum(s, field)),
        }
    }
}

fn bad_enum(s: &str, field: &str) -> Error {
    Error::bad_value(format!("Enumeration value '{s}' for field '{field}' is not a valid value."))
}

pub use pando_base::limits::CAPPED_BYTES_MAX;
/// Capped sizes are multiples of this many bytes.
const CAPPED_GRANULE: i64 = 256;

impl Capped {
    /// `size` rounded up as MongoDB does and kept within its bounds; `max` of zero or less means no bound but is shown as 2^31 - 1.
    pub fn new(size: i64, max: Option<i64>) -> Capped {
        let size = (size.clamp(1, CAPPED_BYTES_MAX) + CAPPED_GRANULE - 1) / CAPPED_GRANULE * CAPPED_GRANULE;
        let max = max.map(|m| if m <= 0 { i64::from(i32::MAX) } else { m });
        Capped { size, max }
    }
}

/// Where options come from decides what is allowed in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    /// A user's `create` command.
    Command,
    /// An oplog entry or catalog row that was checked when it was made.
    Stored,
}

impl CollectionOptions {
    /// Parses the body of a `create` command. `is_generic` tells the fields that belong to every command.
    pub fn from_command(body: &RawDoc, is_generic: impl Fn(&str) -> bool) -> Result<CollectionOptions> {
        let fields = body.iter().skip(1).filter(|e| !is_generic(e.name()));
        let options = parse(fields, Origin::Command)?;
        Ok(options)
    }
    /// Parses options as stored: the rest of `{create: "c", ...}` in an oplog entry, or a catalog row's part.
    pub fn from_stored(options: &RawDoc) -> Result<CollectionOptions> {
        parse(options.iter(), Origin::Stored)
    }
    pub fn is_view(&self) -> bool {
        self.view.is_some()
    }
    /// Appends the options as `listCollections` shows them and as rows and oplog entries carry them.
    pub fn append_to(&self, b: &mut DocBuilder) {
        if let Some(capped) = &self.capped {
            b.bool("capped", true);
            append_number(b, "size", capped.size);
            if let Some(max) = capped.max {
                append_number(b, "max", max);
            }
        }
        if self.auto_index_id == Some(true) {
            b.bool("autoIndexId", true);
        }
        if self.temp {
            b.bool("temp", true);
        }
        if self.change_stream_pre_and_post_images {
            b.doc("changeStreamPreAndPostImages", |d| {
                d.bool("enabled", true);
            });
        }
        if let Some(d) = &self.storage_engine {
            b.raw_doc("storageEngine", d);
        }
        if let Some(d) = self.validator.as_ref().filter(|d| !d.is_empty()) {
            b.raw_doc("validator", d);
        }
        if let Some(level) = self.validation_level {
            b.str("validationLevel", level.as_str());
        }
        if let Some(action) = self.validation_action {
            b.str("validationAction", action.as_str());
        }
        if let Some(d) = &self.index_option_defaults {
            b.raw_doc("indexOptionDefaults", d);
        }
        if let Some(view) = &self.view {
            b.str("viewOn", &view.view_on);
            b.raw_array("pipeline", &view.pipeline);
        }
        if let Some(d) = &self.collation {
            b.raw_doc("collation", d);
        }
        match &self.clustered {
            Some(_) if self.time_series.is_some() => {
                b.bool("clusteredIndex", true);
            }
            Some(clustered) => {
                b.raw_doc("clusteredIndex", &clustered.to_doc());
            }
            None => {}
        }
        if let Some(seconds) = self.expire_after_seconds {
            b.i64("expireAfterSeconds", seconds);
        }
        if let Some(series) = &self.time_series {
            b.doc("timeseries", |d| series.append_to(d));
        }
    }
    pub fn to_doc(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        self.append_to(&mut b);
        b.finish()
    }
}

impl ClusteredIndex {
    pub fn to_doc(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.i32("v", 2);
        b.doc("key", |k| {
            k.i32("_id", 1);
        });
        b.str("name", &self.name);
        b.bool("unique", true);
        b.finish()
    }
}

/// Small numbers as int32, others as int64, as MongoDB stores them.
pub(crate) fn append_number(b: &mut DocBuilder, name: &str, n: i64) {
    match i32::try_from(n) {
        Ok(small) => b.i32(name, small),
        Err(_) => b.i64(name, n),
    };
}

#[derive(Default)]
struct Raw<'a> {
    capped: bool,
    size: Option<i64>,
    max: Option<i64>,
    view_on: Option<&'a str>,
    pipeline: Option<&'a RawDoc>,
    id_index: Option<&'a RawDoc>,
}

fn parse<'a>(fields: impl Iterator<Item = Elem<'a>>, origin: Origin) -> Result<CollectionOptions> {
    let mut o = CollectionOptions::default();
    let mut raw = Raw::default();
    for e in fields {
        parse_field(&mut o, &mut raw, e, origin)?;
    }
    finish(o, raw, origin)
}

fn parse_field<'a>(o: &mut CollectionOptions, raw: &mut Raw<'a>, e: Elem<'a>, origin: Origin) -> Result<()> {
    if matches!(e.value(), Value::Null | Value::Undefined) {
        return Ok(());
    }
    match e.name() {
        "capped" => raw.capped = boolean(e)?,
        // Older versions let convertToCapped store more than the bound; such a collection must still open.
        "size" if origin == Origin::Stored => raw.size = e.value().as_f64().map(|n| n as i64),
        "size" => raw.size = Some(bounded("create", e, 1, CAPPED_BYTES_MAX, "<=")?),
        "max" => raw.max = Some(bounded("create", e, i64::MIN, i64::from(i32::MAX), "<")?),
        "validator" => o.validator = Some(object(e)?.to_buf()).filter(|d| !d.is_empty()),
        "validationLevel" => {
            o.validation_level = Some(ValidationLevel::parse(string(e)?, "create.validationLevel")?);
        }
        "validationAction" => {
            o.validation_action = Some(ValidationAction::parse(string(e)?, "create.validationAction")?);
        }
        "collation" => o.collation = Some(object(e)?.to_buf()),
        "clusteredIndex" if origin == Origin::Stored && matches!(e.value(), Value::Boolean(true)) => {
            o.clustered = Some(ClusteredIndex { name: "_id_".to_owned() });
        }
        "clusteredIndex" => o.clustered = parse_clustered(e)?,
        "expireAfterSeconds" => o.expire_after_seconds = Some(ttl_seconds("create", e, e.value())?),
        "changeStreamPreAndPostImages" => o.change_stream_pre_and_post_images = parse_images(e, "create")?,
        "storageEngine" => {
            o.storage_engine = Some(parse_storage_engine(object(e)?)?).filter(|d| !d.is_empty())
        }
        "indexOptionDefaults" => o.index_option_defaults = parse_index_defaults(object(e)?)?,
        "viewOn" => raw.view_on = Some(string(e)?),
        "pipeline" => match e.value() {
            Value::Array(a) => raw.pipeline = Some(a),
            _ => return Err(wrong_type("create", e, "type 'array'")),
        },
        "temp" if origin == Origin::Stored => o.temp = e.value().is_truthy(),
        "temp" => return Err(invalid("the 'temp' field is an invalid option")),
        "timeseries" => {
            let spec = e.value().as_doc().ok_or_else(|| wrong_type("create", e, "type 'object'"))?;
            o.time_series = Some(TimeSeries::parse(spec)?);
        }
        "encryptedFields" => {
            return Err(Error::new(
                ErrorCode::CommandNotSupported,
                "encrypted collections are not supported by this server yet",
            ));
        }
        "autoIndexId" => o.auto_index_id = Some(boolean(e)?),
        "idIndex" if origin == Origin::Command => raw.id_index = Some(object(e)?),
        "flags" | "idIndex" | "uuid" => {}
        name if origin == Origin::Command => {
            return Err(Error::location(40415, format!("BSON field 'create.{name}' is an unknown field.")));
        }
        _ => {}
    }
    Ok(())
}

fn finish(mut o: CollectionOptions, raw: Raw<'_>, origin: Origin) -> Result<CollectionOptions> {
    match raw.view_on {
        Some("") => return Err(Error::bad_value("'viewOn' cannot be empty")),
        None if raw.pipeline.is_some() => {
            return Err(invalid("'pipeline' requires 'viewOn' to also be specified"));
        }
        _ => {}
    }
    match (raw.capped, raw.size) {
        (true, Some(_)) if o.clustered.is_some() => {
            return Err(Error::location(
                6_049_200,
                "'size' field for capped collections is not allowed on clustered collections. Did you mean \
                 'capped: true' with 'expireAfterSeconds'?",
            ));
        }
        (true, Some(size)) => o.capped = Some(Capped::new(size, raw.max)),
        (true, None) if o.clustered.is_none() => {
            return Err(invalid("the 'size' field is required when 'capped' is true"));
        }
        (false, Some(_)) => return Err(invalid(CAPPED_NEEDED)),
        (false, None) if raw.max.is_some() => return Err(invalid(CAPPED_NEEDED)),
        _ => {}
    }
    if o.expire_after_seconds.is_some()
        && o.clustered.is_none()
        && o.time_series.is_none()
        && origin == Origin::Command
    {
        return Err(invalid(
            "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' \
             option is specified",
        ));
    }
    if let Some(view_on) = raw.view_on {
        check_view(&o, &raw)?;
        o.view = Some(ViewDefinition {
            view_on: view_on.to_owned(),
            pipeline: raw.pipeline.map_or_else(DocBuf::new, |p| p.to_buf()),
        });
        return Ok(o);
    }
    if let Some(spec) = raw.id_index {
        check_id_index(spec)?;
    }
    Ok(o)
}

/// Options that a view may not have. (Others are only of no use.)
fn check_view(o: &CollectionOptions, raw: &Raw<'_>) -> Result<()> {
    let invalid = |text: String| Err(Error::new(ErrorCode::InvalidOptions, text));
    if let Some(spec) = raw.id_index {
        return invalid(format!("'idIndex' is not allowed with 'viewOn': {spec}"));
    }
    if o.clustered.is_some() {
        return Err(Error::location(6_026_500, "The 'clusteredIndex' option is not supported with views"));
    }
    if o.change_stream_pre_and_post_images {
        return invalid("option not supported on a view: changeStreamPreAndPostImages".to_owned());
    }
    Ok(())
}

const CAPPED_NEEDED: &str =
    "the 'capped' field needs to be true when either the 'size' or 'max' fields are present";

fn parse_clustered(e: Elem<'_>) -> Result<Option<ClusteredIndex>> {
    let spec = match e.value() {
        Value::Document(d) => d,
        v if (v.is_number() || matches!(v, Value::Boolean(_))) && !v.is_truthy() => return Ok(None),
        v if v.is_number() || matches!(v, Value::Boolean(_)) => {
            return Err(Error::location(
                5_979_703,
                "The 'clusteredIndex' legacy format {clusteredIndex: <bool>} is only supported for specific \
                 internal collections and vice versa",
            ));
        }
        _ => return Err(wrong_type("create", e, "types '[bool']")),
    };
    let (mut key, mut unique, mut name) = (None, None, "_id_");
    for f in spec {
        match (f.name(), f.value()) {
            ("key", Value::Document(d)) => key = Some(d),
            ("unique", v) => unique = Some(v.is_truthy()),
            ("name", Value::String(s)) => name = s,
            ("v", v) if v.as_i64() == Some(2) => {}
            ("key" | "name" | "v", _) => return Err(wrong_type("create", f, "type 'object'")),
            (other, _) => {
                return Err(Error::location(
                    40415,
                    format!("BSON field 'create.{other}' is an unknown field."),
                ));
            }
        }
    }
    let missing =
        |f: &str| Error::location(40414, format!("BSON field 'create.{f}' is missing but a required field"));
    let key = key.ok_or_else(|| missing("key"))?;
    if !unique.ok_or_else(|| missing("unique"))? {
        return Err(Error::location(
            5_979_700,
            "The clusteredIndex option requires unique: true to be specified",
        ));
    }
    let by_id = key.count() == 1 && key.get("_id").and_then(|v| v.as_f64()) == Some(1.0);
    if !by_id {
        return Err(Error::new(
            ErrorCode::InvalidIndexSpecificationOption,
            "The clusteredIndex option is only supported for key: {_id: 1}",
        ));
    }
    Ok(Some(ClusteredIndex { name: name.to_owned() }))
}

fn check_id_index(spec: &RawDoc) -> Result<()> {
    let key = spec.get("key").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
    if crate::spec::is_id_key(key) {
        return Ok(());
    }
    Err(Error::bad_value(format!("The field 'key' for an _id index must be {{_id: 1}}, but got {key}")))
}

/// `{enabled: <bool>}`.
pub(crate) fn parse_images(e: Elem<'_>, command: &str) -> Result<bool> {
    let Value::Document(d) = e.value() else {
        return Err(wrong_type(command, e, "type 'object'"));
    };
    match d.get("enabled") {
        Some(Value::Boolean(on)) => Ok(on),
        Some(v) => Err(Error::type_mismatch(format!(
            "BSON field '{command}.changeStreamPreAndPostImages.enabled' is the wrong type '{}', expected type \
             'bool'",
            v.type_name()
        ))),
        None => Err(Error::location(
            40414,
            format!(
                "BSON field '{command}.changeStreamPreAndPostImages.enabled' is missing but a required field"
            ),
        )),
    }
}

fn parse_storage_engine(d: &RawDoc) -> Result<DocBuf> {
    for e in d {
        if e.value().as_doc().is_none() {
            return Err(Error::bad_value(format!(
                "'storageEngine.{}' has to be an embedded document.",
                e.name()
            )));
        }
    }
    Ok(d.to_buf())
}

fn parse_index_defaults(d: &RawDoc) -> Result<Option<DocBuf>> {
    for e in d {
        if e.name() != "storageEngine" {
            let text = format!("BSON field 'create.indexOptionDefaults.{}' is an unknown field.", e.name());
            return Err(Error::location(40415, text));
        }
        if let Value::Document(engine) = e.value() {
            parse_storage_engine(engine)?;
        }
    }
    Ok(Some(d.to_buf()).filter(|d| !d.is_empty()))
}

pub(crate) fn invalid(message: &'static str) -> Error {
    Error::new(ErrorCode::InvalidOptions, message)
}

pub(crate) fn wrong_type(command: &str, e: Elem<'_>, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{command}.{}' is the wrong type '{}', expected {expected}",
        e.name(),
        e.value().type_name()
    ))
}

fn object(e: Elem<'_>) -> Result<&RawDoc> {
    e.value().as_doc().ok_or_else(|| wrong_type("create", e, "type 'object'"))
}

fn string(e: Elem<'_>) -> Result<&str> {
    e.value().as_str().ok_or_else(|| wrong_type("create", e, "type 'string'"))
}

fn boolean(e: Elem<'_>) -> Result<bool> {
    match e.value() {
        v @ (Value::Boolean(_)
        | Value::Int32(_)
        | Value::Int64(_)
        | Value::Double(_)
        | Value::Decimal128(_)) => Ok(v.is_truthy()),
        _ => Err(wrong_type("create", e, "types '[bool, long, int, decimal, double']")),
    }
}

/// `expireAfterSeconds` of a clustered collection or a time series.
pub(crate) fn ttl_seconds(command: &str, e: Elem<'_>, v: Value<'_>) -> Result<i64> {
    if !v.is_number() {
        return Err(wrong_type(command, e, "types '[long, int, decimal, double']"));
    }
    crate::spec::check_ttl_value(v).map_err(|why| {
        Error::new(ErrorCode::InvalidOptions, format!("TTL index 'expireAfterSeconds' option {why}"))
    })
}

/// A number cut to an integer, between `min` and `max` inclusive; `upper` is the sign in the error text.
pub(crate) fn bounded(command: &str, e: Elem<'_>, min: i64, max: i64, upper: &str) -> Result<i64> {
    let n = match e.value() {
        Value::Int32(n) => i64::from(n),
        Value::Int64(n) => n,
        Value::Double(d) => d as i64,
        Value::Decimal128(_) => i64::MAX,
        _ => return Err(wrong_type(command, e, "types '[long, int, decimal, double']")),
    };
    let name = e.name();
    if n < min {
        return Err(Error::location(
            51024,
            format!("BSON field '{name}' value must be >= {min}, actual value '{n}'"),
        ));
    }
    if n > max {
        let bound = if upper == "<" { max + 1 } else { max };
        return Err(Error::location(
            51024,
            format!("BSON field '{name}' value must be {upper} {bound}, actual value '{n}'"),
        ));
    }
    Ok(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Document, doc};

    fn create(fields: Document) -> Result<CollectionOptions> {
        let mut body = doc! { "create": "c" };
        for (k, v) in fields {
            body.push(k, v);
        }
        CollectionOptions::from_command(&body.to_raw(), |name| name == "$db")
    }

    #[test]
    fn capped_sizes_round_up_to_256() {
        for (size, stored) in [(100, 256), (1000, 1024), (5000, 5120), (256, 256)] {
            let o = create(doc! { "capped": true, "size": size }).unwrap();
            assert_eq!(o.capped.map(|c| c.size), Some(stored));
        }
        let o = create(doc! { "capped": true, "size": 5000.7, "max": 0 }).unwrap();
        assert_eq!(o.capped, Some(Capped { size: 5120, max: Some(2_147_483_647) }));
    }

    #[test]
    fn refused_options_have_mongodbs_codes() {
        let cases = [
            (doc! { "capped": true }, 72),
            (doc! { "size": 100 }, 72),
            (doc! { "max": 100 }, 72),
            (doc! { "capped": true, "size": 0 }, 51024),
            (doc! { "capped": true, "size": 1i64 << 51 }, 51024),
            (doc! { "capped": true, "size": "x" }, 14),
            (doc! { "capped": true, "size": 1, "max": 1i64 << 31 }, 51024),
            (doc! { "validationLevel": "x" }, 2),
            (doc! { "viewOn": "" }, 2),
            (doc! { "pipeline": [] }, 72),
            (doc! { "temp": true }, 72),
            (doc! { "foo": 1 }, 40415),
            (doc! { "expireAfterSeconds": 5 }, 72),
            (doc! { "clusteredIndex": { "key": { "_id": 1 } } }, 40414),
            (doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": false } }, 5_979_700),
            (doc! { "clusteredIndex": { "key": { "a": 1 }, "unique": true } }, 197),
            (doc! { "clusteredIndex": true }, 5_979_703),
            (doc! { "storageEngine": { "x": 1 } }, 2),
            (doc! { "changeStreamPreAndPostImages": {} }, 40414),
        ];
        for (fields, code) in cases {
            let text = format!("{fields:?}");
            assert_eq!(create(fields).unwrap_err().code.0, code, "{text}");
        }
    }

    #[test]
    fn sizes_that_only_an_older_version_let_in_are_cut_to_the_bound() {
        for size in [CAPPED_BYTES_MAX + 1, i64::MAX] {
            let stored = doc! { "capped": true, "size": size }.to_raw();
            let capped = CollectionOptions::from_stored(&stored).unwrap().capped.unwrap();
            assert_eq!(capped.size, CAPPED_BYTES_MAX);
            assert_eq!(Capped::new(size, None), capped);
        }
    }

    #[test]
    fn stored_options_read_back_the_same() {
        let all = [
            doc! { "capped": true, "size": 512, "max": 3 },
            doc! { "validator": { "a": 1 }, "validationLevel": "off", "validationAction": "warn" },
            doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "name": "x" }, "expireAfterSeconds": 5 },
            doc! { "viewOn": "c", "pipeline": [{ "$match": {} }] },
            doc! { "changeStreamPreAndPostImages": { "enabled": true } },
        ];
        for fields in all {
            let o = create(fields).unwrap();
            assert_eq!(CollectionOptions::from_stored(&o.to_doc()).unwrap(), o);
        }
    }
}
