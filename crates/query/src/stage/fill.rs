//! `$fill`: a `$setWindowFields` for what is filled by a method, then an `$addFields` for values.

use super::element::null_array;
use crate::expr::ParseCtx;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};

fn wrong_type(field: &str, v: Value<'_>, wanted: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '$fill.{field}' is the wrong type '{}', expected type '{wanted}'",
        v.type_name()
    ))
}

#[derive(Default)]
struct Spec<'a> {
    partition_by: Option<Value<'a>>,
    fields: Option<&'a RawDoc>,
    sort: Option<&'a RawDoc>,
    output: Option<&'a RawDoc>,
}

impl<'a> Spec<'a> {
    fn parse(spec: &'a RawDoc) -> Result<Spec<'a>> {
        let mut s = Spec::default();
        for f in spec {
            match (f.name(), f.value()) {
                ("sortBy" | "output" | "partitionBy", Value::Null | Value::Undefined) => {}
                ("partitionByFields", Value::Null | Value::Undefined) => {
                    return Err(null_array("partitionByFields"));
                }
                ("partitionBy", v @ Value::Document(_)) => s.partition_by = Some(v),
                ("partitionBy", Value::String(path)) if path.starts_with('$') => {
                    s.partition_by = Some(f.value());
                }
                ("partitionBy", v) => return Err(wrong_type("partitionBy", v, "object")),
                ("partitionByFields", Value::Array(a)) => {
                    for e in a {
                        if !matches!(e.value(), Value::String(_) | Value::Null | Value::Undefined) {
                            let field = format!("partitionByFields.{}", e.name());
                            return Err(wrong_type(&field, e.value(), "string"));
                        }
                    }
                    s.fields = Some(a);
                }
                ("partitionByFields", v) => return Err(wrong_type("partitionByFields", v, "array")),
                ("sortBy", Value::Document(d)) => s.sort = Some(d),
                ("sortBy", v) => return Err(wrong_type("sortBy", v, "object")),
                ("output", Value::Document(d)) => s.output = Some(d),
                ("output", v) => return Err(wrong_type("output", v, "object")),
                (other, _) => return Err(unknown(other)),
            }
        }
        Ok(s)
    }
    /// The fields of a partition. Nulls among them count as not given.
    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.fields.into_iter().flatten().filter_map(|e| e.value().as_str())
    }
    /// What is filled by a method as `$setWindowFields`, the rest as `$addFields`.
    fn as_stages(&self, output: &RawDoc) -> Result<DocBuf> {
        let (mut windows, mut values) = (DocBuilder::new(), DocBuilder::new());
        for f in output {
            let Value::Document(how) = f.value() else {
                return Err(Error::location(
                    6_050_200,
                    "Each fill output specification must be an object with exactly one field",
                ));
            };
            check_how(how)?;
            let path = format!("${}", f.name());
            if let Some(v) = how.get("value") {
                values.doc(f.name_bytes(), |d| {
                    d.array("$ifNull", |a| {
                        a.str(&path).value(v);
                    });
                });
            } else if let Some(Value::String(method)) = how.get("method") {
                let function = if method == "linear" { "$linearFill" } else { "$locf" };
                windows.doc(f.name_bytes(), |d| {
                    d.str(function, &path);
                });
            }
        }
        let (windows, values) = (windows.finish(), values.finish());
        if !windows.is_empty() && self.names().any(|name| name.contains('\0')) {
            return Err(Error::location(15998, "FieldPath field names may not be empty strings."));
        }
        let mut stages = DocBuilder::new();
        let window = |d: &mut DocBuilder| {
            if let Some(v) = self.partition_by {
                d.value("partitionBy", v);
            }
            let mut names = self.names().peekable();
            if names.peek().is_some() {
                d.doc("partitionBy", |d| {
                    for name in names {
                        d.str(name, &format!("${name}"));
                    }
                });
            }
            if let Some(sort) = self.sort {
                d.raw_doc("sortBy", sort);
            }
            d.raw_doc("output", &windows);
        };
        if !windows.is_empty() {
            stages.doc("$setWindowFields", |d| window(d));
        }
        if !values.is_empty() {
            stages.raw_doc("$addFields", &values);
        }
        Ok(stages.finish())
    }
}

fn unknown(name: &str) -> Error {
    Error::location(40415, format!("BSON field '$fill.{name}' is an unknown field."))
}

fn check_how(how: &RawDoc) -> Result<()> {
    for e in how {
        match (e.name(), e.value()) {
            ("value", _) | ("method", Value::String(_) | Value::Null | Value::Undefined) => {}
            ("method", v) => return Err(wrong_type("method", v, "string")),
            (other, _) => return Err(unknown(other)),
        }
    }
    let method = how.get("method").and_then(|v| v.as_str());
    if method.is_some() && how.elem("value").is_some() {
        return Err(Error::location(
            6_050_201,
            "Each fill output specification must have exactly one of 'method' or 'value' fields, not both",
        ));
    }
    if method.is_some_and(|m| !matches!(m, "linear" | "locf")) {
        return Err(Error::location(6_050_202, "Method must be either locf or linear"));
    }
    Ok(())
}

pub(super) fn rewritten(e: Elem<'_>, _: &ParseCtx<'_>) -> Result<DocBuf> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::failed_to_parse(format!(
            "The $fill stage specification must be an object, found {}",
            e.ty.name()
        )));
    };
    let spec = Spec::parse(spec)?;
    let output = spec
        .output
        .ok_or_else(|| Error::location(40414, "BSON field '$fill.output' is missing but a required field"))?;
    if output.is_empty() {
        return Err(Error::location(
            6_050_203,
            "The output field in '$fill' must contain an object with at least one element",
        ));
    }
    if spec.partition_by.is_some() && spec.fields.is_some() {
        return Err(Error::location(
            6_050_204,
            "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'",
        ));
    }
    spec.as_stages(output)
}
