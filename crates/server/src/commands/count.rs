//! `count`: how many documents match.

use super::prelude::*;
use crate::read::point::reads_latest;
use crate::views;
use pando_access::Reading;
use pando_base::Uuid;
use pando_query::collation::Collation;
use pando_request::CountArgs;
use pando_storage::ReadAt;
use pando_workflows::migration::{self, Migration};

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    // This command has its own code for names of the wrong type.
    if !matches!(req.first().value(), Value::String(_) | Value::Symbol(_) | Value::Binary { subtype: 4, .. })
    {
        let text = format!("collection name has invalid type {}", req.first().value().type_name());
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let ns = server.access.readable_ns_or_uuid(&req)?;
    let args = CountArgs::parse(&req)?;
    let on_view = args.on_view();
    let args = args.find;
    // Also where nothing will be compared.
    args.collation.map(Collation::parse).transpose()?;
    if args.collection_uuid.is_some() {
        server.access.check_collection_uuid("count", &req, &ns)?;
    }
    server.instance.metrics.op_counters.command.inc();
    let n = match &server.crud.reads.read(ctx, &ns)? {
        Reading::Missing => match server.crud.reads.parse_find(ctx, &ns, None, &args) {
            Err(e) if e.code == ErrorCode::IndexNotFound && args.hint.is_some() => {
                return Err(Error::bad_value("text and hint not allowed in same query"));
            }
            // Nothing is searched, and no script is read.
            Err(e) if matches!(e.code, ErrorCode::IndexNotFound | ErrorCode::JSInterpreterFailure) => 0,
            parsed => parsed.map(|_| 0)?,
        },
        Reading::View(_) => views::count(&server.crud.aggregations, ctx, &ns, &on_view).await?,
        Reading::Collection(coll) => {
            if args.collation.is_some() {
                server.crud.reads.parse_find(ctx, &ns, Some(coll), &args)?;
            }
            let all = args.filter.is_none_or(RawDoc::is_empty) && args.hint.is_none() && reads_latest(ctx);
            // Before and behind: a task may end, or begin, while all are counted.
            let may_be_known = all && !coll.is_oplog() && !has_others(server, coll.uuid)?;
            let known = may_be_known.then(|| coll.count());
            let matching = if let Some(known) = known
                && !has_others(server, coll.uuid)?
            {
                known
            } else {
                return reply(server.crud.reads.count_matching(ctx, coll, &args).await?);
            };
            let left = matching.saturating_sub(args.skip);
            args.limit.map_or(left, |limit| left.min(limit))
        }
    };
    server.statistics.time(&ns, crate::statistics::top::Kind::Command, false, ctx.elapsed());
    reply(n)
}

/// Whether documents of other shards may be here, which only a look at each tells: for all there is a task to delete them.
fn has_others(server: &Server, uuid: Uuid) -> Result<bool> {
    if server.sharding.is_none() {
        return Ok(false);
    }
    let tasks = server.access.internal_collections().all(&migration::deletions(), ReadAt::Latest)?;
    Ok(tasks.iter().any(|task| Migration::parse(task).is_some_and(|m| m.uuid == uuid)))
}

fn reply(n: u64) -> Result<Reply> {
    let mut r = Reply::new();
    match i32::try_from(n) {
        Ok(n) => r.body.i32("n", n),
        Err(_) => r.body.i64("n", n as i64),
    };
    Ok(r)
}
