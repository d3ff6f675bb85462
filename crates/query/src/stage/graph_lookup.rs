//! `$graphLookup`: follows references through another collection, breadth first.
//!
//! Each round asks for all documents whose `connectToField` is in the frontier; those not met before join the result, and
//! their `connectFromField` values are the next frontier.

use super::foreign::{Foreign, Sub};
use super::local_values::visit_path;
use super::lookup_spec::parse_from;
use super::needs::Needs;
use super::parsed::{Compiled, Origin, Parsed};
use super::paths::same_root;
use super::pipeline::Pipeline;
use super::row::Row;
use super::running::{Running, Start};
use super::step::Step;
use super::unwind::write_with;
use super::upstream::Upstream;
use crate::collation::Collation;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, FieldPath, ParseCtx, Val};
use crate::matcher::{Matcher, Place, exact_i64, truncated_i64};
use crate::number::Number;
use pando_base::limits::GRAPH_LOOKUP_BYTES_MAX;
use pando_base::{Error, ErrorCode, Result, patience};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, Elem, ElementType, RawDoc, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Documents with those that they lead to.
#[derive(Clone, PartialEq)]
pub(crate) struct GraphLookup {
    pub(super) from: String,
    as_path: FieldPath,
    start_with: Compiled<Expr>,
    connect_from: FieldPath,
    connect_to: FieldPath,
    max_depth: Option<i64>,
    depth_field: Option<FieldPath>,
    restrict: Option<DocBuf>,
}

struct Searching {
    spec: GraphLookup,
    ctx: QueryCtx,
    foreign: Option<Foreign>,
    search: Option<Search>,
}

/// The walk for one input document.
struct Search {
    row: Row,
    frontier: Vec<Val<'static>>,
    /// Keys of all values that ever were in the frontier.
    asked: BTreeSet<Box<[u8]>>,
    /// Keys of the `_id`s met.
    met: BTreeSet<Box<[u8]>>,
    found: Vec<DocBuf>,
    bytes: usize,
    depth: i64,
    sub: Option<Box<Sub>>,
}

fn max_depth(v: Value<'_>) -> Result<i64> {
    if !v.is_number() {
        return Err(Error::location(
            40100,
            format!("maxDepth must be numeric, found type: {}", v.type_name()),
        ));
    }
    // What is out of range counts as the last number that is not.
    let given = Number::of(v).map_or(0.0, Number::to_f64);
    let whole = truncated_i64(v).unwrap_or(given as i64);
    if whole < 0 {
        let text = format!("maxDepth requires a nonnegative argument, found: {whole}");
        return Err(Error::location(40101, text));
    }
    if exact_i64(v).is_none() && given != whole as f64 {
        let text = format!("maxDepth could not be represented as a long long: {whole}");
        return Err(Error::location(40102, text));
    }
    Ok(whole)
}

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<GraphLookup> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::failed_to_parse(format!(
            "the $graphLookup stage specification must be an object, but found {}",
            e.ty.name()
        )));
    };
    let (mut from, mut as_path, mut start_with, mut connect_from, mut connect_to) =
        (None, None, None, None, None);
    let (mut depth, mut depth_field, mut restrict) = (None, None, None);
    if spec.elem("from").is_none() {
        return Err(Error::failed_to_parse(format!(
            "missing 'from' option to $graphLookup stage specification: {spec}"
        )));
    }
    for f in spec {
        match (f.name(), f.value()) {
            ("startWith", v) => start_with = Some(p.parse(v)?),
            ("maxDepth", v) => depth = Some(max_depth(v)?),
            ("restrictSearchWithMatch", Value::Document(filter)) => {
                Matcher::parse_in(Place::Document, filter, p.ctx).map_err(|e| {
                    e.context("Failed to parse 'restrictSearchWithMatch' option to $graphLookup")
                })?;
                restrict = Some(filter.to_buf());
            }
            ("restrictSearchWithMatch", v) => {
                let text = format!("restrictSearchWithMatch must be an object, found {}", v.type_name());
                return Err(Error::location(40185, text));
            }
            ("from", v) => from = Some(check_from(parse_from("$graphLookup", v)?, p)?),
            (name @ ("as" | "connectFromField" | "connectToField" | "depthField"), v) => {
                let path = path_of(name, v)?;
                match name {
                    "as" => as_path = path,
                    "connectFromField" => connect_from = path,
                    "connectToField" => connect_to = path,
                    _ => depth_field = path.map(FieldPath::parse).transpose()?,
                }
            }
            (other, _) => {
                return Err(Error::location(40104, format!("Unknown argument to $graphLookup: {other}")));
            }
        }
    }
    let (Some(from), Some(as_path), Some(start_with), Some(connect_from), Some(connect_to)) =
        (from, as_path, start_with, connect_from, connect_to)
    else {
        return Err(Error::location(
            40105,
            "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.",
        ));
    };
    // The other paths are read when all else is known to be there.
    Ok(GraphLookup {
        from,
        as_path: FieldPath::parse(as_path)?,
        start_with: Compiled(start_with),
        connect_from: FieldPath::parse(connect_from)?,
        connect_to: FieldPath::parse(connect_to)?,
        max_depth: depth,
        depth_field,
        restrict,
    })
}

