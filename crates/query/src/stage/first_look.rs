//! What is looked at of a whole pipeline before any stage of it is parsed: that its elements are objects with one field
//! each, whose names are stages; and of the stages that name collections or hold pipelines, whether those are where they
//! belong. So a mistake of that kind in the last stage is told before any other in the first one.

use super::element::{not_one_field, stage_spec};
use super::sub_pipeline::{stages_array, starts_with_documents};
use super::{facet, lookup_spec, registry, sources, union_with};
use crate::ctx::QueryCtx;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{Elem, RawDoc, Value};

/// `db` is the command's, in which targets without a database are; names of targets are looked at where it is known.
pub fn first_look(pipeline: &RawDoc, db: Option<&str>) -> Result<()> {
    for e in pipeline {
        let spec = stage_spec(e.value())?;
        let Some(stage) = spec.first() else { return Err(not_one_field()) };
        if !registry::is_known(stage.name()) {
            return Err(registry::unknown(stage.name()));
        }
        look_inside(stage, db)?;
    }
    Ok(())
}

/// 73 for what no collection can be called. Whether there has to be a name others know.
fn check_name(coll: &str, db: Option<&str>) -> Result<()> {
    match db {
        Some(db) if !coll.is_empty() => Namespace::new(db, coll).map(drop),
        _ => Ok(()),
    }
}

fn look_inside(e: Elem<'_>, db: Option<&str>) -> Result<()> {
    let name = e.name();
    match name {
        "$facet" => facet::pipelines(e)?.try_for_each(|stages| first_look(stages?, db)),
        "$lookup" | "$graphLookup" => {
            let Value::Document(spec) = e.value() else {
                let found = e.ty.name();
                return Err(Error::failed_to_parse(format!(
                    "the {name} stage specification must be an object, but found {found}"
                )));
            };
            match spec.get("from") {
                Some(from) => match (lookup_spec::parse_from(name, from)?, db) {
                    ("", Some(db)) => {
                        let text = format!("invalid {name} namespace: {db}.");
                        return Err(Error::new(ErrorCode::InvalidNamespace, text));
                    }
                    (from, db) => check_name(from, db)?,
                },
                None if name == "$graphLookup" => {
                    return Err(Error::failed_to_parse(format!(
                        "missing 'from' option to $graphLookup stage specification: {spec}"
                    )));
                }
                None => {}
            }
            match spec.get("pipeline").filter(|_| name == "$lookup") {
                None => Ok(()),
                Some(stages) => {
                    let stages = stages_array(stages)?;
                    if spec.get("from").is_none() && !starts_with_documents(stages) {
                        return Err(lookup_spec::no_documents());
                    }
                    first_look(stages, db)
                }
            }
        }
        "$unionWith" => {
            let (coll, stages) = union_with::named(e)?;
            check_name(coll, db)?;
            first_look(&stages, db)
        }
        "$changeStream" => sources::change_stream(e).map(drop),
        "$collStats" | "$currentOp" | "$listLocalSessions" | "$listSessions" => {
            sources::parse(e, &QueryCtx::default()).map(drop)
        }
        // Variables are the command's, and not known here.
        _ => match (registry::sink(e, None)?, db) {
            (Some(sink), Some(db)) => sink.check_target(db),
            _ => Ok(()),
        },
    }
}
