//! Expressions as `explain` spells them: what is constant folded to `{$const: …}`, arguments as lists, short forms
//! written out.
//!
//! Compiled expressions do not remember how they were written, so this works on the written form; what an operator
//! is known from the table, and whether something is constant from compiling it.

use super::ops::convert::short_target;
use super::parse::{Def, ParseCtx};
use super::registry;
use super::tree::Expr;
use crate::ctx::QueryCtx;
use pando_bson::{ArrayBuilder, AsName, Bson, DocBuf, DocBuilder, RawDoc, Value};

/// `{"": <expression>}`, spelled out.
pub(crate) fn spelled(v: Value<'_>, ctx: &QueryCtx) -> DocBuf {
    let mut b = DocBuilder::new();
    put(&mut b, "", v, ctx);
    b.finish()
}

/// Appends an expression under a name.
pub(crate) fn put(b: &mut DocBuilder, name: impl AsName, v: Value<'_>, ctx: &QueryCtx) {
    if let Some(constant) = constant(v, ctx) {
        b.doc(name, |d| {
            d.bson("$const", &constant);
        });
        return;
    }
    match v {
        Value::String(path) => {
            b.str(name, &path.replacen("$$CURRENT.", "$", 1));
        }
        Value::Array(items) => {
            b.array(name, |a| list(a, items, ctx));
        }
        Value::Document(d) => {
            b.doc(name, |b| object(b, d, ctx));
        }
        other => {
            b.value(name, other);
        }
    }
}

fn push(a: &mut ArrayBuilder, v: Value<'_>, ctx: &QueryCtx) {
    if let Some(e) = spelled(v, ctx).first() {
        a.value(e.value());
    }
}

fn list(a: &mut ArrayBuilder, items: &RawDoc, ctx: &QueryCtx) {
    items.iter().for_each(|e| push(a, e.value(), ctx));
}

/// The value of what is the same for every document.
fn constant(v: Value<'_>, ctx: &QueryCtx) -> Option<Bson> {
    if matches!(v, Value::String("$$KEEP" | "$$PRUNE" | "$$DESCEND")) {
        return None;
    }
    let mut expr = ParseCtx::new(ctx).parse(v).ok()?;
    expr.optimize(ctx).ok()?;
    match &expr {
        Expr::Const(v) => v.value().map(Bson::from),
        _ => None,
    }
}

fn object(b: &mut DocBuilder, d: &RawDoc, ctx: &QueryCtx) {
    let Some(e) = d.first().filter(|e| e.name_bytes().starts_with(b"$")) else {
        return fields(b, d, ctx);
    };
    let (name, arg) = (e.name(), e.value());
    match (name, arg) {
        ("$meta" | "$function" | "$rand", _) => {
            b.elem(e);
        }
        ("$cond", Value::Document(parts)) => {
            b.array(name, |a| {
                for part in ["if", "then", "else"].iter().filter_map(|n| parts.get(n)) {
                    push(a, part, ctx);
                }
            });
        }
        ("$add" | "$multiply", Value::Array(items)) => commutative(b, name, items, ctx),
        ("$substr", _) => positional(b, "$substrBytes", arg, ctx),
        ("$map" | "$filter" | "$let" | "$switch", Value::Document(parts)) => {
            b.doc(name, |b| with_names(b, parts, ctx));
        }
        (
            "$cond" | "$ifNull" | "$and" | "$or" | "$setEquals" | "$setIsSubset" | "$substrBytes"
            | "$substrCP",
            _,
        ) => positional(b, name, arg, ctx),
        _ => by_table(b, name, arg, ctx),
    }
}

fn by_table(b: &mut DocBuilder, name: &str, arg: Value<'_>, ctx: &QueryCtx) {
    if let Some(to) = short_target(name) {
        b.doc("$convert", |b| {
            put(b, "input", only(arg), ctx);
            b.doc("to", |b| {
                b.str("$const", to);
            });
        });
        return;
    }
    match (registry::find(name), arg) {
        (Some((_, Def::Nary { .. })), _) => positional(b, name, arg, ctx),
        (_, Value::Document(parts)) if !parts.first().is_some_and(|e| e.name_bytes().starts_with(b"$")) => {
            b.doc(name, |b| fields(b, parts, ctx));
        }
        _ if is_date_part(name) => {
            b.doc(name, |b| put(b, "date", only(arg), ctx));
        }
        _ => put(b, name, arg, ctx),
    }
}