/// A path among the options; an empty one counts as none.
fn path_of<'v>(name: &str, v: Value<'v>) -> Result<Option<&'v str>> {
    match v {
        Value::String("") if name != "depthField" => Ok(None),
        Value::String(path) => Ok(Some(path)),
        Value::Document(_) => {
            Err(Error::location(13111, format!("wrong type for field ({name}) object != string")))
        }
        v => {
            let text = format!("expected string as argument for {name}, found: {}", v.type_name());
            Err(Error::location(40103, text))
        }
    }
}

fn check_from(name: &str, p: &ParseCtx<'_>) -> Result<String> {
    if name.is_empty() {
        let text = format!("invalid $graphLookup namespace: {}.", p.ctx.vars.db);
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    Ok(name.to_owned())
}

fn key(v: Value<'_>, ctx: &QueryCtx) -> Box<[u8]> {
    let mut b = KeyBuilder::default();
    b.append_with(v, Collation::order(&ctx.collation));
    b.finish().into()
}

/// A value that was asked for, beside its bytes.
const ASKED_OVERHEAD: usize = 96;
/// What remembering one takes.
const ASK_STEPS: usize = 8;

impl Search {
    fn grow(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes > GRAPH_LOOKUP_BYTES_MAX {
            return Err(Error::location(40099, "$graphLookup reached maximum memory consumption"));
        }
        Ok(())
    }
    fn ask(&mut self, v: Value<'_>, ctx: &QueryCtx) -> Result<()> {
        let key = key(v, ctx);
        let size = key.len() * 2 + ASKED_OVERHEAD;
        patience::spend(ASK_STEPS)?;
        if self.asked.insert(key) {
            self.frontier.push(Val::Ref(v).into_owned());
            self.grow(size)?;
        }
        Ok(())
    }
    fn meet(&mut self, row: &Row, spec: &GraphLookup, ctx: &QueryCtx, ns: &str) -> Result<()> {
        let doc = row.doc();
        let id = doc.get("_id").ok_or_else(|| {
            Error::location(
                40271,
                format!(
                    "Documents in the '{ns}' namespace must contain an _id for de-duplication in $graphLookup"
                ),
            )
        })?;
        if !self.met.insert(key(id, ctx)) {
            return Ok(());
        }
        self.grow(row.bytes().len())?;
        let found = match &spec.depth_field {
            None => doc.to_buf(),
            Some(path) => {
                let mut b = DocBuilder::with_capacity(doc.byte_len() + 32);
                let depth = self.depth.to_le_bytes();
                write_with(doc, path.parts(), Some((ElementType::Int64, &depth)), &mut b);
                b.finish()
            }
        };
        // The depth may stand where the next values would have been.
        let mut result = Ok(());
        visit_path(&found, &spec.connect_from, &mut |v| {
            if result.is_ok() {
                result = self.ask(v, ctx);
            }
        });
        result?;
        self.found.push(found);
        Ok(())
    }
}

impl GraphLookup {
    /// What the frontier asks for. Null does not stand for a missing or undefined field here; a regular expression also stands
    /// for what it matches.
    fn filter(&self, frontier: &[Val<'static>]) -> DocBuf {
        let to = self.connect_to.dotted();
        let (nulls, values): (Vec<_>, Vec<_>) =
            frontier.iter().partition(|v| matches!(v.value(), Some(Value::Null)));
        let mut b = DocBuilder::new();
        b.array("$and", |all| {
            if let Some(restrict) = &self.restrict {
                all.raw_doc(restrict);
            }
            let among = |d: &mut DocBuilder| {
                d.doc(&to, |d| {
                    d.array("$in", |a| values.iter().for_each(|v| v.push_to(a)));
                });
            };
            // A field that some elements of an array have stands for null in the others.
            let null = |d: &mut DocBuilder| {
                d.doc(&to, |d| {
                    d.array("$in", |a| {
                        a.value(Value::Null);
                    });
                    d.bool("$exists", true);
                    d.doc("$not", |d| {
                        d.str("$type", "undefined");
                    });
                });
            };
            match (nulls.is_empty(), values.is_empty()) {
                (true, _) => all.doc(among),
                (false, true) => all.doc(null),
                (false, false) => all.doc(|d| {
                    d.array("$or", |any| {
                        any.doc(among).doc(null);
                    });
                }),
            };
        });
        b.finish()
    }
}

impl Searching {
    fn begin(&self, row: Row, ctx: &QueryCtx) -> Result<Search> {
        let start = self.spec.start_with.eval_doc(row.doc(), ctx)?.into_owned();
        let mut search = Search {
            row,
            frontier: Vec::new(),
            asked: BTreeSet::new(),
            met: BTreeSet::new(),
            found: Vec::new(),
            bytes: 0,
            depth: 0,
            sub: None,
        };
        match (start.as_array(), start.value()) {
            (Some(list), _) => list.iter().try_for_each(|e| search.ask(e.value(), ctx))?,
            (None, Some(v)) => search.ask(v, ctx)?,
            (None, None) => {}
        }
        Ok(search)
    }
    /// There is nobody to ask about any more.
    fn has_ended(&self, search: &Search) -> bool {
        search.frontier.is_empty() || self.spec.max_depth.is_some_and(|max| search.depth > max)
    }
    /// A run for the frontier; `None` when the collection cannot be opened yet.
    fn round(&self, foreign: &mut Foreign, search: &Search) -> Result<Option<Sub>> {
        let filter = self.spec.filter(&search.frontier);
        if foreign.target.view.is_none() {
            return foreign.run_filter(Arc::new(Matcher::parse(&filter, &self.ctx)?), &self.ctx);
        }
        let mut stages = ArrayBuilder::new();
        stages.doc(|d| {
            d.raw_doc("$match", &filter);
        });
        let stages = foreign.stages([&*stages.finish()]);
        foreign.run(Pipeline::parse(&stages, &self.ctx)?)
    }
    fn output(&self, search: Search) -> Row {
        let mut array = ArrayBuilder::new();
        for d in &search.found {
            array.raw_doc(d);
        }
        let array = array.finish();
        let doc: &RawDoc = search.row.doc();
        let mut b = DocBuilder::with_capacity(doc.byte_len() + array.byte_len() + 32);
        write_with(doc, self.spec.as_path.parts(), Some((ElementType::Array, array.as_bytes())), &mut b);
        search.row.becomes(b.finish().into())
    }
    fn pull(
        &self,
        foreign: &mut Foreign,
        current: &mut Option<Search>,
        up: &mut Upstream<'_>,
    ) -> Result<Step> {
        loop {
            let Some(search) = current else {
                match up.next()? {
                    Step::Row(row) => *current = Some(self.begin(row, up.ctx())?),
                    step => return Ok(step),
                }
                continue;
            };
            let Some(sub) = &mut search.sub else {
                if self.has_ended(search) {
                    return Ok(current.take().map_or(Step::Eof, |s| Step::Row(self.output(s))));
                }
                let Some(sub) = self.round(foreign, search)? else { return Ok(Step::NeedYield) };
                search.frontier.clear();
                search.sub = Some(Box::new(sub));
                continue;
            };
            match sub.next(foreign)? {
                Step::Row(row) => search.meet(&row, &self.spec, &self.ctx, &foreign.target.ns)?,
                Step::NeedYield => return Ok(Step::NeedYield),
                Step::Eof => {
                    search.sub = None;
                    search.depth += 1;
                }
            }
        }
    }
}

impl Parsed for GraphLookup {
    fn start(self, run: &mut Start<'_>) -> Result<Box<dyn Running>> {
        let foreign = Some(Foreign::new(run, &self.from)?);
        Ok(Box::new(Searching { spec: self, ctx: run.ctx.clone(), foreign, search: None }))
    }
    fn needs(&self, needs: &mut Needs) {
        if !self.start_with.dependencies(needs.paths()) {
            needs.whole();
        }
    }
    fn origin(&self, path: &str) -> Option<Origin> {
        (!same_root(&self.as_path.dotted(), path)).then(|| Origin::same(path))
    }
}

impl Running for Searching {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        let mut foreign = self.foreign.take().ok_or_else(|| Error::internal("not started"))?;
        let mut search = self.search.take();
        let step = self.pull(&mut foreign, &mut search, up);
        self.search = search;
        self.foreign = Some(foreign);
        step
    }
    fn save(&mut self) {
        if let Some(sub) = self.search.as_mut().and_then(|s| s.sub.as_mut()) {
            sub.save();
        }
        if let Some(foreign) = &mut self.foreign {
            foreign.save();
        }
    }
}
