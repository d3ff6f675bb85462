//! The arguments of `mapReduce`; [`super::map_reduce_pipeline`] makes a pipeline of them.

use crate::declare::kinds::{AnythingGiven, Bool, Filter, Integer, Object, Sort, Text};
use crate::declare::{Kind, arguments, kind};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::shape::{Means, Null, Shape};
use pando_bson::{DocBuilder, RawDoc, Value};
use pando_query::collation::Collation;

arguments! {
    /// What `mapReduce` asks for.
    pub struct MapReduceArgs of "mapReduce" as "mapReduce", refusing {
        "map" map: required Script,
        "reduce" reduce: required Script,
        "out" out: required Out,
        "query" query: optional Filter,
        "sort" sort: optional Sort,
        "collation" collation: optional Collated,
        "limit" limit: optional Integer,
        "finalize" finalize_given: optional Finalize,
        "scope" scope_given: optional Scope,
        "verbose" verbose: optional Bool,
        "bypassDocumentValidation" bypass_validation: optional Bool,
        "jsMode" js_mode: optional Bool,
    }
}

impl<'a> MapReduceArgs<'a> {
    /// What the arguments mean, each by itself, once all of them are there.
    pub fn check(&self) -> Result<()> {
        if self.sort.is_some_and(RawDoc::is_empty) {
            let text = "The mapReduce sort option must have at least one sort key";
            return Err(Error::location(15976, text));
        }
        if self.limit.is_some_and(|n| n <= 0) {
            return Err(Error::location(15958, "The limit specified to mapReduce must be positive"));
        }
        self.collation().map(Collation::parse).transpose().map(drop)
    }
    pub fn collation(&self) -> Option<&'a RawDoc> {
        self.collation.filter(|d| !d.is_empty())
    }
    pub fn finalize(&self) -> Option<&'a str> {
        self.finalize_given.and_then(text_of_script)
    }
    pub fn scope(&self) -> Option<&'a RawDoc> {
        self.scope_given?.as_doc()
    }
}

kind! {
    /// A function's text.
    pub Script like Code {
        SHAPE: Shape::Checked { like: &[Shape::String], check: check_script }, NULL: Null::Value, MEANS: Means::Script,
    }
}
kind! {
    /// The same, or null for none.
    pub Finalize like AnythingGiven {
        SHAPE: Shape::Checked { like: &[Shape::String], check: check_finalize },
        NULL: Null::Value,
        MEANS: Means::Script,
    }
}
kind! {
    pub Scope like AnythingGiven {
        SHAPE: Shape::Checked { like: &[Shape::Object], check: check_scope }, NULL: Null::Value,
    }
}
kind! { pub Collated like Object { MEANS: Means::Collation } }

#[derive(Debug)]
pub struct Code;
impl Kind for Code {
    type Of<'a> = &'a str;
    const SHAPE: Shape = Text::SHAPE;
    fn read(v: Value<'_>) -> Option<&str> {
        text_of_script(v)
    }
    fn spell(v: &&str, name: &str, b: &mut DocBuilder) {
        b.str(name, v);
    }
}

/// A function's text, if that is what it is.
fn text_of_script(v: Value<'_>) -> Option<&str> {
    match v {
        Value::String(code) | Value::JavaScript(code) => Some(code),
        _ => None,
    }
}

fn check_script(path: &str, v: &Value<'_>) -> Result<()> {
    let name = path.rsplit('.').next().unwrap_or(path);
    let wrong = || Error::bad_value(format!("'{name}' must be of string or code type"));
    text_of_script(*v).map(drop).ok_or_else(wrong)
}
fn check_finalize(path: &str, v: &Value<'_>) -> Result<()> {
    if let Value::Null = v { Ok(()) } else { check_script(path, v) }
}
fn check_scope(_: &str, v: &Value<'_>) -> Result<()> {
    match v {
        Value::Null | Value::Document(_) => Ok(()),
        _ => Err(Error::bad_value("'scope' must be an object")),
    }
}

/// `out` as given, and what it says.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    pub given: Value<'a>,
    pub target: Output<'a>,
}

