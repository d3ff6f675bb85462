//! `aggregate`: a pipeline of stages.

use super::prelude::*;
use crate::aggregate::run::{Asked, run as carry_out};
use crate::aggregate::{change_stream, distribution, own};
use pando_query::stage::{check_in_transaction, first_look};
use pando_request::AggregateArgs;
use pando_request::read::read_concerns;

/// The collection, or the stand-in for `aggregate: 1`.
pub(super) fn target(req: &Request<'_>) -> Result<Namespace> {
    match req.first().value() {
        Value::String(_) => req.ns(),
        v if v.is_number() && pando_bson::compare::cmp_values(v, Value::Int32(1)).is_eq() => {
            Ok(Namespace::unchecked(req.db, "$cmd.aggregate"))
        }
        v if v.is_number() => Err(Error::failed_to_parse(
            "Invalid command format: the 'aggregate' field must specify a collection name or 1",
        )),
        v => Err(Error::type_mismatch(format!("collection name has invalid type: {}", v.type_name()))),
    }
}

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = target(&req)?;
    let args = AggregateArgs::parse(&req)?;
    first_look(args.pipeline, Some(req.db))?;
    ctx.arguments_read()?;
    if !args.explain {
        read_concerns::check(ctx, args.pipeline)?;
    }
    if ctx.in_txn() {
        check_in_transaction(args.pipeline)?;
    }
    let told = distribution::told(router, ctx, &ns, args.pipeline).await?;
    let args = match &told {
        Some(pipeline) => AggregateArgs { pipeline, ..args },
        None => args,
    };
    let own = own::only_own(router, ctx, args.pipeline)?;
    let args = match &own {
        Some(pipeline) => AggregateArgs { pipeline, ..args },
        None => args,
    };
    if let Some(spec) = change_stream::spec_of(args.pipeline).filter(|_| !args.explain) {
        change_stream::check_place(&ns, spec)?;
        return change_stream::run(router, ctx, &req, &ns, &args, spec).await;
    }
    let explains = args.explain.then(|| "queryPlanner".to_owned());
    let asked = Asked { named: ns.clone(), ns, args, explains };
    match carry_out(router, ctx, &req, &asked).await {
        Err(e) if e.code == ErrorCode::CommandOnShardedViewNotSupportedOnMongod => {
            super::views::aggregate(router, ctx, &req, &asked, &e).await
        }
        done => done,
    }
}
