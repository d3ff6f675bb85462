//! What is looked at of a whole pipeline before any stage of it is parsed: that its elements are objects with one field
//! each, whose names are stages; and of the stages that name collections or hold pipelines, whether those are where they
//! belong. So a mistake of that kind in the last stage is told before any other in the first one.

use super::element::{not_one_field, stage_spec};
use super::{facet, lookup_spec, registry, union_with};
use crate::ctx::QueryCtx;
use pando_base::{Error, Result};
use pando_bson::{Elem, RawDoc, Value};

pub fn first_look(pipeline: &RawDoc) -> Result<()> {
    for e in pipeline {
        let spec = stage_spec(e.value())?;
        let Some(stage) = spec.first() else { return Err(not_one_field()) };
        if !registry::is_known(stage.name()) {
            return Err(registry::unknown(stage.name()));
        }
        look_inside(stage)?;
    }
    Ok(())
}

fn look_inside(e: Elem<'_>) -> Result<()> {
    let name = e.name();
    match name {
        "$facet" => facet::pipelines(e)?.try_for_each(|stages| first_look(stages?)),
        "$lookup" | "$graphLookup" => {
            let Value::Document(spec) = e.value() else {
                let found = e.ty.name();
                return Err(Error::failed_to_parse(format!(
                    "the {name} stage specification must be an object, but found {found}"
                )));
            };
            match spec.get("from") {
                Some(from) => drop(lookup_spec::parse_from(name, from)?),
                None if name == "$graphLookup" => {
                    return Err(Error::failed_to_parse(format!(
                        "missing 'from' option to $graphLookup stage specification: {spec}"
                    )));
                }
                None => {}
            }
            match spec.get("pipeline").filter(|_| name == "$lookup") {
                None => Ok(()),
                Some(Value::Array(stages)) => first_look(stages),
                Some(_) => Err(Error::type_mismatch("'pipeline' option must be specified as an array")),
            }
        }
        "$unionWith" => first_look(union_with::named(e)?.1),
        _ => match registry::sink(e, &QueryCtx::default()) {
            // Variables are the command's, and not known here.
            Err(e) if e.code.0 != UNDEFINED_VARIABLE => Err(e),
            _ => Ok(()),
        },
    }
}

const UNDEFINED_VARIABLE: i32 = 17276;
