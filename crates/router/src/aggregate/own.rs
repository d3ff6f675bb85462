//! What somebody sees of its own operations and sessions. Shards see this router ask, who may see those of everybody: whose are wanted
//! is said in the pipeline.

use crate::Router;
use pando_base::Result;
use pando_bson::{ArrayBuilder, DocBuf, RawDoc};
use pando_command::OpCtx;

/// The pipeline that tells only what is the caller's; `None` where it does already, or everybody's is asked for.
pub(crate) fn only_own(router: &Router, ctx: &OpCtx, pipeline: &RawDoc) -> Result<Option<DocBuf>> {
    let Some(who) = router.authority_of_asker(ctx)? else { return Ok(None) };
    let stages: Vec<&RawDoc> = pipeline.iter().filter_map(|e| e.value().as_doc()).collect();
    let Some((first, rest)) = stages.split_first() else { return Ok(None) };
    let Some(source) = first.first() else { return Ok(None) };
    let Some(spec) = source.value().as_doc() else { return Ok(None) };
    let is_on = |name: &str| spec.get(name).is_some_and(|v| v.is_truthy());
    let mut out = ArrayBuilder::new();
    match source.name() {
        // What runs here is looked at here.
        "$currentOp" if !is_on("allUsers") && !is_on("localOps") => {
            out.doc(|d| {
                d.doc("$currentOp", |d| {
                    spec.iter().filter(|e| e.name() != "allUsers").for_each(|e| _ = d.elem(e));
                    d.bool("allUsers", true);
                });
            });
            out.doc(|d| _ = d.doc("$match", |d| _ = d.binary("lsid.uid", 0, &who.owner())));
        }
        "$listSessions" if spec.get("allUsers").is_none() && spec.get("users").is_none() => {
            let Some(user) = who.user() else { return Ok(None) };
            out.doc(|d| {
                d.doc("$listSessions", |d| {
                    spec.iter().for_each(|e| _ = d.elem(e));
                    d.array("users", |a| _ = a.doc(|d| _ = d.str("user", &user.user).str("db", &user.db)));
                });
            });
        }
        _ => return Ok(None),
    }
    rest.iter().for_each(|stage| _ = out.raw_doc(stage));
    Ok(Some(out.finish()))
}
