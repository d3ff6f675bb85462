//! `$unionWith`: behind the input's documents come those of another collection, through a pipeline of its own.

use super::element::null_array;
use super::foreign::{Foreign, Sub};
use super::needs::Needs;
use super::parsed::Parsed;
use super::pipeline::Pipeline;
use super::running::{Running, Start};
use super::step::Step;
use super::sub_pipeline::{deeper, refuse_stages, starts_with_documents};
use super::upstream::Upstream;
use crate::ctx::QueryCtx;
use crate::expr::{ParseCtx, SEARCH_META, optimize_error};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{ArrayBuilder, DocBuf, Elem, RawDoc, Value};

/// Documents, and behind them those of another collection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnionWith {
    pub(super) coll: String,
    pub(super) pipeline: DocBuf,
}

struct Uniting {
    pipeline: DocBuf,
    ctx: QueryCtx,
    foreign: Foreign,
    state: State,
}

enum State {
    Input,
    /// The input has ended.
    Opening,
    Other(Box<Sub>),
    Done,
}

/// The collection that is named, and the stages over it.
pub(super) fn named<'e>(e: Elem<'e>) -> Result<(&'e str, DocBuf)> {
    let (mut coll, mut pipeline) = ("", DocBuf::new());
    match e.value() {
        Value::String(name) => coll = name,
        Value::Document(spec) => {
            for f in spec {
                match (f.name(), f.value()) {
                    ("coll", Value::Null | Value::Undefined) => {}
                    ("pipeline", Value::Null | Value::Undefined) => return Err(null_array("pipeline")),
                    ("coll", Value::String(name)) => coll = name,
                    ("coll", v) => return Err(wrong_type("coll", v, "string")),
                    ("pipeline", Value::Array(list)) => pipeline = given_stages(list)?,
                    ("pipeline", v) => return Err(wrong_type("pipeline", v, "array")),
                    (other, _) => {
                        let text = format!("BSON field '$unionWith.{other}' is an unknown field.");
                        return Err(Error::location(40415, text));
                    }
                }
            }
            if spec.get("coll").is_none_or(|v| matches!(v, Value::Null | Value::Undefined))
                && !starts_with_documents(&pipeline)
            {
                return Err(Error::failed_to_parse(
                    "$unionWith stage without explicit collection must have a pipeline with $documents as first stage",
                ));
            }
        }
        v => {
            return Err(Error::failed_to_parse(format!(
                "the $unionWith stage specification must be an object or string, but found {}",
                v.type_name()
            )));
        }
    }
    Ok((coll, pipeline))
}

/// Nulls among them count as not given.
fn given_stages(list: &RawDoc) -> Result<DocBuf> {
    let mut stages = ArrayBuilder::new();
    for stage in list {
        match stage.value() {
            Value::Document(d) => {
                stages.raw_doc(d);
            }
            Value::Null | Value::Undefined => {}
            v => return Err(wrong_type(&format!("pipeline.{}", stage.name()), v, "object")),
        }
    }
    Ok(stages.finish())
}

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<UnionWith> {
    let (coll, pipeline) = named(e)?;
    let ctx = deeper(p.ctx)?;
    let parsed = Pipeline::parse_within(&pipeline, &ctx, |s| refuse_stages(s, 31441, "$unionWith"))?;
    p.variables.extend(parsed.variables.into_iter().filter(|name| name != SEARCH_META));
    Ok(UnionWith { coll: coll.to_owned(), pipeline })
}

fn wrong_type(field: &str, v: Value<'_>, wanted: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '$unionWith.{field}' is the wrong type '{}', expected type '{wanted}'",
        v.type_name()
    ))
}

impl Parsed for UnionWith {
    fn start(self, run: &mut Start<'_>) -> Result<Box<dyn Running>> {
        if self.coll.is_empty() && !starts_with_documents(&self.pipeline) {
            return Err(Error::new(
                ErrorCode::InvalidNamespace,
                format!("Namespace {}. is not a valid collection name", run.ctx.vars.db),
            )
            .context("PlanExecutor error during aggregation"));
        }
        let ctx = deeper(run.ctx)?;
        let foreign = Foreign::new(run, &self.coll)?;
        Ok(Box::new(Uniting { pipeline: self.pipeline, ctx, foreign, state: State::Input }))
    }
    fn needs(&self, _: &mut Needs) {}
    /// What optimizing the other pipeline finds is told before any document is looked at.
    fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        match Pipeline::parse_within(&self.pipeline, &deeper(ctx)?, |_| Ok(())) {
            Ok(mut parsed) => parsed.optimize().map_err(|e| optimize_error("pipeline", e)),
            // Over a view it may still be fine.
            Err(_) => Ok(()),
        }
    }
}

impl Running for Uniting {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        let foreign = &mut self.foreign;
        loop {
            match &mut self.state {
                State::Input => match up.next()? {
                    Step::Eof => self.state = State::Opening,
                    step => return Ok(step),
                },
                State::Opening => {
                    let stages = foreign.stages([&*self.pipeline]);
                    let sub = foreign.run(Pipeline::parse(&stages, &self.ctx)?)?;
                    let Some(sub) = sub else { return Ok(Step::NeedYield) };
                    self.state = State::Other(Box::new(sub));
                }
                State::Other(sub) => match sub.next(foreign)? {
                    Step::Eof => {
                        foreign.save();
                        self.state = State::Done;
                    }
                    step => return Ok(step),
                },
                State::Done => return Ok(Step::Eof),
            }
        }
    }
    fn save(&mut self) {
        if let State::Other(sub) = &mut self.state {
            sub.save();
        }
        self.foreign.save();
    }
}
