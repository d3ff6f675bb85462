//! The specification of a `$lookup`.

use super::conditions;
use super::element::not_first;
use super::lookup::Joining;
use super::matching::Match;
use super::needs::Needs;
use super::parsed::{Compiled, Origin, Parsed};
use super::paths::same_root;
use super::pipeline::Pipeline;
use super::running::{Running, Start};
use super::sources::PipelineSource;
use super::sub_pipeline::{deeper, refuse_stages, stages_array, starts_with_documents};
use super::unwind::Unwind;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, FieldPath, ParseCtx, SEARCH_META, check_user_var_name};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, Elem, RawDoc, Value};
use std::sync::Arc;

/// Documents with those of another collection that belong to them.
#[derive(Clone, PartialEq)]
pub(crate) struct Lookup {
    pub(super) from: String,
    pub(super) as_path: FieldPath,
    /// `localField` and `foreignField`.
    pub(super) fields: Option<(FieldPath, FieldPath)>,
    pub(super) let_vars: Compiled<Vec<(String, Expr)>>,
    pub(super) pipeline: Option<DocBuf>,
    /// An `$unwind` right behind, which is done here as well, and how it was written.
    pub(super) unwind: Option<(Unwind, DocBuf)>,
    /// What joined documents have to match beside all else.
    pub(super) joined: Option<Match>,
}

impl Lookup {
    /// Takes in an `$unwind` right behind; false when it cannot.
    pub(super) fn absorb_unwind(&mut self, unwind: &Unwind, text: &RawDoc) -> bool {
        if self.unwind.is_some() || unwind.path != self.as_path {
            return false;
        }
        self.unwind = Some((unwind.clone(), text.to_buf()));
        true
    }
    /// The field that matches are in, when each gives a document and documents without one give none.
    pub(super) fn unwound_field(&self) -> Option<&str> {
        let plain = self.unwind.as_ref().is_some_and(|(u, _)| !u.preserve && u.index.is_none());
        match self.as_path.parts() {
            [name] if plain => Some(name),
            _ => None,
        }
    }
    pub(super) fn leaves_alone(&self, path: &str) -> bool {
        !same_root(&self.as_path.dotted(), path)
    }
    /// The stages that it has taken in, as they are written.
    pub(super) fn absorbed(&self) -> Vec<DocBuf> {
        let mut all: Vec<DocBuf> = self.unwind.iter().map(|(_, text)| text.clone()).collect();
        let field = self.as_path.dotted();
        let filter = self.joined.as_ref().map(|m| m.filter());
        let filter = filter.and_then(|f| conditions::renamed(f, &|path| Some(format!("{field}.{path}"))));
        all.extend(filter.map(|f| conditions::text(&f)));
        all
    }
    /// The text of the stage, with what it has taken in as explain shows that: `unwinding`, and a filter on joined documents
    /// at the end of its own pipeline.
    pub(super) fn shown(&self, text: &RawDoc, ctx: &QueryCtx) -> DocBuf {
        let Some((e, spec)) = text.first().and_then(|e| Some((e, e.value().as_doc()?))) else {
            return text.to_buf();
        };
        let mut b = DocBuilder::new();
        b.doc(e.name_bytes(), |d| {
            match &self.joined {
                None => {
                    d.elems_of(spec);
                }
                Some(joined) => {
                    spec.iter().filter(|e| e.name() != "pipeline").for_each(|e| {
                        d.elem(e);
                    });
                    if spec.elem("let").is_none() {
                        d.doc("let", |_| {});
                    }
                    let mut pipeline = ArrayBuilder::new();
                    for own in spec.get("pipeline").and_then(|p| p.as_array()).into_iter().flatten() {
                        pipeline.value(own.value());
                    }
                    pipeline.raw_doc(&conditions::spelled(joined.filter(), ctx));
                    d.raw_array("pipeline", &pipeline.finish());
                }
            }
            if let Some((_, text)) = &self.unwind {
                d.doc("unwinding", |d| options_of(text, d));
            }
        });
        b.finish()
    }
}

