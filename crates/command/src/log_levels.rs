//! `logLevel` and `logComponentVerbosity`: how much each part of a process writes to its log.

use crate::args::safe_i64;
use crate::params::ParamRow;
use pando_base::{Error, Result};
use pando_bson::{Bson, DocBuilder, RawDoc, Value};
use pando_env::Component;
use pando_env::log::LogSink;

const HIGHEST_LEVEL: i64 = 5;

/// The parameter's value.
pub fn append(sink: &dyn LogSink, b: &mut DocBuilder, name: &str, row: &ParamRow) {
    match row.name {
        "logLevel" => drop(b.i32(name, i32::from(sink.verbosity(Component::Default)))),
        _ => append_verbosity(b, name, &|c| i32::from(sink.verbosity(c))),
    }
}

/// The tree of components with their verbosity, as `logComponentVerbosity` shows it.
fn append_verbosity(b: &mut DocBuilder, name: &str, of: &dyn Fn(Component) -> i32) {
    b.doc(name, |top| {
        top.i32("verbosity", of(Component::Default));
        for c in Component::ALL.iter().filter(|c| **c != Component::Default && !c.path().contains('.')) {
            top.doc(c.path(), |d| {
                d.i32("verbosity", of(*c));
                let prefix = format!("{}.", c.path());
                for child in Component::ALL {
                    if let Some(rest) = child.path().strip_prefix(&prefix) {
                        d.doc(rest, |x| {
                            x.i32("verbosity", of(*child));
                        });
                    }
                }
            });
        }
    });
}

/// What `logLevel` was; of the other parameter nothing is told.
pub fn set(sink: &dyn LogSink, row: &ParamRow, v: &Value<'_>) -> Result<Option<Bson>> {
    if row.name == "logLevel" {
        let was = sink.verbosity(Component::Default);
        let level = safe_i64(v)
            .filter(|n| *n >= 0)
            .ok_or_else(|| Error::bad_value(format!("Invalid value for logLevel: logLevel: {v}")))?;
        sink.set_verbosity(Component::Default, Some(level.min(HIGHEST_LEVEL) as u8));
        return Ok(Some(Bson::Int32(i32::from(was))));
    }
    let (Value::Document(tree) | Value::Array(tree)) = v else {
        return Err(Error::type_mismatch(format!("log component verbosity is not a BSON object: {v}")));
    };
    let mut changes = Vec::new();
    collect(tree, "", &mut changes)?;
    for (component, level) in changes {
        sink.set_verbosity(component, level);
    }
    Ok(None)
}

fn collect(tree: &RawDoc, prefix: &str, out: &mut Vec<(Component, Option<u8>)>) -> Result<()> {
    for e in tree {
        let (name, v) = (e.name(), e.value());
        if name == "verbosity" {
            let path = if prefix.is_empty() { "default" } else { prefix };
            out.push((component(path)?, level(path, &v)?));
            continue;
        }
        let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        match v {
            Value::Document(d) => collect(d, &path, out)?,
            v => out.push((component(&path)?, level(&path, &v)?)),
        }
    }
    Ok(())
}

fn component(path: &str) -> Result<Component> {
    Component::ALL
        .iter()
        .find(|c| c.path() == path)
        .copied()
        .ok_or_else(|| Error::bad_value(format!("Invalid component name {path}")))
}

/// Below zero inherits, above five is five.
fn level(path: &str, v: &Value<'_>) -> Result<Option<u8>> {
    match safe_i64(v) {
        Some(n) => Ok((n >= 0).then(|| n.min(HIGHEST_LEVEL) as u8)),
        None => {
            let (path, of) = if path == "default" { ("default", "") } else { (path, "default.") };
            Err(Error::bad_value(format!("Invalid type {}for component {of}{path}", v.type_name())))
        }
    }
}
