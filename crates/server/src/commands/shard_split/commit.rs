//! `commitShardSplit {migrationId, recipientSetName, recipientTagName, tenantIds}`: tenants move to a set of their own (SV-CMD-1).

use super::prelude::*;
use super::{TenantOperations, decision};
use pando_base::{TenantId, Uuid};
use pando_command::request::missing;
use pando_tenants::{Kind, Operation};
use pando_workflows::shard_split;
use std::collections::BTreeSet;

struct Args<'a> {
    id: Uuid,
    tenants: Vec<&'a str>,
    tag: &'a str,
    set: &'a str,
}

fn parse<'a>(req: &Request<'a>) -> Result<Args<'a>> {
    let (mut id, mut tenants, mut tag, mut set) = (None, None, None, None);
    for arg in req.args(req.name) {
        match arg.name() {
            "migrationId" => id = Some(Uuid(arg.uuid()?)),
            "recipientSetName" => set = Some(arg.str()?),
            "recipientTagName" => tag = Some(arg.str()?),
            "tenantIds" => {
                let list: Option<Vec<&str>> = arg.array()?.iter().map(|e| e.value().as_str()).collect();
                tenants = Some(list.ok_or_else(|| arg.wrong_type(&["array of strings"]))?);
            }
            _ => return Err(arg.unknown()),
        }
    }
    let none = |name: &str| missing(req.name, name);
    let args = Args {
        id: id.ok_or_else(|| none("migrationId"))?,
        tenants: tenants.ok_or_else(|| none("tenantIds"))?,
        tag: tag.ok_or_else(|| none("recipientTagName"))?,
        set: set.ok_or_else(|| none("recipientSetName"))?,
    };
    let mut known = BTreeSet::new();
    for tenant in &args.tenants {
        TenantId::parse(tenant)?;
        if !known.insert(*tenant) {
            return Err(Error::bad_value(format!("tenantIds has '{tenant}' twice")));
        }
    }
    if args.tag.is_empty() || args.set.is_empty() {
        return Err(Error::bad_value("recipientTagName and recipientSetName must not be empty"));
    }
    Ok(args)
}

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let splits = TenantOperations::of(server, &req)?;
    let args = parse(&req)?;
    let state = shard_split::begin(&args.id, &args.tenants, args.tag, args.set, splits.set());
    let instance = match splits.find(ctx, shard_split::SERVICE, &args.id).await? {
        // Called off before anybody had begun it.
        Some(there) if shard_split::is_nobodys(&there.state()) => there,
        there => {
            if there.is_none() {
                // Otherwise it would be told by an operation that aborts.
                splits.tenants.blockers.may_begin(&Operation::parse(Kind::ShardSplit, &state)?)?;
            }
            splits.start(ctx, shard_split::SERVICE, &state).await?
        }
    };
    ctx.will_write();
    match decision(ctx, &instance).await? {
        None => {
            let mut r = Reply::new();
            r.body.str("state", "committed");
            Ok(r)
        }
        Some(why) => {
            let mut extra = DocBuilder::new();
            extra.str("state", "aborted").doc("abortReason", |d| {
                d.i32("code", why.code.0).str("codeName", &why.code.name()).str("errmsg", &why.message);
            });
            let text = format!("the shard split was aborted :: caused by :: {why}");
            Err(Error::new(ErrorCode::CommandFailed, text).with_extra(extra.finish().into_bytes()))
        }
    }
}
