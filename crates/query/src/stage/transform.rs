//! Stages that turn one document into one document, also the stages of pipeline updates.

use super::shape::{Shape, new_root};
use super::{Needs, Origin, Stage, Step, Upstream, add_fields, registry, replace_root, stage_spec};
use crate::ctx::QueryCtx;
use crate::expr::{Expr, ParseCtx, Scope};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, Elem, RawDoc, Value};

/// One document to one document.
#[derive(Debug)]
pub(crate) enum Transform {
    Shape(Shape),
    /// The expression's value, and how messages call it.
    NewRoot(Expr, &'static str),
}

impl Transform {
    pub(crate) fn apply(&self, doc: &RawDoc, ctx: &QueryCtx) -> Result<DocBuf> {
        self.apply_in(&Scope::new(doc, ctx))
    }
    fn apply_in(&self, scope: &Scope<'_>) -> Result<DocBuf> {
        match self {
            Transform::Shape(shape) => shape.apply(scope),
            Transform::NewRoot(e, label) => new_root(e.eval(scope)?, label, scope.root),
        }
    }
    pub(crate) fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        match self {
            Transform::Shape(shape) => shape.optimize(ctx),
            Transform::NewRoot(e, _) => e.optimize(ctx),
        }
    }
}

pub(crate) struct TransformStage {
    pub(super) transform: Transform,
}

impl Stage for TransformStage {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        match up.next()? {
            Step::Row(row) => {
                let scope = Scope::new(row.doc(), up.ctx()).with_facts(row.facts());
                Ok(Step::Row(row.becomes(self.transform.apply_in(&scope)?.into())))
            }
            step => Ok(step),
        }
    }
    fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        self.transform.optimize(ctx)
    }
    fn leaves_alone(&self, path: &str) -> bool {
        match &self.transform {
            Transform::Shape(shape) => shape.leaves_alone(path),
            Transform::NewRoot(..) => false,
        }
    }
    fn origin(&self, path: &str) -> Option<Origin> {
        let Transform::Shape(shape) = &self.transform else { return None };
        let as_it_was = || shape.leaves_alone(path).then(|| path.to_owned());
        let path = as_it_was().or_else(|| shape.renames(path))?;
        Some(Origin { path, same: true })
    }
    fn is_one_for_one(&self) -> bool {
        true
    }
    fn take_inclusion(&mut self) -> Option<Shape> {
        match &mut self.transform {
            Transform::Shape(shape) => shape.take_inclusion(),
            Transform::NewRoot(..) => None,
        }
    }
    fn needs(&self, needs: &mut Needs) {
        match &self.transform {
            Transform::Shape(shape) => match shape.needs(needs.paths()) {
                Some(true) => needs.settle(),
                Some(false) => needs.whole(),
                None => {}
            },
            Transform::NewRoot(e, _) => match e.dependencies(needs.paths()) {
                true => needs.settle(),
                false => needs.whole(),
            },
        }
    }
}

/// Puts "Invalid $stage" in front of an error.
pub(super) fn invalid(stage: &str, e: Error) -> Error {
    e.context(format_args!("Invalid {stage}"))
}

pub(super) fn project(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<Transform> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::location(15969, "$project specification must be an object"));
    };
    Ok(Transform::Shape(Shape::project(spec, p).map_err(|e| invalid("$project", e))?))
}

pub(super) fn unset(e: Elem<'_>, _: &mut ParseCtx<'_>) -> Result<Transform> {
    let mut paths: Vec<&str> = Vec::new();
    match e.value() {
        Value::String(path) => paths.push(path),
        Value::Array(list) => {
            for item in list {
                let Value::String(path) = item.value() else {
                    return Err(Error::location(
                        31120,
                        "$unset specification must be a string or an array containing only string values",
                    ));
                };
                paths.push(path);
            }
            if paths.is_empty() {
                return Err(Error::location(
                    31119,
                    "$unset specification must be a string or an array with at least one field",
                ));
            }
        }
        _ => return Err(Error::location(31002, "$unset specification must be a string or an array")),
    }
    Ok(Transform::Shape(Shape::unset(paths).map_err(|e| invalid("$unset", e))?))
}

pub(super) fn parse_project(e: Elem<'_>, p: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    out.push(Box::new(TransformStage { transform: project(e, p)? }));
    Ok(())
}

pub(super) fn parse_unset(e: Elem<'_>, p: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    out.push(Box::new(TransformStage { transform: unset(e, p)? }));
    Ok(())
}

/// A stage of a pipeline update.
pub(crate) fn parse_update_stage(v: Value<'_>, ctx: &QueryCtx) -> Result<Transform> {
    let spec = stage_spec(v)?;
    let Some(e) = spec.first() else { return Err(Error::internal("a stage without a field")) };
    let p = &mut ParseCtx::new(ctx);
    match e.name() {
        "$set" | "$addFields" => add_fields::transform(e, p),
        "$project" => project(e, p),
        "$unset" => unset(e, p),
        "$replaceWith" => replace_root::with(e, p),
        "$replaceRoot" => replace_root::root(e, p),
        name if registry::is_known(name) => Err(Error::new(
            ErrorCode::InvalidOptions,
            format!("{name} is not allowed to be used within an update"),
        )),
        name => Err(registry::unknown(name)),
    }
}
