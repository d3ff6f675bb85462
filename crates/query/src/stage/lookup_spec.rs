//! The specification of a `$lookup`.

use super::foreign::{deeper, refuse_stages, stages_array, starts_with_documents};
use super::lookup::Lookup;
use super::{Pipeline, PipelineSource, Stage, not_first};
use crate::ctx::QueryCtx;
use crate::expr::{Expr, FieldPath, ParseCtx, check_user_var_name};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, Elem, Value};
use std::sync::Arc;

pub(super) struct LookupSpec {
    pub(super) from: String,
    pub(super) as_path: FieldPath,
    /// `localField` and `foreignField`.
    pub(super) fields: Option<(FieldPath, FieldPath)>,
    pub(super) let_vars: Vec<(String, Expr)>,
    pub(super) pipeline: Option<DocBuf>,
    /// What joined documents have to match beside all else.
    pub(super) joined: Option<DocBuf>,
    /// Of the sub-pipeline, without this stage's variables.
    pub(super) ctx: QueryCtx,
}

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::failed_to_parse(format!(
            "the $lookup stage specification must be an object, but found {}",
            e.ty.name()
        )));
    };
    let (mut from, mut as_path, mut local, mut foreign) = (None, "", "", "");
    let (mut pipeline, mut let_vars) = (None, None);
    for f in spec {
        match (f.name(), f.value()) {
            ("pipeline", v) => pipeline = Some(stages_array(v)?),
            ("from", v) => from = Some(parse_from("$lookup", v)?),
            ("let", Value::Document(d)) => let_vars = Some(d),
            ("let", v) => {
                return Err(Error::failed_to_parse(format!(
                    "$lookup argument '{f}' must be an object, is type {}",
                    v.type_name()
                )));
            }
            (name, Value::String(s)) => match name {
                "as" => as_path = s,
                "localField" => local = s,
                "foreignField" => foreign = s,
                _ => return Err(Error::failed_to_parse(format!("unknown argument to $lookup: {name}"))),
            },
            (name, v) => {
                return Err(Error::failed_to_parse(format!(
                    "$lookup argument '{name}' must be a string, found {f}: {}",
                    v.type_name()
                )));
            }
        }
    }
    match (from, pipeline) {
        (None, None) => {
            return Err(Error::failed_to_parse("must specify 'pipeline' when 'from' is empty"));
        }
        (None, Some(stages)) if !starts_with_documents(stages) => {
            return Err(Error::failed_to_parse(
                "$lookup stage without explicit collection must have a pipeline with $documents as first stage",
            ));
        }
        _ => {}
    }
    if as_path.is_empty() {
        return Err(Error::failed_to_parse("must specify 'as' field for a $lookup"));
    }
    if from == Some("") {
        return Err(Error::new(
            ErrorCode::InvalidNamespace,
            format!("invalid $lookup namespace: {}.", p.ctx.vars.db),
        ));
    }
    check_combination(pipeline.is_some(), let_vars.is_some(), local, foreign)?;
    let as_path = FieldPath::parse(as_path)?;
    let fields = match local.is_empty() {
        true => None,
        false => Some((FieldPath::parse(local)?, FieldPath::parse(foreign)?)),
    };
    let mut variables = Vec::new();
    for v in let_vars.into_iter().flatten() {
        check_user_var_name(v.name())?;
        variables.push((v.name().to_owned(), p.parse(v.value())?));
    }
    let ctx = deeper(p.ctx)?;
    if let Some(stages) = pipeline {
        refuse_stages(stages, 51047, "$lookup")?;
        let mut checked = ctx.clone();
        Arc::make_mut(&mut checked.vars).unbound.extend(variables.iter().map(|(n, _)| n.clone()));
        let parsed = Pipeline::parse_only(stages, &checked)?;
        // The equality would come in front.
        let first = stages.iter().next().and_then(|s| s.value().as_doc()?.first()).map_or("", |e| e.name());
        let own = matches!(parsed.source(), PipelineSource::Collection | PipelineSource::Documents(_));
        if fields.is_some() && !own {
            return Err(not_first(first));
        }
    }
    out.push(Box::new(Lookup::new(LookupSpec {
        from: from.unwrap_or("").to_owned(),
        as_path,
        fields,
        let_vars: variables,
        pipeline: pipeline.map(|p| p.to_buf()),
        joined: None,
        ctx,
    })));
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
