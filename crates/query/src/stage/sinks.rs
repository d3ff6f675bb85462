//! Last stages that write: `$out` and `$merge`. They are parsed here; the caller, who owns the data, carries them out.

use super::element::null_array;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, FieldPath, check_user_var_name};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::shape::Shape;
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};

/// What becomes of a pipeline's results.
#[derive(Clone)]
pub enum Sink {
    /// They replace a collection.
    Out(Into),
    Merge(Box<Merge>),
}

/// The collection written to; without a database, in that of the command.
#[derive(Clone, Debug, PartialEq)]
pub struct Into {
    pub db: Option<String>,
    pub coll: String,
}

/// The results go into a collection one by one.
#[derive(Clone)]
pub struct Merge {
    pub into: Into,
    /// Paths that identify a document; `None` = `_id`.
    pub on: Option<Vec<String>>,
    pub when_matched: WhenMatched,
    pub when_not_matched: WhenNotMatched,
    /// Variables of the update pipeline besides `new`, evaluated for each result.
    pub let_vars: Vec<(String, Expr)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum WhenMatched {
    Replace,
    Merge,
    KeepExisting,
    Fail,
    /// An array of stages.
    Pipeline(DocBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    Insert,
    Discard,
    Fail,
}

pub(super) const NAMES: &[&str] = &["$out", "$merge"];

pub(super) fn is_sink(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The sink that a stage stands for; `None` for other stages.
pub(super) fn parse(e: Elem<'_>, ctx: Option<&QueryCtx>) -> Result<Option<Sink>> {
    Ok(Some(match e.name() {
        "$out" => Sink::Out(out(e.value())?),
        "$merge" => Sink::Merge(Box::new(merge(e.value(), ctx)?)),
        _ => return Ok(None),
    }))
}

/// The sinks among these stages and those inside of them, whatever is wrong with their places and variables. Of the pipelines of a
/// `$facet` the first that has some is the last that is looked at.
pub fn sinks_of(pipeline: &RawDoc) -> Vec<Sink> {
    let mut found = Vec::new();
    for stage in pipeline.iter().filter_map(|e| e.value().as_doc()?.first()) {
        match (stage.name(), stage.value()) {
            ("$out" | "$merge", _) => found.extend(parse(stage, None).ok().flatten()),
            ("$lookup" | "$unionWith", Value::Document(spec)) => {
                found.extend(spec.get("pipeline").and_then(|v| v.as_array()).into_iter().flat_map(sinks_of));
            }
            ("$facet", Value::Document(facets)) => {
                let within = facets.iter().filter_map(|f| f.value().as_array()).map(sinks_of);
                found.extend(within.into_iter().find(|sinks| !sinks.is_empty()).into_iter().flatten());
            }
            _ => {}
        }
    }
    found
}

fn out(v: Value<'_>) -> Result<Into> {
    match v {
        Value::String(coll) => Ok(Into { db: None, coll: coll.to_owned() }),
        Value::Document(d) => {
            if d.count() == 2
                && d.iter().all(|e| matches!(e.name(), "db" | "coll"))
                && let Some(e) = d.iter().find(|e| e.value().as_str().is_none())
            {
                let (name, found) = (e.name(), e.value().type_name());
                let text = format!("wrong type for field ({name}) {found} != string");
                return Err(Error::location(13111, text));
            }
            let text = |name| d.get(name).and_then(|v| v.as_str()).map(str::to_owned);
            match (text("db"), text("coll"), d.count()) {
                (Some(db), Some(coll), 2) => Ok(Into { db: Some(db), coll }),
                _ => Err(Error::location(
                    16994,
                    "If an object is passed to $out it must have exactly 2 fields: 'db' and 'coll'",
                )),
            }
        }
        v => Err(Error::location(
            16990,
            format!("$out only supports a string or object argument, but found {}", v.type_name()),
        )),
    }
}

/// Without a context, variables are not looked at.
fn merge(v: Value<'_>, ctx: Option<&QueryCtx>) -> Result<Merge> {
    let spec = match v {
        Value::String(coll) => {
            return Ok(Merge {
                into: Into { db: None, coll: coll.to_owned() },
                on: None,
                when_matched: WhenMatched::Merge,
                when_not_matched: WhenNotMatched::Insert,
                let_vars: Vec::new(),
            });
        }
        Value::Document(d) => d,
        v => {
            return Err(Error::type_mismatch(format!(
                "$merge requires a string or object argument, but found {}",
                v.type_name()
            )));
        }
    };
    let given = Given::read(spec)?;
    let missing = || Error::location(40414, "BSON field '$merge.into' is missing but a required field");
    let into = given.into.ok_or_else(missing)?;
    check_modes(&given.when_matched, given.when_not_matched)?;
    let let_vars = match (given.let_vars, ctx) {
        (Some(d), Some(ctx)) => let_vars(d, &given.when_matched, ctx)?,
        _ => Vec::new(),
    };
    let Given { on, when_matched, when_not_matched, .. } = given;
    Ok(Merge { into, on, when_matched, when_not_matched, let_vars })
}

/// The arguments of a `$merge`, read in the order in which they stand.
struct Given<'a> {
    into: Option<Into>,
    on: Option<Vec<String>>,
    let_vars: Option<&'a RawDoc>,
    when_matched: WhenMatched,
    when_not_matched: WhenNotMatched,
}

impl<'a> Given<'a> {
    fn read(spec: &'a RawDoc) -> Result<Given<'a>> {
        let mut given = Given {
            into: None,
            on: None,
            let_vars: None,
            when_matched: WhenMatched::Merge,
            when_not_matched: WhenNotMatched::Insert,
        };
        for f in spec {
            match (f.name(), f.value()) {
                ("into", v) => given.into = Some(into(v)?),
                ("on", v) => given.on = Some(on(v)?),
                ("whenMatched", v) => given.when_matched = when_matched(v)?,
                ("let" | "whenNotMatched", Value::Null | Value::Undefined) => {}
                ("whenNotMatched", v) => given.when_not_matched = when_not_matched(v)?,
                ("let", Value::Document(d)) => given.let_vars = Some(d),
                ("targetCollectionVersion", Value::Null | Value::Undefined) => {
                    return Err(null_array("targetCollectionVersion"));
                }
                ("targetCollectionVersion", _) => {}
                ("let", v) => {
                    return Err(Error::type_mismatch(format!(
                        "BSON field '$merge.let' is the wrong type '{}', expected type 'object'",
                        v.type_name()
                    )));
                }
                (other, _) => {
                    let text = format!("BSON field '$merge.{other}' is an unknown field.");
                    return Err(Error::location(40415, text));
                }
            }
        }
        Ok(given)
    }
}

fn into(v: Value<'_>) -> Result<Into> {
    match v {
        Value::String("") => Err(Error::location(5_786_800, "$merge 'into' field cannot be an empty string")),
        Value::String(coll) => Ok(Into { db: None, coll: coll.to_owned() }),
        Value::Document(d) => {
            if let Some(f) = d.iter().find(|f| !matches!(f.name(), "db" | "coll")) {
                return Err(Error::location(
                    40415,
                    format!("BSON field 'into.{}' is an unknown field.", f.name()),
                ));
            }
            for e in d.iter() {
                Shape::String.check(&format!("into.{}", e.name()), &e.value())?;
            }
            match d.get("coll").and_then(|v| v.as_str()).filter(|c| !c.is_empty()) {
                Some(coll) => Ok(Into {
                    db: d.get("db").and_then(|v| v.as_str()).filter(|db| !db.is_empty()).map(str::to_owned),
                    coll: coll.to_owned(),
                }),
                None => Err(Error::location(
                    5_786_801,
                    "$merge 'into' field must specify a 'coll' that is not empty, null or undefined",
                )),
            }
        }
        v => Err(Error::location(
            51178,
            format!("$merge 'into' field  must be either a string or an object, but found {}", v.type_name()),
        )),
    }
}

fn on(v: Value<'_>) -> Result<Vec<String>> {
    let fields: Vec<String> = match v {
        Value::String(f) => vec![f.to_owned()],
        Value::Array(list) => list
            .iter()
            .map(|e| match e.value() {
                Value::String(f) => Ok(f.to_owned()),
                v => Err(Error::location(
                    51134,
                    format!("$merge 'on' array elements must be strings, but found {}", v.type_name()),
                )),
            })
            .collect::<Result<_>>()?,
        v => {
            return Err(Error::location(
                51186,
                format!(
                    "$merge 'on' field  must be either a string or an array of strings, but found {}",
                    v.type_name()
                ),
            ));
        }
    };
    if fields.is_empty() {
        return Err(Error::location(
            51187,
            "If explicitly specifying $merge 'on', must include at least one field",
        ));
    }
    for (i, f) in fields.iter().enumerate() {
        FieldPath::parse(f)?;
        if fields[..i].contains(f) {
            return Err(Error::location(31465, format!("Found a duplicate field '{f}'")));
        }
    }
    Ok(fields)
}

fn when_matched(v: Value<'_>) -> Result<WhenMatched> {
    Ok(match v {
        Value::String("replace") => WhenMatched::Replace,
        Value::String("merge") => WhenMatched::Merge,
        Value::String("keepExisting") => WhenMatched::KeepExisting,
        Value::String("fail") => WhenMatched::Fail,
        Value::String(other) => {
            return Err(Error::bad_value(format!(
                "Enumeration value '{other}' for field 'whenMatched' is not a valid value."
            )));
        }
        Value::Array(stages) => WhenMatched::Pipeline(stages.to_buf()),
        v => {
            return Err(Error::location(
                51191,
                format!(
                    "$merge 'whenMatched' field  must be either a string or an array, but found {}",
                    v.type_name()
                ),
            ));
        }
    })
}

fn when_not_matched(v: Value<'_>) -> Result<WhenNotMatched> {
    match v {
        Value::String("insert") => Ok(WhenNotMatched::Insert),
        Value::String("discard") => Ok(WhenNotMatched::Discard),
        Value::String("fail") => Ok(WhenNotMatched::Fail),
        Value::String(other) => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field '$merge.whenNotMatched' is not a valid value."
        ))),
        v => Err(Error::type_mismatch(format!(
            "BSON field '$merge.whenNotMatched' is the wrong type '{}', expected type 'string'",
            v.type_name()
        ))),
    }
}

