//! Stages as `explain` spells them: options in one order, constants folded, other names of a stage resolved.

use super::conditions;
use super::pipeline::Pipeline;
use crate::ctx::QueryCtx;
use crate::expr::spelled::put;
use crate::names::NamedList;
use crate::projection::is_operation;
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};

/// A stage as written, spelled out.
pub(super) fn spelled(stage: &RawDoc, ctx: &QueryCtx) -> DocBuf {
    let Some(e) = stage.first() else { return stage.to_buf() };
    let mut b = DocBuilder::new();
    match (e.name(), e.value()) {
        ("$match", Value::Document(filter)) => {
            return conditions::spelled(filter, ctx);
        }
        ("$group", Value::Document(spec)) => {
            b.doc("$group", |b| group(b, spec, ctx));
        }
        ("$project", Value::Document(spec)) => {
            b.raw_doc("$project", &projection(spec, ctx));
        }
        ("$unset", v) => {
            b.raw_doc("$project", &projection(&unset(v), ctx));
        }
        ("$addFields" | "$set", Value::Document(spec)) => {
            let mut tree = Tree::default();
            spec.iter().for_each(|f| tree.insert(f, false));
            b.doc(e.name_bytes(), |b| tree.write(b, ctx));
        }
        ("$replaceWith", v) => {
            b.doc("$replaceRoot", |b| put(b, "newRoot", v, ctx));
        }
        ("$replaceRoot", Value::Document(spec)) => {
            b.doc("$replaceRoot", |b| spec.iter().for_each(|f| put(b, f.name_bytes(), f.value(), ctx)));
        }
        ("$redact", v) => put(&mut b, "$redact", v, ctx),
        ("$unwind", v) => unwind(&mut b, v),
        ("$sort", Value::Document(spec)) if spec.elem("sortKey").is_none() => {
            b.doc("$sort", |b| {
                b.raw_doc("sortKey", spec);
            });
        }
        ("$lookup" | "$graphLookup", Value::Document(spec)) => {
            b.doc(e.name_bytes(), |b| join(b, spec, ctx));
        }
        ("$bucketAuto", Value::Document(spec)) => {
            b.doc("$bucketAuto", |b| bucket_auto(b, spec, ctx));
        }
        ("$setWindowFields" | "$_internalSetWindowFields", Value::Document(spec)) => {
            b.doc("$_internalSetWindowFields", |b| window(b, spec, ctx));
        }
        ("$densify" | "$_internalDensify", Value::Document(spec)) => {
            b.doc("$_internalDensify", |b| densify(b, spec));
        }
        ("$facet", Value::Document(spec)) => {
            b.doc("$facet", |b| facet(b, spec, ctx));
        }
        _ => {
            b.elem(e);
        }
    }
    b.finish()
}

/// A `$limit` behind a `$sort` is shown as part of it.
pub(super) fn join_limits(stages: &mut [Option<DocBuf>]) {
    let number = |stage: &Option<DocBuf>, name: &str| stage.as_ref()?.get(name)?.as_i64();
    for at in 1..stages.len() {
        let Some(mut limit) = number(&stages[at], "$limit") else { continue };
        let mut sort = at - 1;
        while let Some(skip) = number(&stages[sort], "$skip").filter(|_| sort > 0) {
            limit = limit.saturating_add(skip);
            sort -= 1;
        }
        let Some(spec) = stages[sort].as_ref().and_then(|d| d.get("$sort")?.as_doc()) else { continue };
        let mut b = DocBuilder::new();
        b.doc("$sort", |b| {
            b.elems_of(spec).i64("limit", limit);
        });
        stages[sort] = Some(b.finish());
        stages[at] = None;
    }
}

fn group(b: &mut DocBuilder, spec: &RawDoc, ctx: &QueryCtx) {
    for e in spec {
        match e.value() {
            Value::Document(accumulator) if e.name() != "_id" => {
                b.doc(e.name_bytes(), |b| accumulated(b, accumulator, ctx));
            }
            // What a router says of the stage, no value of a field.
            Value::Boolean(on) if e.name().starts_with('$') => _ = b.bool(e.name(), on),
            v => put(b, e.name_bytes(), v, ctx),
        }
    }
}

