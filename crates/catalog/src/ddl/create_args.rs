//! The arguments of `create`, in two steps: [`CreateArgs::parse`] reads each field by itself, in the order of the
//! document, and names the first that has a wrong form; [`CreateArgs::options`] looks at what the fields mean together.
//! Between the two a command's concerns are checked, so that of several mistakes the one is told that MongoDB tells.

use crate::ddl::encrypted_fields;
use crate::ddl::storage_engine;
use crate::schema::options::{
    CAPPED_BYTES_MAX, Capped, ClusteredIndex, CollectionOptions, ValidationAction, ValidationLevel,
    ViewDefinition, bounded, invalid, parse_images, wrong_type,
};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::fields::{self, safe_i64};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};
use pando_index::check_ttl_value;
use pando_query::collation::Collation;
use pando_query::timeseries::TimeSeries;

/// Where options come from decides what is allowed in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    /// A user's `create` command.
    Command,
    /// An oplog entry or catalog row that was checked when it was made.
    Stored,
}

/// The fields of a `create`, each of which has the right form.
#[derive(Debug)]
pub struct CreateArgs<'a> {
    options: CollectionOptions,
    raw: Raw<'a>,
}

/// What only the second step can judge.
#[derive(Debug, Default)]
struct Raw<'a> {
    capped: bool,
    size: Option<i64>,
    max: Option<i64>,
    view_on: Option<&'a str>,
    pipeline: Option<&'a RawDoc>,
    id_index: Option<&'a RawDoc>,
    clustered: Option<Clustered<'a>>,
    ttl: Option<Value<'a>>,
    encrypted: Option<&'a RawDoc>,
    temp: bool,
    /// Every field that was given.
    names: Vec<&'a str>,
}

/// `clusteredIndex` as it was given.
#[derive(Clone, Copy, Debug)]
enum Clustered<'a> {
    Legacy(bool),
    Spec { key: &'a RawDoc, unique: bool, name: &'a str, version: i64 },
}

const BOOLISH: &[&str] = &["bool", "long", "int", "decimal", "double"];
const NUMBERS: &[&str] = &["long", "int", "decimal", "double"];