/// Where results go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output<'a> {
    Inline,
    /// Database, if it is another one, and collection.
    Replace(Option<&'a str>, &'a str),
    Merge(Option<&'a str>, &'a str),
    Reduce(Option<&'a str>, &'a str),
}

#[derive(Debug)]
pub struct Out;
impl Kind for Out {
    type Of<'a> = Destination<'a>;
    const SHAPE: Shape =
        Shape::Checked { like: &[Shape::String, Shape::Object], check: |_, v| output(v).map(drop) };
    const NULL: Null = Null::Value;
    const MEANS: Means = Means::Output;
    fn read(v: Value<'_>) -> Option<Destination<'_>> {
        output(&v).ok().map(|target| Destination { given: v, target })
    }
    fn spell(v: &Destination<'_>, name: &str, b: &mut DocBuilder) {
        b.value(name, v.given);
    }
}

/// What stands before errors within.
pub const CONTEXT: &str = "MapReduce internal error";

fn output<'a>(v: &Value<'a>) -> Result<Output<'a>> {
    let spec = match *v {
        Value::String(coll) => return Ok(Output::Replace(None, coll)),
        Value::Document(spec) => spec,
        _ => return Err(Error::bad_value("'out' must be either a string or an object")),
    };
    let text = |name: &str| spec.get(name).and_then(|v| v.as_str());
    if let Some(inline) = spec.get("inline") {
        if spec.count() > 1 {
            return Err(Error::new(ErrorCode::InvalidOptions, "'inline' must be specified alone"));
        }
        return match inline.as_f64() {
            Some(1.0) => Ok(Output::Inline),
            _ => Err(Error::bad_value("'inline' takes only numeric '1'")),
        };
    }
    check_options(spec)?;
    let db = text("db");
    let sharded = spec.get("sharded").is_some_and(|v| v.is_truthy());
    match (text("replace"), text("merge"), text("reduce")) {
        (Some(_), None, None) if sharded => Err(Error::new(
            ErrorCode::InvalidOptions,
            "Combination of 'out.sharded' and 'replace' output mode is not supported. Cannot replace an existing sharded \
             collection or create a new sharded collection. Please create the sharded collection first and use a \
             different output mode or consider using an unsharded collection.",
        )
        .context(CONTEXT)),
        (Some(coll), None, None) => Ok(Output::Replace(db, coll)),
        (None, Some(coll), None) => Ok(Output::Merge(db, coll)),
        (None, None, Some(coll)) => Ok(Output::Reduce(db, coll)),
        _ => Err(Error::bad_value("'out' requires 'replace', 'merge' or 'reduce'")),
    }
}

/// The mistakes of an `out` with a collection, in the order in which MongoDB tells them.
fn check_options(spec: &RawDoc) -> Result<()> {
    const OPTIONS: [&str; 3] = ["sharded", "nonAtomic", "db"];
    let wrong = |text: String| Err(Error::bad_value(text));
    for name in ["sharded", "nonAtomic"] {
        if spec.get(name).is_some_and(|v| !matches!(v, Value::Boolean(_))) {
            return wrong(format!("{name} field value must be boolean"));
        }
    }
    let kinds = ["replace", "merge", "reduce"];
    let mut given = kinds.iter().filter_map(|kind| Some((kind, spec.get(kind)?)));
    let Some((kind, coll)) = given.next() else { return Ok(()) };
    if given.next().is_none() && !matches!(coll, Value::String(_)) {
        return wrong(format!("'{kind}' supports only string consisting of output collection name"));
    }
    if spec.get("db").is_some_and(|v| !matches!(v, Value::String(_))) {
        return wrong("db field value must be string".to_owned());
    }
    if spec.get("nonAtomic").is_some_and(|v| !v.is_truthy()) {
        return wrong("nonAtomic field value must be true".to_owned());
    }
    if spec.iter().filter(|e| !OPTIONS.contains(&e.name())).count() > 1 {
        let text =
            "'out' supports only output type with collection name, optional 'sharded' and optional 'db'";
        return wrong(text.to_owned());
    }
    Ok(())
}
