//! `fullDocument: "updateLookup"`: what the document of an event looks like now, which may be on another shard than the event.

use crate::remote::Shards;
use crate::remote::stale::Tries;
use pando_base::{Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_command::OpCtx;
use pando_metadata_cache::Target;
use pando_monitor::ReadPreference;
use pando_rpc::Retry;

/// The event with `fullDocument`; as it is where it has one, or tells of no update.
pub(super) async fn with_image(shards: &Shards, ctx: &OpCtx, event: DocBuf) -> Result<DocBuf> {
    let text = |path: &str| event.get_path(path).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    if text("operationType") != "update" || event.elem("fullDocument").is_some() {
        return Ok(event);
    }
    let Some(key) = event.get("documentKey").and_then(|v| v.as_doc()) else { return Ok(event) };
    let ns = Namespace::unchecked(&text("ns.db"), &text("ns.coll"));
    let found = find(shards, ctx, &ns, key, event.get("clusterTime")).await?;
    let mut b = DocBuilder::with_capacity(event.byte_len() + 64);
    b.elems_of(&event);
    match found {
        Some(doc) => b.raw_doc("fullDocument", &doc),
        None => b.null("fullDocument"),
    };
    Ok(b.finish())
}

async fn find(
    shards: &Shards,
    ctx: &OpCtx,
    ns: &Namespace,
    key: &RawDoc,
    after: Option<Value<'_>>,
) -> Result<Option<DocBuf>> {
    let mut tries = Tries::default();
    loop {
        let Some(route) = shards.catalog.route_if_any(ns).await? else { return Ok(None) };
        let matcher = shards.condition(ctx, route.table.as_deref(), Some(key), None, None);
        let targets = route.concerned(matcher.as_ref());
        let body = |target: &Target| {
            let mut b = DocBuilder::new();
            b.str("find", ns.coll()).raw_doc("filter", key).i64("limit", 1).bool("singleBatch", true);
            b.doc("readConcern", |d| {
                d.str("level", "majority");
                after.into_iter().for_each(|t| _ = d.value("afterClusterTime", t));
            });
            target.append(&mut b);
            b.str("$db", ns.db());
            b.finish()
        };
        let primary = ReadPreference::default();
        match shards.gather(ctx, &targets, &primary, Retry::Idempotent, body).await {
            Err(e) if tries.again(shards, ctx, &route, &e).await => {}
            Err(e) => return Err(e),
            Ok(replies) => {
                let first = |reply: &DocBuf| {
                    let batch = reply.get_path("cursor.firstBatch")?.as_array()?;
                    batch.first()?.value().as_doc().map(RawDoc::to_buf)
                };
                return Ok(replies.iter().find_map(|(_, reply)| first(reply)));
            }
        }
    }
}