impl<'a> CreateArgs<'a> {
    /// Reads the body of the command. `is_generic` tells the fields that belong to every command.
    pub fn parse(body: &'a RawDoc, is_generic: impl Fn(&str) -> bool) -> Result<CreateArgs<'a>> {
        let mut args = CreateArgs { options: CollectionOptions::default(), raw: Raw::default() };
        for e in body.iter().skip(1).filter(|e| !is_generic(e.name())) {
            args.take(e, Origin::Command)?;
        }
        Ok(args)
    }
    /// Options that were checked when they were made.
    pub(crate) fn stored(options: &'a RawDoc) -> Result<CollectionOptions> {
        let mut args = CreateArgs { options: CollectionOptions::default(), raw: Raw::default() };
        for e in options {
            args.take(e, Origin::Stored)?;
        }
        args.finish(Origin::Stored)
    }
    /// The deprecated `autoIndexId` was given.
    pub fn has_auto_index_id(&self) -> bool {
        self.options.auto_index_id.is_some()
    }

    fn take(&mut self, e: Elem<'a>, origin: Origin) -> Result<()> {
        let (o, raw) = (&mut self.options, &mut self.raw);
        let none = matches!(e.value(), Value::Null | Value::Undefined);
        if !none {
            raw.names.push(e.name());
        }
        match e.name() {
            "pipeline" if none && origin == Origin::Command => {
                return Err(Error::location(10065, "invalid parameter: expected an object (pipeline)"));
            }
            "clusteredIndex" if none && origin == Origin::Command => {
                return Err(wrong_type("create", e, "types '[bool']"));
            }
            name if none && (origin == Origin::Stored || FIELDS.contains(&name)) => {}
            "capped" => raw.capped = boolean(e)?,
            // Older versions let convertToCapped store more than the bound; such a collection must still open.
            "size" if origin == Origin::Stored => raw.size = safe_i64(&e.value()),
            "size" => raw.size = Some(bounded("create", e, 1, CAPPED_BYTES_MAX, "<=")?),
            "max" => raw.max = Some(bounded("create", e, i64::MIN, i64::from(i32::MAX), "<")?),
            "validator" => o.validator = Some(object(e)?.to_buf()).filter(|d| !d.is_empty()),
            "validationLevel" => {
                o.validation_level = Some(ValidationLevel::parse(string(e)?, "create.validationLevel")?);
            }
            "validationAction" => {
                o.validation_action = Some(ValidationAction::parse(string(e)?, "create.validationAction")?);
            }
            "collation" => {
                Collation::check_form(object(e)?, "create.collation")?;
                o.collation = Some(object(e)?.to_buf());
            }
            "clusteredIndex" if origin == Origin::Stored && matches!(e.value(), Value::Boolean(true)) => {
                o.clustered = Some(ClusteredIndex { name: "_id_".to_owned() });
            }
            "clusteredIndex" => raw.clustered = Some(parse_clustered(e)?),
            "expireAfterSeconds" if e.value().is_number() => raw.ttl = Some(e.value()),
            "expireAfterSeconds" => {
                return Err(wrong_type("create", e, "types '[long, int, decimal, double']"));
            }
            "changeStreamPreAndPostImages" => {
                o.change_stream_pre_and_post_images = parse_images(e, "create")?
            }
            "storageEngine" => {
                o.storage_engine = Some(storage_engine::parse(object(e)?)?).filter(|d| !d.is_empty())
            }
            "indexOptionDefaults" => o.index_option_defaults = parse_index_defaults(object(e)?)?,
            "viewOn" => match string(e)? {
                "" => return Err(Error::bad_value("'viewOn' cannot be empty")),
                on => raw.view_on = Some(on),
            },
            "pipeline" => raw.pipeline = Some(parse_pipeline(e)?),
            "temp" if origin == Origin::Stored => o.temp = e.value().is_truthy(),
            "temp" => raw.temp = boolean(e).map(|_| true)?,
            "timeseries" => o.time_series = Some(TimeSeries::parse(object(e)?)?),
            "encryptedFields" => {
                encrypted_fields::check_form(object(e)?)?;
                raw.encrypted = e.value().as_doc();
            }
            "autoIndexId" => o.auto_index_id = Some(boolean(e)?),
            "idIndex" => raw.id_index = Some(object(e)?),
            "flags" if e.value().is_number() || origin == Origin::Stored => {}
            "flags" => return Err(fields::wrong_type("create", "flags", &e.value(), NUMBERS)),
            name if origin == Origin::Command => return Err(fields::unknown("create", name)),
            _ => {}
        }
        Ok(())
    }

    /// What the fields mean together. Rows that are older than `now_secs` of the clock cannot be asked for.
    pub fn options(self, ns: &Namespace, now_secs: i64) -> Result<CollectionOptions> {
        let raw = &self.raw;
        if is_clustered(raw) {
            check_bounds_of_clustered(raw)?;
        }
        check_capped(raw)?;
        if raw.temp {
            return Err(invalid("the 'temp' field is an invalid option"));
        }
        if let Some(series) = &self.options.time_series {
            check_series(ns, series, raw)?;
        }
        if raw.view_on.is_none() && raw.pipeline.is_some() {
            return Err(invalid("'pipeline' requires 'viewOn' to also be specified"));
        }
        if let Some(config) = raw.encrypted {
            encrypted_fields::check(config, &self.options, raw.capped, raw.view_on.is_some())?;
        }
        let placed = self.options.time_series.is_some() || is_clustered(raw);
        if raw.ttl.is_some() && !placed {
            return Err(invalid(
                "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' \
                 option is specified",
            ));
        }
        check_id_index(&self.options, raw)?;
        if let Some(clustered) = raw.clustered {
            check_clustered(clustered, &self.options, raw)?;
        }
        if let Some(v) = raw.ttl {
            check_reach(ttl_seconds(v)?, now_secs)?;
        }
        let stored = raw.view_on.is_none() && !ns.is_unreplicated();
        if self.options.auto_index_id == Some(false) && stored {
            return Err(Error::location(
                50001,
                format!("autoIndexId:false is not allowed for collection {ns} because it can be replicated"),
            ));
        }
        if raw.view_on.is_some() && self.options.change_stream_pre_and_post_images {
            return Err(invalid("option not supported on a view: changeStreamPreAndPostImages"));
        }
        if raw.encrypted.is_some() {
            return Err(Error::new(
                ErrorCode::CommandNotSupported,
                "encrypted collections are not supported by this server yet",
            ));
        }
        storage_engine::check(&self.options)?;
        self.finish(Origin::Command)
    }

    fn finish(self, origin: Origin) -> Result<CollectionOptions> {
        let CreateArgs { options: mut o, raw } = self;
        if let Some(Clustered::Spec { name, .. }) = raw.clustered {
            o.clustered = Some(ClusteredIndex { name: name.to_owned() });
        }
        if let Some(v) = raw.ttl {
            o.expire_after_seconds = Some(ttl_seconds(v)?);
        }
        if let (true, Some(size)) = (raw.capped, raw.size) {
            o.capped = Some(Capped::new(size, raw.max));
        }
        if let Some(view_on) = raw.view_on {
            o.view = Some(ViewDefinition {
                view_on: view_on.to_owned(),
                pipeline: raw.pipeline.map_or_else(DocBuf::new, |p| p.to_buf()),
            });
        }
        debug_assert!(origin == Origin::Stored || !raw.temp, "a temporary collection is nobody's to ask for");
        Ok(o)
    }
}

/// The fields a command may have, and may have as null.
const FIELDS: &[&str] = &[
    "autoIndexId",
    "capped",
    "changeStreamPreAndPostImages",
    "collation",
    "encryptedFields",
    "expireAfterSeconds",
    "flags",
    "idIndex",
    "indexOptionDefaults",
    "max",
    "size",
    "storageEngine",
    "temp",
    "timeseries",
    "validationAction",
    "validationLevel",
    "validator",
    "viewOn",
];

fn check_capped(raw: &Raw<'_>) -> Result<()> {
    match (raw.capped, raw.size) {
        (true, None) if !is_clustered(raw) => {
            Err(invalid("the 'size' field is required when 'capped' is true"))
        }
        (false, size) if size.is_some() || raw.max.is_some() => Err(invalid(
            "the 'capped' field needs to be true when either the 'size' or 'max' fields are present",
        )),
        _ => Ok(()),
    }
}

fn is_clustered(raw: &Raw<'_>) -> bool {
    matches!(raw.clustered, Some(Clustered::Spec { .. } | Clustered::Legacy(true)))
}

fn check_id_index(o: &CollectionOptions, raw: &Raw<'_>) -> Result<()> {
    let Some(spec) = raw.id_index else { return Ok(()) };
    let refuse = |with: &str| {
        let text = format!("'idIndex' is not allowed with '{with}': {spec}");
        Err(Error::new(ErrorCode::InvalidOptions, text))
    };
    if raw.view_on.is_some() {
        return refuse("viewOn");
    }
    if o.auto_index_id.is_some() {
        return refuse("autoIndexId");
    }
    let collation = match &o.collation {
        Some(c) => pando_index::full_collation(c)?,
        None => None,
    };
    pando_index::check_id_index_spec(spec, collation.as_deref())
}

/// A time series decides for itself what its buckets are like.
fn check_series(ns: &Namespace, series: &TimeSeries, raw: &Raw<'_>) -> Result<()> {
    const REFUSED: [&str; 13] = [
        "capped",
        "autoIndexId",
        "idIndex",
        "size",
        "max",
        "validator",
        "validationLevel",
        "validationAction",
        "viewOn",
        "pipeline",
        "changeStreamPreAndPostImages",
        "clusteredIndex",
        "flags",
    ];
    let given = |name: &&&str| raw.names.contains(*name) && (**name != "capped" || raw.capped);
    if let Some(name) = REFUSED.iter().find(given) {
        let text = format!("{ns}: 'timeseries' is not allowed with '{name}'");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    series.check(ns.as_str())
}

/// The bound of a clustered collection is a time.
fn check_bounds_of_clustered(raw: &Raw<'_>) -> Result<()> {
    let (code, field) = match (raw.size, raw.max) {
        (Some(_), _) => (6_049_200, "size"),
        (None, Some(_)) => (6_049_204, "max"),
        (None, None) => return Ok(()),
    };
    Err(Error::location(
        code,
        format!(
            "'{field}' field for capped collections is not allowed on clustered collections. Did you mean 'capped: \
             true' with 'expireAfterSeconds'?"
        ),
    ))
}

fn check_clustered(clustered: Clustered<'_>, o: &CollectionOptions, raw: &Raw<'_>) -> Result<()> {
    if let Clustered::Legacy(false) = clustered {
        return Ok(());
    }
    if raw.view_on.is_some() {
        return Err(Error::location(6_026_500, "The 'clusteredIndex' option is not supported with views"));
    }
    if raw.id_index.is_some() {
        return Err(invalid("The 'clusteredIndex' option is not supported with the 'idIndex' option"));
    }
    if o.auto_index_id == Some(false) {
        return Err(Error::location(
            6_026_501,
            "The 'clusteredIndex' option does not support {autoIndexId: false}",
        ));
    }
    if raw.capped && raw.ttl.is_none() {
        return Err(Error::location(
            6_049_201,
            "A capped clustered collection requires the 'expireAfterSeconds' field",
        ));
    }
    let Clustered::Spec { key, unique, name, version } = clustered else {
        return Err(Error::location(
            5_979_703,
            "The 'clusteredIndex' legacy format {clusteredIndex: <bool>} is only supported for specific internal \
             collections and vice versa",
        ));
    };
    let by_id = key.count() == 1 && key.get("_id").and_then(|v| v.as_f64()) == Some(1.0);
    if !by_id {
        return Err(Error::new(
            ErrorCode::InvalidIndexSpecificationOption,
            "The clusteredIndex option is only supported for key: {_id: 1}",
        ));
    }
    if !unique {
        return Err(Error::location(
            5_979_700,
            "The clusteredIndex option requires unique: true to be specified",
        ));
    }
    if version != 2 {
        return Err(Error::location(
            5_979_704,
            format!(
                "Invalid clusteredIndex specification {{ v: {version}, key: {key}, name: \"{name}\", unique: {unique} }}; \
                 cannot create a clusteredIndex with v={version}"
            ),
        ));
    }
    Ok(())
}

/// What a clustered collection or a time series keeps cannot be older than the clock can tell.
pub(crate) fn check_reach(seconds: i64, now_secs: i64) -> Result<()> {
    if seconds <= now_secs {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::InvalidOptions,
        "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number",
    ))
}

/// The seconds after which rows of a clustered collection or a time series expire.
pub(crate) fn ttl_seconds(v: Value<'_>) -> Result<i64> {
    let v = if matches!(v, Value::Double(d) if d.is_nan()) { Value::Int32(0) } else { v };
    check_ttl_value(v).map_err(|why| {
        Error::new(ErrorCode::InvalidOptions, format!("TTL index 'expireAfterSeconds' option {why}"))
    })
}

fn parse_clustered(e: Elem<'_>) -> Result<Clustered<'_>> {
    let spec = match e.value() {
        Value::Document(d) => d,
        v if v.is_number() || matches!(v, Value::Boolean(_)) => return Ok(Clustered::Legacy(v.is_truthy())),
        _ => return Err(wrong_type("create", e, "types '[bool']")),
    };
    if let Some(twice) = fields::doubled(spec) {
        return Err(fields::duplicate("create", twice));
    }
    let (mut key, mut unique, mut name, mut version) = (None, None, "_id_", 2);
    for f in spec {
        let v = f.value();
        let none = matches!(v, Value::Null | Value::Undefined);
        match f.name() {
            "key" | "unique" | "name" | "v" if none => {}
            "key" => key = Some(v.as_doc().ok_or_else(|| wrong_type("create", f, "type 'object'"))?),
            "unique" => unique = Some(boolean(f)?),
            "name" => name = string(f)?,
            "v" => {
                let n = safe_i64(&v).ok_or_else(|| fields::wrong_type("create", "v", &v, NUMBERS))?;
                version = n.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
            }
            other => return Err(fields::unknown("create", other)),
        }
    }
    let key = key.ok_or_else(|| fields::missing("create", "key"))?;
    let unique = unique.ok_or_else(|| fields::missing("create", "unique"))?;
    Ok(Clustered::Spec { key, unique, name, version })
}

fn parse_pipeline(e: Elem<'_>) -> Result<&RawDoc> {
    let Value::Array(stages) = e.value() else { return Err(wrong_type("create", e, "type 'array'")) };
    for stage in stages {
        if !matches!(stage.value(), Value::Document(_)) {
            let name = format!("pipeline.{}", stage.name());
            return Err(fields::wrong_type("create", &name, &stage.value(), &["object"]));
        }
    }
    Ok(stages)
}

fn parse_index_defaults(d: &RawDoc) -> Result<Option<DocBuf>> {
    const OWNER: &str = "create.indexOptionDefaults";
    let mut kept = DocBuilder::new();
    for e in d {
        match (e.name(), e.value()) {
            ("storageEngine", Value::Document(engine)) => {
                storage_engine::parse(engine)?;
                kept.elem(e);
            }
            ("storageEngine", Value::Null | Value::Undefined) => {}
            ("storageEngine", v) => return Err(fields::wrong_type(OWNER, "storageEngine", &v, &["object"])),
            (other, _) => return Err(fields::unknown(OWNER, other)),
        }
    }
    Ok(Some(kept.finish()).filter(|d| !d.is_empty()))
}

fn object(e: Elem<'_>) -> Result<&RawDoc> {
    e.value().as_doc().ok_or_else(|| wrong_type("create", e, "type 'object'"))
}

fn string(e: Elem<'_>) -> Result<&str> {
    e.value().as_str().ok_or_else(|| wrong_type("create", e, "type 'string'"))
}

fn boolean(e: Elem<'_>) -> Result<bool> {
    match e.value() {
        Value::Boolean(on) => Ok(on),
        v if v.is_number() => Ok(v.is_truthy()),
        v => Err(fields::wrong_type("create", e.name(), &v, BOOLISH)),
    }
}