fn accumulated(b: &mut DocBuilder, accumulator: &RawDoc, ctx: &QueryCtx) {
    let Some(e) = accumulator.first() else { return };
    match (e.name(), e.value()) {
        ("$count", _) => {
            b.doc("$sum", |b| {
                b.i32("$const", 1);
            });
        }
        ("$accumulator", _) => {
            b.elem(e);
        }
        (name @ ("$top" | "$topN" | "$bottom" | "$bottomN"), Value::Document(parts)) => {
            b.doc(name, |b| {
                for part in ["n", "output"] {
                    parts.get(part).into_iter().for_each(|v| put(b, part, v, ctx));
                }
                parts.elem("sortBy").into_iter().for_each(|e| {
                    b.elem(e);
                });
            });
        }
        (name @ ("$firstN" | "$lastN" | "$minN" | "$maxN"), Value::Document(parts)) => {
            b.doc(name, |b| {
                for part in ["n", "input"] {
                    parts.get(part).into_iter().for_each(|v| put(b, part, v, ctx));
                }
            });
        }
        (name, v) => put(b, name, v, ctx),
    }
}

fn no_operators(d: &RawDoc) -> bool {
    d.iter().all(|f| !f.name_bytes().starts_with(b"$"))
}

/// The fields of a projection, dotted paths as nested ones.
#[derive(Default)]
struct Tree(NamedList<Branch>);

enum Branch {
    Is(bool),
    /// `{"": <expression>}`
    Computed(DocBuf),
    Below(Tree),
}

impl Tree {
    /// `flags`: numbers and booleans say whether a field stays.
    fn insert(&mut self, e: Elem<'_>, flags: bool) {
        let branch = match e.value() {
            v if flags && (v.is_number() || matches!(v, Value::Boolean(_))) => Branch::Is(v.is_truthy()),
            Value::Document(d) if !d.is_empty() && if flags { !is_operation(d) } else { no_operators(d) } => {
                let mut below = Tree::default();
                d.iter().for_each(|f| below.insert(f, flags));
                Branch::Below(below)
            }
            v => {
                let mut b = DocBuilder::new();
                b.value("", v);
                Branch::Computed(b.finish())
            }
        };
        self.put(e.name(), branch);
    }
    fn put(&mut self, path: &str, branch: Branch) {
        let (head, rest) = path.split_once('.').map_or((path, None), |(h, r)| (h, Some(r)));
        let Some(rest) = rest else {
            return self.0.push(head, branch);
        };
        if let Some(at) = self.0.find(head.as_bytes())
            && let Branch::Below(below) = &mut self.0[at].1
        {
            return below.put(rest, branch);
        }
        let mut below = Tree::default();
        below.put(rest, branch);
        self.0.push(head, Branch::Below(below));
    }
    /// Fields that stay or go first, then the others.
    fn write(&self, b: &mut DocBuilder, ctx: &QueryCtx) {
        for computed in [false, true] {
            for (name, branch) in self.0.iter() {
                match branch {
                    Branch::Is(stays) if !computed => {
                        b.bool(name, *stays);
                    }
                    Branch::Below(below) if computed => {
                        b.doc(name, |b| below.write(b, ctx));
                    }
                    Branch::Computed(v) if computed => {
                        v.first().into_iter().for_each(|e| put(b, name, e.value(), ctx));
                    }
                    _ => {}
                }
            }
        }
    }
    fn flag(&self) -> Option<bool> {
        self.0.iter().find_map(|(name, branch)| match branch {
            Branch::Is(stays) if &**name != "_id" => Some(*stays),
            Branch::Below(below) => below.flag(),
            _ => None,
        })
    }
}

/// `_id` is named, whether it was or not: first where it stays beside others that do, else last.
pub(crate) fn projection(spec: &RawDoc, ctx: &QueryCtx) -> DocBuf {
    let mut tree = Tree::default();
    spec.iter().for_each(|e| tree.insert(e, true));
    let mut b = DocBuilder::new();
    let stays = match tree.0.iter().position(|(name, b)| &**name == "_id" && matches!(b, Branch::Is(_))) {
        Some(at) => matches!(tree.0.remove(at), Branch::Is(true)),
        None if tree.0.find(b"_id").is_some() => {
            tree.write(&mut b, ctx);
            return b.finish();
        }
        None => true,
    };
    let excludes = tree.flag().map_or(tree.0.is_empty() && !stays, |stays| !stays);
    if stays && !excludes {
        b.bool("_id", true);
    }
    tree.write(&mut b, ctx);
    if !stays || excludes {
        b.bool("_id", stays);
    }
    b.finish()
}

fn unset(v: Value<'_>) -> DocBuf {
    let mut b = DocBuilder::new();
    match v {
        Value::Array(paths) => paths.iter().filter_map(|e| e.value().as_str()).for_each(|p| {
            b.bool(p, false);
        }),
        Value::String(path) => {
            b.bool(path, false);
        }
        _ => {}
    }
    b.finish()
}

