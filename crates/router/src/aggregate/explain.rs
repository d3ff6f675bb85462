//! `explain` of a pipeline in parts: what each shard would do, and what is merged.

use super::run::{Asked, append_part};
use super::wire;
use crate::Router;
use crate::commands::{append_command, append_process};
use crate::remote::call::read_preference;
use crate::remote::envelope;
use pando_base::Result;
use pando_bson::DocBuilder;
use pando_command::{OpCtx, Reply, Request};
use pando_metadata_cache::Target;
use pando_query::stage::Split;
use pando_rpc::Retry;

pub(super) async fn parts(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    asked: &Asked<'_>,
    verbosity: &str,
    split: &Split,
    targets: &[Target],
) -> Result<Reply> {
    let stages = wire::stages(&split.shards.spelled());
    let q = router.query_ctx(ctx, None, asked.args.collation, asked.args.let_vars)?;
    let own = |b: &mut DocBuilder| append_part(b, asked, &stages, &q);
    let body = |target: &Target| envelope::explained(ctx, req, verbosity, target, own);
    let said = router.scatter(ctx, targets, &read_preference(req.body)?, Retry::Idempotent, body).await;
    let mut answers = Vec::with_capacity(said.len());
    for said in said {
        answers.push((said.shard, said.result?));
    }
    let mut r = Reply::new();
    append_process(router, &mut r.body);
    r.body.str("mergeType", "mongos");
    r.body.doc("splitPipeline", |d| {
        d.raw_array("shardsPart", &stages);
        d.raw_array("mergerPart", &split.merger.spelled());
    });
    r.body.doc("shards", |d| {
        for (shard, answer) in &answers {
            d.doc(shard.as_str(), |d| {
                d.str("host", &answer.host);
                for name in ["explainVersion", "stages", "queryPlanner", "executionStats"] {
                    answer.reply.elem(name).into_iter().for_each(|e| _ = d.elem(e));
                }
            });
        }
    });
    append_command(&mut r.body, req);
    Ok(r)
}
