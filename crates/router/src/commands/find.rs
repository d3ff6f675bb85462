//! `find`: the shards that a condition concerns, their results merged.

use super::prelude::*;
use crate::cursors::merge::{Order, Strip};
use crate::cursors::reply::empty;
use crate::cursors::{Open, Remotes, RouterCursor, Shape};
use crate::remote::call::read_preference;
use crate::remote::stale::Tries;
use pando_metadata_cache::{Route, Target};
use pando_query::sort::SortPattern;
use pando_request::FindArgs;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = FindArgs::parse(req.args("FindCommandRequest"), ctx.api.strict)?;
    let ns = req.ns()?;
    ns.check_readable()?;
    router.instance.metrics.op_counters.query.inc();
    ctx.debug(|d| {
        d.op = "query";
        d.ns = ns.to_string();
    });
    let mut tries = Tries::default();
    loop {
        let Some(route) = router.catalog.route_if_any(&ns).await? else { return Ok(empty(&ns)) };
        match attempt(router, ctx, &req, &route, &args).await {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            Err(e) if e.code == ErrorCode::CommandOnShardedViewNotSupportedOnMongod => {
                return super::views::find(router, ctx, &req, &args, &e).await;
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
    args: &FindArgs<'_>,
) -> Result<Reply> {
    let table = route.table.as_deref();
    let matcher = router.condition(ctx, table, args.filter, args.collation, args.let_vars);
    let targets = route.concerned(matcher.as_ref());
    // A sort that is none is told of by the shards, and so is it that what is not capped cannot be tailed.
    let plan = match targets.len() {
        0 | 1 => Plan::default(),
        _ => Plan::several(args).unwrap_or_default(),
    };
    let body = |target: &Target| {
        let mut b = DocBuilder::with_capacity(req.body.byte_len() + 256);
        b.elem(req.first());
        plan.told(args).spell(&mut b);
        envelope::append(&mut b, ctx, req, Kind::Read, target);
        b.finish()
    };
    let preference = read_preference(req.body)?;
    let (remotes, first, partial) =
        Remotes::open(router, ctx, &targets, &preference, args.allow_partial, body).await?;
    let shape = Shape {
        order: plan.order,
        strips: plan.strips,
        skip: plan.skip,
        limit: plan.limit,
        tailable: args.tailable,
        ..Shape::default()
    };
    let cursor = RouterCursor::new(remotes, first, shape)?;
    let open = Open {
        batch_size: args.batch_size,
        no_timeout: args.no_cursor_timeout,
        await_data: args.await_data,
        single_batch: args.single_batch,
        partial,
        ..Open::new(route.ns.clone())
    };
    router.begin(ctx, req, open, cursor).await
}

/// What each of several shards is told, and what is left to do with what they send.
#[derive(Default)]
struct Plan {
    merges: bool,
    order: Option<Order>,
    strips: Strip,
    skip: u64,
    limit: Option<u64>,
    /// With the key that rows are merged by.
    projection: Option<DocBuf>,
}

impl Plan {
    fn several(args: &FindArgs<'_>) -> Result<Plan> {
        let mut plan = Plan { merges: true, skip: args.skip, limit: args.limit, ..Plan::default() };
        let (order, meta) = match args.sort.filter(|s| s.elem("$natural").is_none()) {
            Some(sort) => (Order::carried(&SortPattern::parse(sort)?), "sortKey"),
            // What is near comes in that order by itself.
            None if args.sort.is_none() && args.filter.is_some_and(asks_what_is_near) => {
                (Order::distance(), "geoNearDistance")
            }
            None => return Ok(plan),
        };
        plan.order = Some(order);
        plan.strips = Strip::SortKey;
        let mut b = DocBuilder::new();
        b.elems_of(args.projection.unwrap_or(RawDoc::empty()));
        b.doc("$sortKey", |d| {
            d.str("$meta", meta);
        });
        plan.projection = Some(b.finish());
        Ok(plan)
    }
    /// Nobody has to send more than all that is wanted; what is passed over is known here only.
    fn told<'a>(&'a self, args: &FindArgs<'a>) -> FindArgs<'a> {
        if !self.merges {
            return args.clone();
        }
        let limit = args.limit.map(|n| n.saturating_add(args.skip));
        let projection = self.projection.as_deref().or(args.projection);
        FindArgs { skip: 0, limit, projection, single_batch: false, ..args.clone() }
    }
}

/// Whether a condition, or one within it, is on how near something is.
fn asks_what_is_near(filter: &RawDoc) -> bool {
    filter.iter().any(|e| {
        matches!(e.name(), "$near" | "$nearSphere")
            || match e.value() {
                Value::Document(d) | Value::Array(d) => asks_what_is_near(d),
                _ => false,
            }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::doc;

    #[test]
    fn several_shards_are_told_what_is_wanted_in_all_and_to_send_what_rows_are_merged_by() {
        let (sort, projection) = (doc(r#"{"a": -1}"#), doc(r#"{"x": 1}"#));
        let args = FindArgs {
            sort: Some(&sort),
            projection: Some(&projection),
            skip: 3,
            limit: Some(4),
            ..FindArgs::default()
        };
        let plan = Plan::several(&args).unwrap();
        let told = plan.told(&args);
        assert_eq!((told.skip, told.limit, plan.skip, plan.limit), (0, Some(7), 3, Some(4)));
        assert_eq!(told.projection, Some(&*doc(r#"{"x": 1, "$sortKey": {"$meta": "sortKey"}}"#)));
        let near = doc(r#"{"$and": [{"p": {"$near": [1, 2]}}]}"#);
        let plan = Plan::several(&FindArgs { filter: Some(&near), ..FindArgs::default() }).unwrap();
        assert!(matches!(plan.order, Some(Order::Distance { .. })));
        let alone = Plan::default();
        assert_eq!(alone.told(&args).skip, 3);
    }
}
