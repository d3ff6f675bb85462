//! The stages that a pipeline update may have.

use super::element::stage_spec;
use super::parse::no_search;
use super::transform::{Transform, project, unset};
use super::{add_fields, registry, replace_root};
use crate::ctx::QueryCtx;
use crate::expr::{ParseCtx, SEARCH_META};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::Value;

/// A stage of a pipeline update.
pub(crate) fn parse_update_stage(v: Value<'_>, ctx: &QueryCtx) -> Result<Transform> {
    let spec = stage_spec(v)?;
    let Some(e) = spec.first() else { return Err(Error::internal("a stage without a field")) };
    if let Some(named) = ctx.counts() {
        named.stage(e.name());
    }
    let p = &mut ParseCtx::new(ctx);
    p.forgets = true;
    let stage = match e.name() {
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
    }?;
    match p.variables.contains(SEARCH_META) {
        true => Err(no_search()),
        false => Ok(stage),
    }
}