fn unwind(b: &mut DocBuilder, v: Value<'_>) {
    b.doc("$unwind", |b| match v {
        Value::Document(spec) => {
            spec.elem("path").into_iter().for_each(|e| {
                b.elem(e);
            });
            if matches!(spec.get("preserveNullAndEmptyArrays"), Some(Value::Boolean(true))) {
                b.bool("preserveNullAndEmptyArrays", true);
            }
            spec.elem("includeArrayIndex").into_iter().for_each(|e| {
                b.elem(e);
            });
        }
        path => {
            b.value("path", path);
        }
    });
}

fn join(b: &mut DocBuilder, spec: &RawDoc, ctx: &QueryCtx) {
    const ORDER: [&str; 13] = [
        "from",
        "as",
        "localField",
        "foreignField",
        "connectToField",
        "connectFromField",
        "startWith",
        "depthField",
        "maxDepth",
        "restrictSearchWithMatch",
        "let",
        "pipeline",
        "unwinding",
    ];
    for e in ORDER.iter().filter_map(|name| spec.elem(name)) {
        match (e.name(), e.value()) {
            ("startWith", v) => put(b, "startWith", v, ctx),
            ("let", Value::Document(let_vars)) => {
                b.doc("let", |b| let_vars.iter().for_each(|e| put(b, e.name_bytes(), e.value(), ctx)));
            }
            _ => {
                b.elem(e);
            }
        }
    }
}

fn bucket_auto(b: &mut DocBuilder, spec: &RawDoc, ctx: &QueryCtx) {
    spec.get("groupBy").into_iter().for_each(|v| put(b, "groupBy", v, ctx));
    for e in ["buckets", "granularity"].iter().filter_map(|name| spec.elem(name)) {
        b.elem(e);
    }
    b.doc("output", |b| match spec.get("output") {
        Some(Value::Document(output)) => group(b, output, ctx),
        _ => {
            b.doc("count", |b| {
                b.doc("$sum", |b| {
                    b.i32("$const", 1);
                });
            });
        }
    });
}

/// A function without a window sees its whole partition, except those that know no windows.
fn window(b: &mut DocBuilder, spec: &RawDoc, ctx: &QueryCtx) {
    const WITHOUT: [&str; 7] =
        ["$rank", "$denseRank", "$documentNumber", "$shift", "$linearFill", "$locf", "$expMovingAvg"];
    spec.get("partitionBy").into_iter().for_each(|v| put(b, "partitionBy", v, ctx));
    spec.elem("sortBy").into_iter().for_each(|e| {
        b.elem(e);
    });
    let Some(Value::Document(output)) = spec.get("output") else { return };
    b.doc("output", |b| {
        for (name, function) in output.iter().filter_map(|e| Some((e.name(), e.value().as_doc()?))) {
            b.doc(name, |b| {
                for e in function {
                    match e.value() {
                        v @ Value::String(_) if e.name() != "window" => put(b, e.name_bytes(), v, ctx),
                        _ => {
                            b.elem(e);
                        }
                    }
                }
                let bare = function.elem("window").is_none()
                    && !function.iter().any(|e| WITHOUT.contains(&e.name()));
                if bare {
                    b.doc("window", |b| {
                        b.array("documents", |a| {
                            a.str("unbounded").str("unbounded");
                        });
                    });
                }
            });
        }
    });
}

fn densify(b: &mut DocBuilder, spec: &RawDoc) {
    let mut elem = |name: &str| {
        spec.elem(name).into_iter().for_each(|e| {
            b.elem(e);
        });
    };
    elem("field");
    match spec.get("partitionByFields") {
        Some(v) => b.value("partitionByFields", v),
        None => b.array("partitionByFields", |_| {}),
    };
    spec.elem("range").into_iter().for_each(|e| {
        b.elem(e);
    });
}

fn facet(b: &mut DocBuilder, spec: &RawDoc, ctx: &QueryCtx) {
    for e in spec {
        let Value::Array(stages) = e.value() else { continue };
        b.array(e.name_bytes(), |a| {
            a.doc(|b| {
                b.doc("$internalFacetTeeConsumer", |_| {});
            });
            match Pipeline::parse(stages, ctx) {
                Ok(p) => p.explained().iter().flatten().for_each(|stage| {
                    a.raw_doc(stage);
                }),
                Err(_) => stages.iter().for_each(|e| {
                    a.value(e.value());
                }),
            }
        });
    }
}
