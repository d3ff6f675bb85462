//! `createIndexes`: builds indexes beside running writes; returns when they are ready.

use super::prelude::*;
use crate::writes::ByCtx;
use pando_command::Param;
use pando_command::request::{missing, wrong_type};

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let mut specs: Option<Vec<&RawDoc>> = None;
    let (mut quorum, mut ignore_unknown) = (Value::String("votingMembers"), false);
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
            // One member decides alone; the field is checked and has no further effect.
            "commitQuorum" => {
                quorum = arg.value();
                if !server.repl.is_replicated() {
                    return Err(Error::bad_value("Standalones can't specify commitQuorum"));
                }
                check_quorum(&quorum)?;
            }
            "ignoreUnknownIndexOptions" => ignore_unknown = arg.boolish()?,
            "isTimeseriesNamespace" | "collectionUUID" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let specs = specs.ok_or_else(|| missing("createIndexes", "indexes"))?;
    let known: Vec<DocBuf> = match ignore_unknown {
        true => specs.iter().map(|s| pando_catalog::without_unknown_options(s)).collect(),
        false => Vec::new(),
    };
    let specs = if ignore_unknown { known.iter().map(|s| &**s).collect() } else { specs };
    server.check_collection_uuid("createIndexes", &req, &ns)?;
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

fn check_quorum(v: &Value<'_>) -> Result<()> {
    match v {
        Value::String(_) => Ok(()),
        v if v.is_number() => match v.as_i64() {
            Some(0..=1) => Ok(()),
            _ => Err(Error::new(
                ErrorCode::UnsatisfiableCommitQuorum,
                "Not enough data-bearing nodes to satisfy commit quorum",
            )),
        },
        v => Err(Error::failed_to_parse(format!(
            "commitQuorum has to be a number or a string, got {}",
            v.type_name()
        ))),
    }
}
