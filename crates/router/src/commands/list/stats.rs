//! `dbStats`, `collStats`, `dataSize`: the sums of what shards measure.

use super::super::prelude::*;
use super::super::raw;
use crate::remote::call::read_preference;
use crate::remote::own_fields;
use crate::remote::stale::Tries;
use pando_metadata_cache::Target;
use pando_routing::ShardId;
use pando_rpc::Retry;
use std::collections::BTreeMap;

/// Figures that are added up.
const SUMS: [&str; 14] = [
    "collections",
    "views",
    "objects",
    "dataSize",
    "storageSize",
    "indexes",
    "indexSize",
    "totalSize",
    "count",
    "size",
    "totalIndexSize",
    "freeStorageSize",
    "numOrphanDocs",
    "numObjects",
];

fn sum(replies: &[(ShardId, DocBuf)], name: &str) -> Option<f64> {
    let all: Vec<f64> = replies.iter().filter_map(|(_, r)| r.get(name)?.as_f64()).collect();
    (!all.is_empty()).then(|| all.iter().sum())
}

/// As a whole number where it is one.
fn append_number(b: &mut DocBuilder, name: &str, n: f64) {
    if n.fract() == 0.0 && n.abs() < 9e15 {
        b.i32_or_i64(name, n as i64);
    } else {
        b.f64(name, n);
    }
}

fn append_sums(b: &mut DocBuilder, replies: &[(ShardId, DocBuf)]) {
    for name in SUMS {
        if let Some(n) = sum(replies, name) {
            append_number(b, name, n);
        }
    }
}

pub(in crate::commands) async fn of_database(
    router: &Router,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let shards = router.catalog.shards().await?;
    let internal = matches!(req.db, "admin" | "config");
    let mut targets: Vec<Target> = shards.iter().map(|s| Target::unversioned(s.entry.id.clone())).collect();
    if internal {
        targets = vec![Target::unversioned(ShardId::config())];
    }
    let body = |target: &Target| envelope::whole(ctx, &req, Kind::Plain, target);
    let replies = router.gather(ctx, &targets, &read_preference(req.body)?, Retry::Idempotent, body).await?;
    let mut r = Reply::new();
    r.body.doc("raw", |d| {
        for (shard, reply) in &replies {
            let address = raw::address(router, shard);
            d.doc(&*address, |d| own_fields(reply).for_each(|e| _ = d.elem(e)));
        }
    });
    r.body.str("db", req.db);
    append_sums(&mut r.body, &replies);
    let (objects, bytes) =
        (sum(&replies, "objects").unwrap_or(0.0), sum(&replies, "dataSize").unwrap_or(0.0));
    r.body.f64("avgObjSize", if objects > 0.0 { bytes / objects } else { 0.0 });
    // The same everywhere; a shard without the database does not say it.
    let scale = replies.iter().filter_map(|(_, r)| r.get("scaleFactor")?.as_f64()).fold(1.0, f64::max);
    append_number(&mut r.body, "scaleFactor", scale);
    Ok(r)
}

pub(in crate::commands) async fn of_collection(
    router: &Router,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let ns = match req.first().value() {
        Value::String(full) if req.name == "dataSize" => Namespace::parse(full)?,
        _ if req.name == "dataSize" => req.ns()?,
        _ => req.ns_of_ddl()?,
    };
    let mut tries = Tries::default();
    loop {
        let route = router.catalog.route(&ns).await?;
        let body = |target: &Target| envelope::whole(ctx, &req, Kind::Plain, target);
        let preference = read_preference(req.body)?;
        match router.gather(ctx, &route.owners(), &preference, Retry::Idempotent, body).await {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            Err(e) => return Err(e),
            Ok(replies) if req.name == "dataSize" && route.is_sharded() => return Ok(size_reply(&replies)),
            Ok(replies) => return Ok(collection_reply(&ns, &route, &replies)),
        }
    }
}

/// Of a collection on several shards.
fn size_reply(replies: &[(ShardId, DocBuf)]) -> Reply {
    let mut r = Reply::new();
    for name in ["size", "numObjects", "millis"] {
        append_number(&mut r.body, name, sum(replies, name).unwrap_or(0.0));
    }
    r
}

/// Each index on all shards together.
fn append_index_sizes(b: &mut DocBuilder, replies: &[(ShardId, DocBuf)]) {
    let mut sizes: BTreeMap<&str, f64> = BTreeMap::new();
    for (_, reply) in replies {
        let of_shard = reply.get("indexSizes").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
        for e in of_shard {
            *sizes.entry(e.name()).or_default() += e.value().as_f64().unwrap_or(0.0);
        }
    }
    b.doc("indexSizes", |d| sizes.iter().for_each(|(name, size)| append_number(d, name, *size)));
}

fn collection_reply(
    ns: &Namespace,
    route: &pando_metadata_cache::Route,
    replies: &[(ShardId, DocBuf)],
) -> Reply {
    let mut r = Reply::new();
    let b = &mut r.body;
    b.bool("sharded", route.is_sharded());
    if let ([(shard, reply)], false) = (replies, route.is_sharded()) {
        b.str("primary", shard.as_str());
        own_fields(reply).for_each(|e| _ = b.elem(e));
        return r;
    }
    b.str("ns", ns.as_str());
    append_sums(b, replies);
    let (n, bytes) = (sum(replies, "count").unwrap_or(0.0), sum(replies, "size").unwrap_or(0.0));
    append_number(b, "avgObjSize", if n > 0.0 { (bytes / n).trunc() } else { 0.0 });
    // What is the same everywhere.
    for name in ["capped", "nindexes", "scaleFactor"] {
        replies.iter().find_map(|(_, r)| r.elem(name)).into_iter().for_each(|e| _ = b.elem(e));
    }
    append_index_sizes(b, replies);
    let chunks = route.table.as_ref().map_or(0, |table| table.chunks.len());
    b.i32_or_i64("nchunks", chunks as i64);
    b.doc("shards", |d| {
        for (shard, reply) in replies {
            d.doc(shard.as_str(), |d| own_fields(reply).for_each(|e| _ = d.elem(e)));
        }
    });
    r
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::{doc, route, table};

    #[test]
    fn figures_of_shards_are_added_up() {
        let replies = [
            (ShardId::new("a"), doc(r#"{"count": 2, "size": 20, "nindexes": 1, "ok": 1}"#)),
            (ShardId::new("b"), doc(r#"{"count": 3, "size": 31, "nindexes": 1, "ok": 1}"#)),
        ];
        let route = route(Some(table(&[("a", None), ("b", Some(0))])));
        let mut r = collection_reply(&route.ns, &route, &replies);
        let told = std::mem::take(&mut r.body).into_buffer();
        let told = RawDoc::trusted(&told[pando_command::reply::HEADROOM..]).to_buf();
        let n = |path: &str| told.get_path(path).and_then(|v| v.as_i64());
        assert_eq!(
            (n("count"), n("size"), n("avgObjSize"), n("nindexes")),
            (Some(5), Some(51), Some(10), Some(1))
        );
        assert_eq!((n("shards.b.count"), n("shards.b.ok")), (Some(3), None));
    }
}