fn check_modes(matched: &WhenMatched, not_matched: WhenNotMatched) -> Result<()> {
    let name = match matched {
        WhenMatched::KeepExisting => "keepExisting",
        WhenMatched::Fail => "fail",
        _ => return Ok(()),
    };
    let other = match not_matched {
        WhenNotMatched::Insert => return Ok(()),
        WhenNotMatched::Discard => "discard",
        WhenNotMatched::Fail => "fail",
    };
    Err(Error::location(
        51181,
        format!(
            "Combination of $merge modes 'whenMatched: {name}' and 'whenNotMatched: {other}' is not supported"
        ),
    ))
}

/// `new` is always there; the client may name it, with its one meaning.
fn let_vars(d: &RawDoc, matched: &WhenMatched, ctx: &QueryCtx) -> Result<Vec<(String, Expr)>> {
    let mode = match matched {
        WhenMatched::Pipeline(_) => None,
        WhenMatched::Replace => Some("replace"),
        WhenMatched::Merge => Some("merge"),
        WhenMatched::KeepExisting => Some("keepExisting"),
        WhenMatched::Fail => Some("fail"),
    };
    if let Some(mode) = mode {
        return Err(Error::location(
            51199,
            format!("Cannot use 'let' variables with 'whenMatched: {mode}' mode"),
        ));
    }
    let mut out = Vec::new();
    for e in d {
        check_user_var_name(e.name())?;
        match (e.name(), e.value()) {
            ("new", Value::String("$$ROOT")) => {}
            ("new", _) => {
                return Err(Error::location(
                    51273,
                    "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'",
                ));
            }
            (name, v) => out.push((name.to_owned(), Expr::parse(v, ctx)?)),
        }
    }
    Ok(out)
}

