//! `$bucket`: a `$group` by a `$switch` over the boundaries, then a `$sort`.

use crate::expr::{ParseCtx, Val};
use pando_base::{Error, Result};
use pando_bson::compare::canonical_type;
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};

pub(super) fn rewritten(e: Elem<'_>, p: &ParseCtx<'_>) -> Result<DocBuf> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::location(
            40201,
            format!("Argument to $bucket stage must be an object, but found type: {}.", e.ty.name()),
        ));
    };
    let (mut group_by, mut boundaries, mut default, mut output) = (None, None, None, None);
    for f in spec {
        match (f.name(), f.value()) {
            ("groupBy", v) if is_path_or_expression(v) => group_by = Some(v),
            ("groupBy", v) => {
                return Err(Error::location(
                    40202,
                    format!(
                        "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {v:#}."
                    ),
                ));
            }
            ("boundaries", Value::Array(a)) => boundaries = Some(constants(a, p)?),
            ("boundaries", v) => {
                return Err(Error::location(
                    40200,
                    format!(
                        "The $bucket 'boundaries' field must be an array, but found type: {}.",
                        v.type_name()
                    ),
                ));
            }
            ("default", v) => match constant(v, p)? {
                Some(v) => default = Some(v),
                None => {
                    let text = "The $bucket 'default' field must be a constant expression, but found:";
                    return Err(Error::location(40195, format!("{text} {v:#}.")));
                }
            },
            ("output", Value::Document(d)) => output = Some(d),
            ("output", v) => {
                return Err(Error::location(
                    40196,
                    format!(
                        "The $bucket 'output' field must be an object, but found type: {}.",
                        v.type_name()
                    ),
                ));
            }
            (other, _) => {
                return Err(Error::location(40197, format!("Unrecognized option to $bucket: {other}.")));
            }
        }
    }
    let (Some(group_by), Some(boundaries)) = (group_by, boundaries) else {
        return Err(Error::location(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified."));
    };
    let bounds: Vec<Value<'_>> = boundaries.iter().map(value_of).collect();
    // One that is missing is none.
    let default = default.as_ref().and_then(Val::value);
    if let Some(default) = default {
        check_default(default, &bounds, p)?;
    }
    Ok(as_group(group_by, &bounds, default, output))
}

/// The value of an expression that is the same for every document.
fn constant(v: Value<'_>, p: &ParseCtx<'_>) -> Result<Option<Val<'static>>> {
    let mut e = ParseCtx::new(p.ctx).parse(v)?;
    e.optimize(p.ctx)?;
    Ok(e.as_const().cloned())
}

fn value_of<'v>(v: &'v Val<'static>) -> Value<'v> {
    v.value().unwrap_or(Value::Undefined)
}

/// Boundaries are constants.
fn constants(boundaries: &RawDoc, p: &ParseCtx<'_>) -> Result<Vec<Val<'static>>> {
    let mut values = Vec::new();
    for e in boundaries {
        let Some(v) = constant(e.value(), p)? else {
            let text = "The $bucket 'boundaries' field must be an array of constant values, but found value:";
            return Err(Error::location(40191, format!("{text} {:#}.", e.value())));
        };
        values.push(v);
    }
    check_bounds(&values.iter().map(value_of).collect::<Vec<_>>(), p)?;
    Ok(values)
}

/// They are two at least, of one kind and in ascending order.
fn check_bounds(bounds: &[Value<'_>], p: &ParseCtx<'_>) -> Result<()> {
    if bounds.len() < 2 {
        return Err(Error::location(
            40192,
            format!(
                "The $bucket 'boundaries' field must have at least 2 values, but found {} value(s).",
                bounds.len()
            ),
        ));
    }
    for pair in bounds.windows(2) {
        if class(&pair[0]) != class(&pair[1]) {
            return Err(Error::location(
                40193,
                format!(
                    "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types \
                     {} and {}.",
                    pair[0].type_name(),
                    pair[1].type_name()
                ),
            ));
        }
        if !p.ctx.compare(pair[0], pair[1]).is_lt() {
            return Err(Error::location(
                40194,
                format!(
                    "The 'boundaries' option to $bucket must be sorted, but elements {} and {} are not in ascending order \
                     ({} is not less than {}).",
                    0, 1, pair[0], pair[1]
                ),
            ));
        }
    }
    Ok(())
}

fn class(v: &Value<'_>) -> u8 {
    canonical_type(v.element_type())
}

/// The default is not what a value within the boundaries may be.
fn check_default(default: Value<'_>, bounds: &[Value<'_>], p: &ParseCtx<'_>) -> Result<()> {
    if let (Some(low), Some(high)) = (bounds.first(), bounds.last())
        && class(&default) == class(low)
        && !p.ctx.compare(default, *low).is_lt()
        && p.ctx.compare(default, *high).is_lt()
    {
        return Err(Error::location(
            40199,
            "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest \
             boundary.",
        ));
    }
    Ok(())
}

fn as_group(
    group_by: Value<'_>,
    bounds: &[Value<'_>],
    default: Option<Value<'_>>,
    output: Option<&RawDoc>,
) -> DocBuf {
    let literal = |b: &mut DocBuilder, name: &str, v: Value<'_>| {
        b.doc(name, |l| {
            l.value("$literal", v);
        });
    };
    let mut spec = DocBuilder::new();
    spec.doc("$group", |g| {
        // What is computed of a bucket is read before what decides which bucket it is.
        match output {
            Some(fields) => {
                g.elems_of(fields);
            }
            None => {
                g.doc("count", |c| {
                    c.i32("$sum", 1);
                });
            }
        }
        g.doc("_id", |id| {
            id.doc("$switch", |s| {
                s.array("branches", |branches| {
                    for pair in bounds.windows(2) {
                        branches.doc(|b| {
                            b.doc("case", |c| {
                                c.array("$and", |and| {
                                    for (op, bound) in [("$gte", pair[0]), ("$lt", pair[1])] {
                                        and.doc(|test| {
                                            test.array(op, |args| {
                                                args.value(group_by);
                                                args.doc(|l| {
                                                    l.value("$literal", bound);
                                                });
                                            });
                                        });
                                    }
                                });
                            });
                            literal(b, "then", pair[0]);
                        });
                    }
                });
                if let Some(d) = default {
                    literal(s, "default", d);
                }
            });
        });
    });
    spec.doc("$sort", |s| {
        s.i32("_id", 1);
    });
    spec.finish()
}

/// A field path, or an object that begins with an operator.
pub(super) fn is_path_or_expression(v: Value<'_>) -> bool {
    match v {
        Value::Document(d) => d.first().is_some_and(|e| e.name_bytes().starts_with(b"$")),
        v => v.as_str().is_some_and(|s| s.starts_with('$')),
    }
}