fn fields(b: &mut DocBuilder, d: &RawDoc, ctx: &QueryCtx) {
    d.iter().for_each(|e| put(b, e.name_bytes(), e.value(), ctx));
}

fn positional(b: &mut DocBuilder, name: &str, arg: Value<'_>, ctx: &QueryCtx) {
    b.array(name, |a| match arg {
        Value::Array(items) => list(a, items, ctx),
        one => push(a, one, ctx),
    });
}

/// The only argument, which may stand in a list.
fn only(arg: Value<'_>) -> Value<'_> {
    match arg {
        Value::Array(items) if items.count() == 1 => items.first().map_or(arg, |e| e.value()),
        other => other,
    }
}

/// Constants among the arguments become one, the last. Where they have no common value they stay as they are.
fn commutative(b: &mut DocBuilder, name: &str, items: &RawDoc, ctx: &QueryCtx) {
    let (constants, others): (Vec<_>, Vec<_>) =
        items.iter().partition(|e| constant(e.value(), ctx).is_some());
    let mut whole = DocBuilder::new();
    whole.array(name, |a| {
        constants.iter().for_each(|e| {
            a.value(e.value());
        });
    });
    let whole = whole.finish();
    let together = if constants.len() < 2 { None } else { constant(Value::Document(&whole), ctx) };
    b.array(name, |a| {
        let Some(together) = together else { return list(a, items, ctx) };
        others.iter().for_each(|e| push(a, e.value(), ctx));
        a.doc(|d| {
            d.bson("$const", &together);
        });
    });
}

/// Operators with variables or branches: names stay as they are.
fn with_names(b: &mut DocBuilder, parts: &RawDoc, ctx: &QueryCtx) {
    let names_element = parts.elem("as").is_none() && parts.elem("input").is_some();
    for e in parts {
        match (e.name(), e.value()) {
            ("as", _) => {
                b.elem(e);
            }
            ("vars", Value::Document(vars)) => {
                b.doc("vars", |b| fields(b, vars, ctx));
            }
            ("branches", Value::Array(branches)) => {
                b.array("branches", |a| {
                    for branch in branches.iter().filter_map(|e| e.value().as_doc()) {
                        a.doc(|b| fields(b, branch, ctx));
                    }
                });
            }
            (name, v) => put(b, name, v, ctx),
        }
        if e.name() == "input" && names_element {
            b.str("as", "this");
        }
    }
}

fn is_date_part(name: &str) -> bool {
    const PARTS: [&str; 13] = [
        "$year",
        "$month",
        "$week",
        "$dayOfYear",
        "$dayOfMonth",
        "$dayOfWeek",
        "$hour",
        "$minute",
        "$second",
        "$millisecond",
        "$isoWeek",
        "$isoWeekYear",
        "$isoDayOfWeek",
    ];
    PARTS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::extjson::parse;

    fn shown(expression: &str) -> String {
        let holder = parse(&format!("{{\"e\":{expression}}}")).unwrap().to_raw();
        spelled(holder.get("e").unwrap(), &QueryCtx::default()).to_string()
    }

    #[test]
    fn constants_become_one_unless_they_have_no_value_together() {
        for op in ["$add", "$multiply"] {
            let one = shown(&format!("{{\"{op}\":[3,\"$a\",4]}}"));
            assert!(one.contains("[ \"$a\", { $const: "), "{one}");
            let apart = shown(&format!("{{\"{op}\":[\"$a\",3,\"string\"]}}"));
            assert!(apart.contains("[ \"$a\", { $const: 3 }, { $const: \"string\" } ]"), "{apart}");
        }
    }
}
