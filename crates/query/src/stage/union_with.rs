//! `$unionWith`: behind the input's documents come those of another collection, through a pipeline of its own.

use super::foreign::{Foreign, Sub, deeper, refuse_stages, starts_with_documents};
use super::null_array;
use super::{Needs, Pipeline, RunEnv, Stage, Step, Upstream};
use crate::ctx::QueryCtx;
use crate::expr::ParseCtx;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, Elem, RawDoc, Value};

struct UnionWith {
    coll: String,
    pipeline: DocBuf,
    ctx: QueryCtx,
    foreign: Option<Foreign>,
    state: State,
}

enum State {
    Input,
    Other(Box<Sub>),
    Done,
}

/// The collection that is named, and the stages over it.
pub(super) fn named<'e>(e: Elem<'e>) -> Result<(&'e str, &'e RawDoc)> {
    let (mut coll, mut pipeline) = ("", RawDoc::empty());
    match e.value() {
        Value::String(name) => coll = name,
        Value::Document(spec) => {
            for f in spec {
                match (f.name(), f.value()) {
                    ("coll", Value::Null) => {}
                    ("pipeline", Value::Null) => return Err(null_array("pipeline")),
                    ("coll", Value::String(name)) => coll = name,
                    ("coll", v) => return Err(wrong_type("coll", v, "string")),
                    ("pipeline", Value::Array(stages)) => pipeline = stages,
                    ("pipeline", v) => return Err(wrong_type("pipeline", v, "array")),
                    (other, _) => {
                        let text = format!("BSON field '$unionWith.{other}' is an unknown field.");
                        return Err(Error::location(40415, text));
                    }
                }
            }
            if spec.get("coll").is_none_or(|v| matches!(v, Value::Null)) && !starts_with_documents(pipeline) {
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

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    let (coll, pipeline) = named(e)?;
    for stage in pipeline {
        if stage.value().as_doc().is_none() {
            return Err(wrong_type(&format!("pipeline.{}", stage.name()), stage.value(), "object"));
        }
    }
    refuse_stages(pipeline, 31441, "$unionWith")?;
    let ctx = deeper(p.ctx)?;
    Pipeline::parse_only(pipeline, &ctx)?;
    out.push(Box::new(UnionWith {
        coll: coll.to_owned(),
        pipeline: pipeline.to_buf(),
        ctx,
        foreign: None,
        state: State::Input,
    }));
    Ok(())
}

fn wrong_type(field: &str, v: Value<'_>, wanted: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '$unionWith.{field}' is the wrong type '{}', expected type '{wanted}'",
        v.type_name()
    ))
}

impl Stage for UnionWith {
    fn start(&mut self, env: &RunEnv) -> Result<()> {
        if self.coll.is_empty() && !starts_with_documents(&self.pipeline) {
            return Err(Error::new(
                ErrorCode::InvalidNamespace,
                format!("Namespace {}. is not a valid collection name", self.ctx.vars.db),
            )
            .context("PlanExecutor error during aggregation"));
        }
        self.foreign = Some(Foreign::new(env, &self.ctx, &self.coll)?);
        Ok(())
    }
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        let foreign = self.foreign.as_mut().ok_or_else(|| Error::internal("not started"))?;
        loop {
            match &mut self.state {
                State::Input => match up.next()? {
                    Step::Eof => {
                        let stages = foreign.stages([&*self.pipeline]);
                        let sub = foreign.run(Pipeline::parse(&stages, &self.ctx)?)?;
                        self.state = State::Other(Box::new(sub));
                    }
                    step => return Ok(step),
                },
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
        if let Some(foreign) = &mut self.foreign {
            foreign.save();
        }
    }
    fn needs(&self, _: &mut Needs) {}
}