/// Of an `$unwind` that was taken in.
fn options_of(unwind: &RawDoc, d: &mut DocBuilder) {
    match unwind.first().map(|e| e.value()) {
        Some(Value::String(_)) => {
            d.bool("preserveNullAndEmptyArrays", false);
        }
        Some(Value::Document(options)) => options.iter().filter(|e| e.name() != "path").for_each(|e| {
            d.elem(e);
        }),
        _ => {}
    }
}

impl Parsed for Lookup {
    fn start(self, run: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Ok(Box::new(Joining::new(self, run)?))
    }
    fn needs(&self, needs: &mut Needs) {
        let mut complete = true;
        for (_, e) in self.let_vars.iter() {
            complete &= e.dependencies(needs.paths());
        }
        if let Some((local, _)) = &self.fields {
            needs.add(&local.dotted());
        }
        if !complete {
            needs.whole();
        }
    }
    fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        // What fails does so where a document comes to it.
        for (_, e) in self.let_vars.iter_mut() {
            let mut better = e.clone();
            if better.optimize(ctx).is_ok() {
                *e = better;
            }
        }
        Ok(())
    }
    fn origin(&self, path: &str) -> Option<Origin> {
        self.leaves_alone(path).then(|| Origin::same(path))
    }
}

/// The options, before anything is made of them.
#[derive(Default)]
struct Given<'e> {
    from: Option<&'e str>,
    as_path: &'e str,
    local: &'e str,
    foreign: &'e str,
    pipeline: Option<&'e RawDoc>,
    let_vars: Option<&'e RawDoc>,
}

impl<'e> Given<'e> {
    fn read(spec: &'e RawDoc) -> Result<Given<'e>> {
        let mut given = Given::default();
        for f in spec {
            match (f.name(), f.value()) {
                ("pipeline", v) => given.pipeline = Some(stages_array(v)?),
                ("from", v) => given.from = Some(parse_from("$lookup", v)?),
                ("let", Value::Document(d)) => given.let_vars = Some(d),
                ("let", v) => {
                    return Err(Error::failed_to_parse(format!(
                        "$lookup argument '{f}' must be an object, is type {}",
                        v.type_name()
                    )));
                }
                ("as", Value::String(s)) => given.as_path = s,
                ("localField", Value::String(s)) => given.local = s,
                ("foreignField", Value::String(s)) => given.foreign = s,
                (name, Value::String(_)) => {
                    return Err(Error::failed_to_parse(format!("unknown argument to $lookup: {name}")));
                }
                (name, v) => {
                    return Err(Error::failed_to_parse(format!(
                        "$lookup argument '{name}' must be a string, found {f}: {}",
                        v.type_name()
                    )));
                }
            }
        }
        Ok(given)
    }
    /// Whether there is all that there has to be, and nothing that excludes something else.
    fn check(&self, db: &str) -> Result<()> {
        match (self.from, self.pipeline) {
            (None, None) => {
                return Err(Error::failed_to_parse("must specify 'pipeline' when 'from' is empty"));
            }
            (None, Some(stages)) if !starts_with_documents(stages) => {
                return Err(no_documents());
            }
            _ => {}
        }
        if self.as_path.is_empty() {
            return Err(Error::failed_to_parse("must specify 'as' field for a $lookup"));
        }
        if self.from == Some("") {
            return Err(Error::new(ErrorCode::InvalidNamespace, format!("invalid $lookup namespace: {db}.")));
        }
        check_combination(self.pipeline.is_some(), self.let_vars.is_some(), self.local, self.foreign)
    }
}

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<Lookup> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::failed_to_parse(format!(
            "the $lookup stage specification must be an object, but found {}",
            e.ty.name()
        )));
    };
    let given = Given::read(spec)?;
    given.check(&p.ctx.vars.db)?;
    let as_path = FieldPath::parse(given.as_path)?;
    let fields = match given.local.is_empty() {
        true => None,
        false => Some((FieldPath::parse(given.local)?, FieldPath::parse(given.foreign)?)),
    };
    let mut variables = Vec::new();
    for v in given.let_vars.into_iter().flatten() {
        check_user_var_name(v.name())?;
        variables.push((v.name().to_owned(), p.parse(v.value())?));
    }
    let ctx = deeper(p.ctx)?;
    if let Some(stages) = given.pipeline {
        check_pipeline(stages, fields.is_some(), &variables, &ctx, p)?;
    }
    Ok(Lookup {
        from: given.from.unwrap_or("").to_owned(),
        as_path,
        fields,
        let_vars: Compiled(variables),
        pipeline: given.pipeline.map(|p| p.to_buf()),
        unwind: None,
        joined: None,
    })
}