/// `$out can only be the final stage in the pipeline`.
pub(super) fn not_last(name: &str) -> Error {
    Error::location(40601, format!("{name} can only be the final stage in the pipeline"))
}

impl Sink {
    /// The target has a name that a collection can have.
    pub(super) fn check_target(&self, db: &str) -> Result<()> {
        let (into, wrong): (_, fn(&str, &str) -> String) = match self {
            Sink::Out(into) => (into, |db, coll| format!("Invalid $out target namespace, {db}.{coll}")),
            Sink::Merge(m) => (&m.into, |db, coll| format!("Invalid $merge target namespace: '{db}.{coll}'")),
        };
        let (db, coll) = (into.db.as_deref().unwrap_or(db), into.coll.as_str());
        match Namespace::new(db, coll) {
            Err(e) if coll.contains('\0') => Err(e),
            Err(_) => Err(Error::new(ErrorCode::InvalidNamespace, wrong(db, coll))),
            Ok(_) => Ok(()),
        }
    }
    /// The collection that is written, if it is one of this database.
    pub fn target_in(&self, db: &str) -> Option<&str> {
        let into = match self {
            Sink::Out(into) => into,
            Sink::Merge(m) => &m.into,
        };
        into.db.as_deref().is_none_or(|own| own == db).then_some(&*into.coll)
    }
    /// The stage's name.
    pub fn name(&self) -> &'static str {
        match self {
            Sink::Out(_) => "$out",
            Sink::Merge(_) => "$merge",
        }
    }
    /// How explain shows it; `db` is that of the command.
    pub fn shown(&self, db: &str) -> DocBuf {
        let into = |d: &mut DocBuilder, to: &Into| {
            d.str("db", to.db.as_deref().unwrap_or(db)).str("coll", &to.coll);
        };
        let mut b = DocBuilder::new();
        b.doc(self.name(), |d| match self {
            Sink::Out(to) => into(d, to),
            Sink::Merge(m) => {
                d.doc("into", |d| into(d, &m.into));
                match m.on.as_deref() {
                    None => d.str("on", "_id"),
                    Some([one]) => d.str("on", one),
                    Some(many) => d.array("on", |a| {
                        for path in many {
                            a.str(path);
                        }
                    }),
                };
                if matches!(m.when_matched, WhenMatched::Pipeline(_)) && m.let_vars.is_empty() {
                    d.doc("let", |d| {
                        d.str("new", "$$ROOT");
                    });
                }
                match &m.when_matched {
                    WhenMatched::Pipeline(stages) => d.raw_array("whenMatched", stages),
                    WhenMatched::Replace => d.str("whenMatched", "replace"),
                    WhenMatched::Merge => d.str("whenMatched", "merge"),
                    WhenMatched::KeepExisting => d.str("whenMatched", "keepExisting"),
                    WhenMatched::Fail => d.str("whenMatched", "fail"),
                };
                let otherwise = match m.when_not_matched {
                    WhenNotMatched::Insert => "insert",
                    WhenNotMatched::Discard => "discard",
                    WhenNotMatched::Fail => "fail",
                };
                d.str("whenNotMatched", otherwise);
            }
        });
        b.finish()
    }
    /// The collection that is written, by a command in `db`.
    ///
    /// # Errors
    /// 31321 and 31320 (the databases of the server itself), 17385 and 31319 (its own collections), 73.
    pub fn target(&self, db: &str) -> Result<Namespace> {
        let (into, verb, codes) = match self {
            Sink::Out(into) => (into, "Can't $out", (31321, 17385)),
            Sink::Merge(merge) => (&merge.into, "Cannot $merge", (31320, 31319)),
        };
        let (db, coll) = (into.db.as_deref().unwrap_or(db), &into.coll);
        if matches!(db, "admin" | "config" | "local") {
            return Err(Error::location(codes.0, format!("{verb} to internal database: {db}")));
        }
        if coll.starts_with("system.") {
            return Err(Error::location(codes.1, format!("{verb} to special collection: {coll}")));
        }
        Namespace::new(db, coll).map_err(|_| {
            let text = format!("Invalid {} target namespace, {db}.{coll}", self.name());
            Error::new(ErrorCode::InvalidNamespace, text)
        })
    }
    /// Refuses what may not be read so and written.
    pub fn check_level(&self, linearizable: bool, shown: &str) -> Result<()> {
        if !linearizable {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::InvalidOptions,
            format!(
                "Command aggregate does not support {shown} :: caused by :: {} cannot be used with a 'linearizable' \
                 read concern level",
                self.name()
            ),
        ))
    }
}
