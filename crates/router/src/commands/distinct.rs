//! `distinct`: the different values of what shards find different.

use super::prelude::*;
use crate::remote::call::read_preference;
use crate::remote::stale::Tries;
use pando_base::limits;
use pando_bson::ArrayBuilder;
use pando_bson::keystring::KeyBuilder;
use pando_metadata_cache::{Route, Target};
use pando_query::collation::Collation;
use pando_request::DistinctArgs;
use pando_rpc::Retry;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let args = DistinctArgs::parse(&req)?;
    let mut tries = Tries::default();
    loop {
        let Some(route) = router.catalog.route_if_any(&ns).await? else {
            let mut r = Reply::new();
            r.body.array("values", |_| {});
            return Ok(r);
        };
        match attempt(router, ctx, &req, &route, &args).await {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            Err(e) if e.code == ErrorCode::CommandOnShardedViewNotSupportedOnMongod => {
                return super::views::distinct(router, ctx, &req, &args, &e).await;
            }
            done => return done,
        }
    }
}

async fn attempt(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    route: &Route,
    args: &DistinctArgs<'_>,
) -> Result<Reply> {
    let (table, find) = (route.table.as_deref(), &args.find);
    let matcher = router.condition(ctx, table, find.filter, find.collation, None);
    let targets = route.concerned(matcher.as_ref());
    let body = |target: &Target| envelope::whole(ctx, req, Kind::Read, target);
    let mut replies =
        router.gather(ctx, &targets, &read_preference(req.body)?, Retry::Idempotent, body).await?;
    if let (1, Some((_, reply))) = (replies.len(), replies.pop_if(|_| targets.len() == 1)) {
        return Ok(handed_on(&reply));
    }
    let collation = router.query_ctx(ctx, table, find.collation, None)?.collation;
    let docs: Vec<DocBuf> = replies.into_iter().map(|(_, reply)| reply).collect();
    let mut r = Reply::new();
    r.body.raw_array("values", &united(&docs, &collation)?);
    Ok(r)
}

/// Values of all replies, equal ones once, in their order.
fn united(replies: &[DocBuf], collation: &Option<Arc<Collation>>) -> Result<DocBuf> {
    let mut values = BTreeMap::new();
    let mut key = KeyBuilder::default();
    for reply in replies {
        let list = reply.get("values").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        for e in list {
            key.clear();
            key.append_with(e.value(), Collation::order(collation));
            values.entry(key.bytes().to_vec()).or_insert(e);
        }
    }
    let mut out = ArrayBuilder::new();
    values.values().for_each(|e| _ = out.value(e.value()));
    let out = out.finish();
    match out.byte_len() > limits::BSON_USER_BYTES_MAX {
        true => Err(Error::location(17217, "distinct too big, 16mb cap")),
        false => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::doc;

    #[test]
    fn equal_values_are_told_once() {
        let replies = [doc(r#"{"values": [3, "x", 1]}"#), doc(r#"{"values": [1.0, 2]}"#)];
        let told = united(&replies, &None).unwrap();
        let shown: Vec<String> = told.iter().map(|e| e.value().to_string()).collect();
        assert_eq!(shown, ["1", "2", "3", "\"x\""]);
    }
}
