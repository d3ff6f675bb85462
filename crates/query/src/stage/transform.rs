//! Stages that turn one document into one document, also the stages of pipeline updates.

use super::needs::Needs;
use super::parsed::{Compiled, Origin, Parsed};
use super::running::{Running, Start};
use super::shape::{Shape, new_root};
use super::step::Step;
use super::upstream::Upstream;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, ParseCtx, Scope};
use pando_base::{Error, Result};
use pando_bson::{DocBuf, Elem, RawDoc, Value};

/// One document to one document.
#[derive(Clone, Debug)]
pub(crate) enum Transform {
    Shape(Shape),
    /// The expression's value, and how messages call it.
    NewRoot(Expr, &'static str),
}

/// A stage that does that to every document.
#[derive(Clone, PartialEq)]
pub(crate) struct Reshape(pub(super) Compiled<Transform>);

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

impl Reshape {
    /// A `$project` that keeps named fields.
    pub(super) fn is_inclusion(&self) -> bool {
        matches!(&*self.0, Transform::Shape(shape) if shape.is_inclusion())
    }
    /// A `$project` that keeps named fields gives itself away.
    pub(super) fn take_inclusion(&mut self) -> Option<Shape> {
        match &mut *self.0 {
            Transform::Shape(shape) => shape.take_inclusion(),
            Transform::NewRoot(..) => None,
        }
    }
}

impl From<Transform> for Reshape {
    fn from(transform: Transform) -> Reshape {
        Reshape(Compiled(transform))
    }
}

impl Parsed for Reshape {
    fn start(self, _: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Ok(Box::new(Transforming { transform: self.0.0 }))
    }
    fn needs(&self, needs: &mut Needs) {
        match &*self.0 {
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
    fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        self.0.optimize(ctx)
    }
    fn origin(&self, path: &str) -> Option<Origin> {
        let Transform::Shape(shape) = &*self.0 else { return None };
        let as_it_was = || shape.leaves_alone(path).then(|| path.to_owned());
        let path = as_it_was().or_else(|| shape.renames(path))?;
        Some(Origin { path, same: true })
    }
}

struct Transforming {
    transform: Transform,
}

impl Running for Transforming {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        match up.next()? {
            Step::Row(row) => {
                let scope = Scope::new(row.doc(), up.ctx()).with_facts(row.facts());
                Ok(Step::Row(row.becomes(self.transform.apply_in(&scope)?.into())))
            }
            step => Ok(step),
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
