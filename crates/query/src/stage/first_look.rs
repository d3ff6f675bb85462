//! What is looked at of a whole pipeline before any stage of it is parsed: that its elements are objects with one field
//! each, whose names are stages; and of the stages that name collections or hold pipelines, whether those are where they
//! belong. So a mistake of that kind in the last stage is told before any other in the first one.

use super::element::{not_one_field, stage_spec};
use super::sub_pipeline::{stages_array, starts_with_documents};
use super::{facet, lookup_spec, registry, sources, union_with};
use crate::ctx::QueryCtx;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{Elem, RawDoc, Value};

/// What a pipeline or one inside of it may contain: who has to walk through it for such stages only does so where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// `$changeStream`.
    pub watches: bool,
    /// `$out`, `$merge`.
    pub writes: bool,
    /// Joins and unions.
    pub reads_others: bool,
    /// Stages about processes and sessions, which have places of their own ([`super::check_places`]).
    pub is_about_processes: bool,
}

impl Glance {
    const NOTHING: Glance =
        Glance { watches: false, writes: false, reads_others: false, is_about_processes: false };
    /// Nobody has looked.
    pub const ANYTHING: Glance =
        Glance { watches: true, writes: true, reads_others: true, is_about_processes: true };
}

/// `db` is the command's, in which targets without a database are; names of targets are looked at where it is known.
pub fn first_look(pipeline: &RawDoc, db: Option<&str>) -> Result<Glance> {
    let mut seen = Glance::NOTHING;
    look(pipeline, db, &mut seen)?;
    Ok(seen)
}

fn look(pipeline: &RawDoc, db: Option<&str>, seen: &mut Glance) -> Result<()> {
    for e in pipeline {
        let spec = stage_spec(e.value())?;
        let Some(stage) = spec.first() else { return Err(not_one_field()) };
        if !registry::is_known(stage.name()) {
            return Err(registry::unknown(stage.name()));
        }
        look_inside(stage, db, seen)?;
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

fn look_inside(e: Elem<'_>, db: Option<&str>, seen: &mut Glance) -> Result<()> {
    let name = e.name();
    match name {
        "$facet" => facet::pipelines(e)?.try_for_each(|stages| look(stages?, db, seen)),
        "$lookup" | "$graphLookup" => {
            seen.reads_others = true;
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
                    look(stages, db, seen)
                }
            }
        }
        "$unionWith" => {
            seen.reads_others = true;
            let (coll, stages) = union_with::named(e)?;
            check_name(coll, db)?;
            look(&stages, db, seen)
        }
        "$changeStream" => {
            seen.watches = true;
            sources::change_stream(e).map(drop)
        }
        "$collStats" | "$currentOp" | "$listLocalSessions" | "$listSessions" => {
            seen.is_about_processes |= name != "$collStats";
            sources::parse(e, &QueryCtx::default()).map(drop)
        }
        // Variables are the command's, and not known here.
        _ => match registry::sink(e, None)? {
            Some(sink) => {
                seen.writes = true;
                db.map_or(Ok(()), |db| sink.check_target(db))
            }
            None => Ok(()),
        },
    }
}
