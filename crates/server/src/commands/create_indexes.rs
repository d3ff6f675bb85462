//! `createIndexes`: builds indexes beside running writes; returns when they are ready.

use super::prelude::*;
use crate::writes::ByCtx;
use pando_command::Param;
use pando_command::request::{missing, wrong_type};
use pando_query::timeseries::index_on_buckets;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let mut specs: Option<Vec<&RawDoc>> = None;
    let (mut quorum, mut ignore_unknown, mut by_buckets) = (Value::String("votingMembers"), false, false);
    for arg in req.args("createIndexes") {
        match arg.name() {
            "indexes" => {
                let mut list = Vec::new();
                for e in arg.array()? {
                    match e.value() {
                        Value::Document(d) => list.push(d),
                        v => {
                            let path = format!("indexes.{}", e.name());
                            return Err(wrong_type("createIndexes", &path, &v, &["object"]));
                        }
                    }
                }
                specs = Some(list);
            }
            // The primary decides alone; the field is checked and has no further effect.
            "commitQuorum" if !matches!(arg.value(), Value::Null) => {
                if !server.repl.is_replicated() {
                    return Err(Error::bad_value("Standalones can't specify commitQuorum"));
                }
                quorum = checked_quorum(server, arg.value())?;
            }
            "commitQuorum" => {}
            "ignoreUnknownIndexOptions" => ignore_unknown = arg.boolish()?,
            "isTimeseriesNamespace" => by_buckets = arg.boolish()?,
            "collectionUUID" => arg.uuid_or_none().map(drop)?,
            _ => return Err(arg.unknown()),
        }
    }
    let specs = specs.ok_or_else(|| missing("createIndexes", "indexes"))?;
    let known: Vec<DocBuf> = match ignore_unknown {
        true => specs.iter().map(|s| pando_catalog::without_unknown_options(s)).collect(),
        false => Vec::new(),
    };
    let specs = if ignore_unknown { known.iter().map(|s| &**s).collect() } else { specs };
    let series = server.series_of_definition(&ns, by_buckets)?;
    ctx.arguments_read()?;
    server.uuid_of_write(true, "createIndexes", &req, &ns, series.as_ref())?;
    let on_buckets: Vec<DocBuf> = match &series {
        Some(s) => {
            let collated = server.catalog.lookup(&s.buckets).is_some_and(|c| c.collation().is_some());
            specs.iter().map(|spec| index_on_buckets(&s.of, spec, collated)).collect::<Result<_>>()?
        }
        None => Vec::new(),
    };
    let specs = if series.is_some() { on_buckets.iter().map(|s| &**s).collect() } else { specs };
    let ns = series.map_or(ns, |s| s.buckets);
    server.before_write(ctx).await?;
    let active_max = server.instance.params.int(Param::maxNumActiveUserIndexBuilds);
    server.catalog.set_active_builds_max(active_max.max(1) as usize);
    let done = match server.open_txn(ctx) {
        Some(open) => {
            let existing = open.collection(server, &ns)?;
            open.with(|unit| server.catalog.create_indexes_within(unit, &ns, existing.as_ref(), &specs))?
        }
        None => server.catalog.create_indexes(&ns, &specs, &ByCtx(ctx)).await?,
    };
    server.wrote(ctx, done.last);
    let mut r = Reply::new();
    r.body.i32("numIndexesBefore", done.before as i32);
    r.body.i32("numIndexesAfter", done.after as i32);
    match done.note {
        Some(note) => r.body.str("note", note),
        None => {
            r.body.bool("createdCollectionAutomatically", done.created_collection);
            if server.repl.is_replicated() && !ns.is_unreplicated() {
                r.body.value("commitQuorum", quorum);
            }
            &mut r.body
        }
    };
    Ok(r)
}

/// A number of members that hold data, or a name for some of them.
fn checked_quorum<'a>(server: &Server, v: Value<'a>) -> Result<Value<'a>> {
    let config = server.repl.config();
    let config = config.as_deref();
    const MAX: i64 = pando_base::limits::REPLSET_MEMBERS_MAX as i64;
    match v {
        Value::String("majority" | "votingMembers") => Ok(v),
        Value::String(mode) if config.is_some_and(|c| c.settings.get_last_error_modes.contains(mode)) => {
            Ok(v)
        }
        Value::String(mode) => Err(Error::new(
            ErrorCode::UnknownReplWriteConcern,
            format!("No write concern mode named '{mode}' found in replica set configuration"),
        )),
        v if v.is_number() => match v.as_i64().unwrap_or(v.as_f64().unwrap_or(-1.0) as i64) {
            n @ 0..=MAX if config.is_none_or(|c| n as usize <= c.data_bearing()) => {
                Ok(Value::Int32(n as i32))
            }
            0..=MAX => Err(Error::new(
                ErrorCode::UnsatisfiableCommitQuorum,
                "Not enough data-bearing nodes to satisfy commit quorum",
            )),
            _ => Err(Error::failed_to_parse(format!(
                "commitQuorum has to be a non-negative number and not greater than {MAX}"
            ))),
        },
        v => {
            let expected = ["long", "int", "decimal", "double", "string"];
            Err(wrong_type("createIndexes", "commitQuorum", &v, &expected))
        }
    }
}