/// Parses the stage's own pipeline as it is to run: inside of `ctx`, with `variables`, behind an equality if there is one.
fn check_pipeline(
    stages: &RawDoc,
    behind_equality: bool,
    variables: &[(String, Expr)],
    ctx: &QueryCtx,
    p: &mut ParseCtx<'_>,
) -> Result<()> {
    let mut checked = ctx.clone();
    Arc::make_mut(&mut checked.vars).unbound.extend(variables.iter().map(|(n, _)| n.clone()));
    let parsed = Pipeline::parse_within(stages, &checked, |s| refuse_stages(s, 51047, "$lookup"))?;
    let own = |name: &String| variables.iter().any(|(n, _)| n == name);
    let inherited = |name: &&String| !own(name) && *name != SEARCH_META;
    p.variables.extend(parsed.variables.iter().filter(inherited).cloned());
    // The equality would come in front.
    let first = stages.iter().next().and_then(|s| s.value().as_doc()?.first()).map_or("", |e| e.name());
    let own = matches!(parsed.source(), PipelineSource::Collection | PipelineSource::Documents(_));
    if behind_equality && !own {
        return Err(not_first(first));
    }
    Ok(())
}

/// A collection of the same database.
pub(super) fn parse_from<'v>(stage: &str, v: Value<'v>) -> Result<&'v str> {
    match v {
        Value::String(name) => Ok(name),
        Value::Document(d) => {
            if let Some(e) = d.iter().find(|e| !matches!(e.name(), "db" | "coll")) {
                let text = format!("BSON field 'from.{}' is an unknown field.", e.name());
                return Err(Error::location(40415, text));
            }
            let text = |n: &str| d.get(n).and_then(|v| v.as_str()).unwrap_or("").to_owned();
            Err(Error::failed_to_parse(format!(
                "{stage} with syntax {{from: {{db:<>, coll:<>}},..}} is not supported for db: {} and coll: {}",
                text("db"),
                text("coll")
            )))
        }
        v => Err(Error::failed_to_parse(format!(
            "{stage} 'from' field must be a string, but found {}",
            v.type_name()
        ))),
    }
}

/// 9 for a join with no collection that does not say which documents it is with.
pub(super) fn no_documents() -> Error {
    let text =
        "$lookup stage without explicit collection must have a pipeline with $documents as first stage";
    Error::failed_to_parse(text)
}

fn check_combination(pipeline: bool, let_vars: bool, local: &str, foreign: &str) -> Result<()> {
    let refuse = |text: &'static str| Err(Error::failed_to_parse(text));
    if pipeline {
        return match local.is_empty() == foreign.is_empty() {
            true => Ok(()),
            false => {
                refuse("$lookup requires both or neither of 'localField' and 'foreignField' to be specified")
            }
        };
    }
    if local.is_empty() || foreign.is_empty() {
        return refuse(
            "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified",
        );
    }
    if let_vars {
        return refuse("$lookup with a 'let' argument must also specify 'pipeline'");
    }
    Ok(())
}
