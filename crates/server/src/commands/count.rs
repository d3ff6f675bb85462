//! `count`: how many documents match.

use super::prelude::*;
use crate::find_args::FindArgs;
use pando_bson::Elem;
use pando_bson::shape::Shape;
use pando_catalog::Named;
use pando_query::collation::Collation;
use pando_query::plan::Hint;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    // This command has its own code for names of the wrong type.
    if !matches!(req.first().value(), Value::String(_) | Value::Symbol(_) | Value::Binary { subtype: 4, .. })
    {
        let text = format!("collection name has invalid type {}", req.first().value().type_name());
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let ns = server.readable_ns_or_uuid(&req)?;
    let args = parse(&req)?;
    // Also where nothing will be compared.
    args.collation.map(Collation::parse).transpose()?;
    if args.by_uuid {
        server.check_collection_uuid("count", &req, &ns)?;
    }
    server.instance.metrics.op_counters.command.inc();
    let n = match &server.named(ctx, &ns)? {
        None => {
            server.parse_find(ctx, &ns, None, &args)?;
            0
        }
        Some(Named::View(_)) => server.count_on_view(ctx, &ns, &args).await?,
        Some(Named::Collection(coll)) => {
            if args.collation.is_some() {
                server.parse_find(ctx, &ns, Some(coll), &args)?;
            }
            let all =
                args.filter.is_none_or(RawDoc::is_empty) && args.hint.is_none() && server.reads_latest(ctx);
            let matching = if all && !coll.is_oplog() {
                coll.count()
            } else {
                return reply(server.count_matching(ctx, coll, &args).await?);
            };
            let left = matching.saturating_sub(args.skip);
            args.limit.map_or(left, |limit| left.min(limit))
        }
    };
    server.time(&ns, crate::top::Kind::Command, false, ctx.elapsed());
    reply(n)
}

fn reply(n: u64) -> Result<Reply> {
    let mut r = Reply::new();
    match i32::try_from(n) {
        Ok(n) => r.body.i32("n", n),
        Err(_) => r.body.i64("n", n as i64),
    };
    Ok(r)
}

/// A negative limit counts like a positive one; 0 is none.
fn parse_limit(e: Elem<'_>) -> Result<Option<u64>> {
    if !e.value().is_number() {
        return Err(Error::bad_value("limit value is not a valid number"));
    }
    let n = pando_query::matcher::number::parse_i64(e).map_err(Error::failed_to_parse)?;
    if n == i64::MIN {
        return Err(Error::bad_value("limit value for count cannot be min long"));
    }
    Ok(Some(n.unsigned_abs()).filter(|n| *n > 0))
}

pub(super) fn parse<'a>(req: &Request<'a>) -> Result<FindArgs<'a>> {
    let mut a = FindArgs::default();
    for arg in req.args("count") {
        if arg.name() == "limit" {
            a.limit = parse_limit(arg.elem())?;
            continue;
        }
        const NULLABLE: &[&str] = &["query", "skip", "collation", "fields", "collectionUUID", "queryOptions"];
        if arg.is_absent() && NULLABLE.contains(&arg.name()) {
            continue;
        }
        match arg.name() {
            "query" => a.filter = Some(arg.doc()?),
            "skip" => a.skip = arg.i64_at_least(0)? as u64,
            "hint" => a.hint = Hint::parse(arg.value())?,
            "collation" => a.collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
            "collectionUUID" => {
                arg.check(&Shape::Uuid)?;
                a.by_uuid = true;
            }
            "encryptionInformation" => arg.no_encryption()?,
            "fields" | "queryOptions" | "mirrored" => {}
            _ => return Err(arg.unknown()),
        }
    }
    Ok(a)
}
