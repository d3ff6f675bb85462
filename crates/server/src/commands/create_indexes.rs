//! `createIndexes`: builds indexes beside running writes; returns when they are ready.

use super::prelude::*;
use pando_access::{IndexSpec, names};
use pando_base::Uuid;
use pando_command::Param;
use pando_command::request::wrong_type;
use pando_query::timeseries::index_on_buckets;
use pando_repl::topology::commit_quorum::CommitQuorum;
use pando_request::CreateIndexesArgs;
use pando_routing::ShardKey;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = CreateIndexesArgs::parse(&req)?;
    let ns = req.ns()?;
    if args.commit_quorum.is_some() && !server.replication.member.is_replicated() {
        return Err(Error::bad_value("Standalones can't specify commitQuorum"));
    }
    let (specs, ignore_unknown) = (args.specs(), args.ignore_unknown == Some(true));
    let known: Vec<DocBuf> = match ignore_unknown {
        true => specs.iter().map(|s| pando_access::without_unknown_options(s)).collect(),
        false => Vec::new(),
    };
    let specs = if ignore_unknown { known.iter().map(|s| &**s).collect() } else { specs };
    ctx.arguments_read()?;
    let series = server.access.series_of_definition(&ns, args.by_buckets == Some(true))?;
    let on_buckets: Vec<DocBuf> = match &series {
        Some(s) => {
            let definitions = server.access.definitions();
            let collated = definitions.collection(&s.buckets).is_some_and(|c| c.collation().is_some());
            specs.iter().map(|spec| index_on_buckets(&s.of, spec, collated)).collect::<Result<_>>()?
        }
        None => Vec::new(),
    };
    let specs = if series.is_some() { on_buckets.iter().map(|s| &**s).collect() } else { specs };
    // Mistakes in the request itself are told before those that only this set and its collections can see.
    check_form(&ns, &specs)?;
    let quorum = args.commit_quorum.unwrap_or(Value::String("votingMembers"));
    let quorum = checked_quorum(server, "createIndexes", &quorum)?.to_doc();
    let on = series.as_ref().map_or(&ns, |s| &s.buckets);
    args.collection_uuid.map_or(Ok(()), |uuid| server.access.check_uuid(on, Uuid(uuid)))?;
    let ns = series.map_or(ns, |s| s.buckets);
    server.upkeep.admission.before_write(ctx).await?;
    let active_max = server.instance.params.int(Param::maxNumActiveUserIndexBuilds);
    server.upkeep.maintenance.set_active_builds_max(active_max.max(1) as usize);
    if !ctx.in_txn() {
        server.upkeep.index_builds.make_entries().await?;
    }
    if let Some(key) = server.access.sharded_by(&ns) {
        specs.iter().try_for_each(|spec| check_unique(&key, spec))?;
    }
    let done = server.access.create_indexes(ctx, &ns, &specs, &quorum).await?;
    ctx.wrote(done.last);
    let mut r = Reply::new();
    r.body.i32("numIndexesBefore", done.before as i32);
    r.body.i32("numIndexesAfter", done.after as i32);
    if done.note.is_none() || done.created_collection {
        r.body.bool("createdCollectionAutomatically", done.created_collection);
        if server.replication.member.is_replicated() && !ns.is_unreplicated() {
            r.body.elems_of(&quorum);
        }
    }
    if let Some(note) = done.note {
        r.body.str("note", note);
    }
    Ok(r)
}

fn check_form(ns: &Namespace, specs: &[&RawDoc]) -> Result<()> {
    // Tables are refused for what they are (20), with the collection.
    if !names::is_table_name(ns) {
        names::check_writable(ns)?;
    }
    if specs.is_empty() {
        return Err(Error::bad_value("Must specify at least one index to create"));
    }
    IndexSpec::check_forms(specs)
}

/// On a shard an index sees a part of the documents only: it keeps those different that can be on no other shard (67).
fn check_unique(key: &ShardKey, spec: &RawDoc) -> Result<()> {
    let pattern = spec.get("key").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
    if !spec.get("unique").is_some_and(|v| v.is_truthy()) || key.allows_unique(pattern) {
        return Ok(());
    }
    let text = format!("cannot create unique index over {pattern} with shard key pattern {}", key.pattern());
    Err(Error::new(ErrorCode::CannotCreateIndex, text))
}

/// A number of members that hold data, or a name for some of them.
pub(super) fn checked_quorum(server: &Server, owner: &'static str, v: &Value<'_>) -> Result<CommitQuorum> {
    let quorum = CommitQuorum::parse(v).unwrap_or_else(|| {
        let expected = ["long", "int", "decimal", "double", "string"];
        Err(wrong_type(owner, "commitQuorum", v, &expected))
    })?;
    match server.replication.member.config() {
        Some(config) => config.check_commit_quorum(&quorum).map(|()| quorum),
        None => Ok(quorum),
    }
}
