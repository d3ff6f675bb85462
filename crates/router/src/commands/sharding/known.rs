//! What this router knows of the cluster: `getShardMap`, `getShardVersion`, `flushRouterConfig`, `isdbgrid`.

use super::super::prelude::*;

pub(in crate::commands) async fn shard_map(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let shards = router.catalog.shards().await?;
    let mut all: Vec<(String, String, Vec<String>)> = shards
        .iter()
        .map(|s| {
            let members = s.monitor.look().members;
            let hosts =
                if members.is_empty() { s.entry.hosts.clone() } else { members.into_keys().collect() };
            (s.entry.id.to_string(), format!("{}/{}", s.entry.set, hosts.join(",")), hosts)
        })
        .collect();
    let config = &router.config.configdb;
    // They may be a shard as well.
    if all.iter().all(|(id, ..)| *id != "config") {
        all.push(("config".to_owned(), config.text(), config.hosts.clone()));
    }
    let mut r = Reply::new();
    r.body.doc("map", |d| all.iter().for_each(|(id, text, _)| _ = d.str(&**id, text)));
    r.body.doc("hosts", |d| {
        for (id, _, hosts) in &all {
            hosts.iter().for_each(|host| _ = d.str(&**host, id));
        }
    });
    r.body.doc("connStrings", |d| all.iter().for_each(|(id, text, _)| _ = d.str(&**text, id)));
    Ok(r)
}

pub(in crate::commands) async fn shard_version(
    router: &Router,
    _: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str("getShardVersion")?)?;
    let route = router.catalog.route(&ns).await?;
    let Some(table) = &route.table else {
        let text = format!("Collection {ns} is not sharded.");
        return Err(Error::new(ErrorCode::NamespaceNotSharded, text));
    };
    let mut r = Reply::new();
    let b = &mut r.body;
    b.timestamp("version", table.placement().timestamp());
    b.object_id("versionEpoch", table.collection.generation.epoch);
    b.timestamp("versionTimestamp", table.collection.generation.timestamp);
    if req.body.get("fullMetadata").is_some_and(|v| v.is_truthy()) {
        b.array("chunks", |a| {
            for chunk in table.chunks.iter() {
                a.array(|pair| _ = pair.raw_doc(chunk.min()).raw_doc(&chunk.max()));
            }
        });
    }
    Ok(r)
}

pub(in crate::commands) async fn flush(router: &Router, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    match req.first().value() {
        Value::String(name) => match name.split_once('.') {
            Some(_) => router.catalog.forget_collection(name),
            None => router.catalog.forget_database(name),
        },
        _ => router.catalog.forget_all(),
    }
    let mut r = Reply::new();
    r.body.bool("flushed", true);
    Ok(r)
}

pub(in crate::commands) async fn is_db_grid(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.i32("isdbgrid", 1).str("hostname", &router.config.host_port());
    Ok(r)
}
