//! `shardCollection`: the primary shard makes chunks of a collection, which is created if there is none.

use super::super::define::on_primary::OnPrimary;
use super::super::prelude::*;
use pando_audit::Event;
use pando_request::ShardCollectionArgs;
use pando_routing::ShardKey;
use pando_rpc::Retry;

/// What is handed on as it came, beside the key.
const OPTIONS: [&str; 8] = [
    "unique",
    "numInitialChunks",
    "presplitHashedZones",
    "collation",
    "timeseries",
    "collectionUUID",
    "implicitlyCreateIndex",
    "enforceUniquenessCheck",
];

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str("shardCollection")?)?;
    let args = ShardCollectionArgs::parse(&req)?;
    ShardKey::parse(args.key)?;
    check_database(ns.db())?;
    let name = "_shardsvrCreateCollection";
    let arguments = |b: &mut DocBuilder| {
        b.str(name, ns.coll()).raw_doc("shardKey", args.key);
        for option in OPTIONS {
            req.body.elem(option).into_iter().for_each(|e| _ = b.elem(e));
        }
    };
    let within = Request { db: ns.db(), ..req };
    let on = OnPrimary { ns: ns.clone(), name, creates: true, retry: Retry::Idempotent };
    on.run_with(router, ctx, &within, arguments).await?;
    let unique = req.body.get("unique").is_some_and(|v| v.is_truthy());
    ctx.client.audit(|| Event::shard_collection(ns.as_str(), args.key, unique));
    let mut r = Reply::new();
    r.body.str("collectionsharded", ns.as_str());
    Ok(r)
}

/// What config servers hold, and what belongs to each set, lies there alone (SH-CAT-1).
fn check_database(db: &str) -> Result<()> {
    let text = match db {
        "config" => "only special collections in the config db may be sharded".to_owned(),
        "admin" | "local" => format!("can't shard collections in the {db} db"),
        _ => return Ok(()),
    };
    Err(Error::new(ErrorCode::IllegalOperation, text))
}
