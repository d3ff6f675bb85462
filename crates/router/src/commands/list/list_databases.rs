//! `listDatabases`: those of all shards together, and the config servers' own.

use super::super::prelude::*;
use pando_auth::{Action, Authority};
use pando_bson::ArrayBuilder;
use pando_metadata_cache::Target;
use pando_monitor::ReadPreference;
use pando_query::QueryCtx;
use pando_query::matcher::{Matcher, Place};
use pando_request::ListDatabasesArgs;
use pando_routing::ShardId;
use pando_rpc::Retry;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A database on several shards.
#[derive(Default, Debug, PartialEq)]
struct Sum {
    bytes: i64,
    full: bool,
    shards: BTreeMap<String, i64>,
}

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    ListDatabasesArgs::parse(&req)?;
    ctx.arguments_read()?;
    let name_only = req.body.get("nameOnly").is_some_and(|v| v.is_truthy());
    let shards = router.catalog.shards().await?;
    let mut targets: Vec<Target> = shards.iter().map(|s| Target::unversioned(s.entry.id.clone())).collect();
    // They may be a shard as well.
    if targets.iter().all(|target| target.shard != ShardId::config()) {
        targets.push(Target::unversioned(ShardId::config()));
    }
    let primary = ReadPreference::default();
    // The whole is filtered, not its parts.
    let filter = req.body.get("filter").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
    let matcher = Matcher::parse_in(Place::Document, filter, &QueryCtx::default())?;
    let body = |target: &Target| {
        let mut b = DocBuilder::with_capacity(256);
        b.elem(req.first());
        for name in ["nameOnly", "authorizedDatabases"] {
            req.body.elem(name).into_iter().for_each(|e| _ = b.elem(e));
        }
        envelope::append(&mut b, ctx, &req, Kind::Plain, target);
        b.finish()
    };
    let replies = router.gather(ctx, &targets, &primary, Retry::Idempotent, body).await?;
    let (mut total, mut shown) = (0, ArrayBuilder::new());
    let own = own_only(router, ctx, req.body.get("authorizedDatabases"))?;
    let is_shown = |name: &String| own.as_ref().is_none_or(|who| who.has_anything_in(name));
    for (name, sum) in summed(&replies).iter().filter(|(name, _)| is_shown(name)) {
        let row = row(name, sum, name_only);
        if matcher.matches(&row)? {
            total += sum.bytes;
            shown.raw_doc(&row);
        }
    }
    let mut r = Reply::new();
    r.body.raw_array("databases", &shown.finish());
    if !name_only {
        r.body.i64("totalSize", total).i64("totalSizeMb", total / (1 << 20));
    }
    Ok(r)
}

/// Who sees nothing but the databases in which it may do something.
fn own_only(router: &Router, ctx: &OpCtx, authorized: Option<Value<'_>>) -> Result<Option<Arc<Authority>>> {
    let Some(who) = router.authority_of_asker(ctx)? else { return Ok(None) };
    let wants_own = authorized.is_some_and(|v| v.is_truthy());
    let sees_all = who.may_on_cluster(Action::ListDatabases) && !wants_own;
    Ok(Some(who).filter(|_| !sees_all))
}

fn row(name: &str, sum: &Sum, name_only: bool) -> DocBuf {
    let mut d = DocBuilder::new();
    d.str("name", name);
    if !name_only {
        d.i64("sizeOnDisk", sum.bytes).bool("empty", !sum.full);
        d.doc("shards", |s| sum.shards.iter().for_each(|(id, n)| _ = s.i64(id, *n)));
    }
    d.finish()
}

/// `admin` and `config` are the config servers' alone, `local` is everybody's own.
fn summed(replies: &[(ShardId, DocBuf)]) -> BTreeMap<String, Sum> {
    let mut all: BTreeMap<String, Sum> = BTreeMap::new();
    for (shard, reply) in replies {
        let list = reply.get("databases").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        for db in list.iter().filter_map(|e| e.value().as_doc()) {
            let name = db.get("name").and_then(|v| v.as_str()).unwrap_or_default();
            let of_config = matches!(name, "admin" | "config");
            if name == "local" || (of_config && *shard != ShardId::config()) {
                continue;
            }
            let bytes = db.get("sizeOnDisk").and_then(|v| v.as_i64()).unwrap_or(0);
            let sum = all.entry(name.to_owned()).or_default();
            sum.bytes += bytes;
            sum.full |= !db.get("empty").is_some_and(|v| v.is_truthy());
            *sum.shards.entry(shard.to_string()).or_default() += bytes;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::doc;

    #[test]
    fn a_database_is_the_sum_of_its_parts_and_internal_ones_are_the_config_servers() {
        let of = |shard: &str, text: &str| (ShardId::new(shard), doc(text));
        let all = summed(&[
            of(
                "a",
                r#"{"databases": [{"name": "d", "sizeOnDisk": 5}, {"name": "config", "sizeOnDisk": 9}]}"#,
            ),
            of("b", r#"{"databases": [{"name": "d", "sizeOnDisk": 7}, {"name": "local", "sizeOnDisk": 9}]}"#),
            of("config", r#"{"databases": [{"name": "config", "sizeOnDisk": 3}]}"#),
        ]);
        assert_eq!(all.keys().collect::<Vec<_>>(), ["config", "d"]);
        assert_eq!((all["d"].bytes, all["d"].shards.len(), all["config"].bytes), (12, 2, 3));
    }
}
