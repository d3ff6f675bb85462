//! Replies of several shards, each under the shard's address (`raw`).

use super::prelude::*;
use crate::remote::own_fields;
use crate::remote::scatter::Said;
use pando_routing::ShardId;

/// The set's name and hosts.
pub(super) fn address(router: &Router, shard: &ShardId) -> String {
    if *shard == ShardId::config() {
        return router.config.configdb.text();
    }
    let shards = router.catalog.registry.shards();
    let of = |s: &pando_fleet::Shard| format!("{}/{}", s.entry.set, s.entry.hosts.join(","));
    shards.get(shard).map_or_else(|| shard.to_string(), of)
}

/// All that was said, or the first error; one that sends its reader elsewhere before others.
pub(super) fn reply(router: &Router, said: Vec<Said>) -> Result<Reply> {
    let stale = |e: &Error| e.code.is(pando_base::codes::class::STALE_ROUTING);
    let mut raw = DocBuilder::new();
    let mut failed: Option<Error> = None;
    for Said { shard, result } in said {
        match result {
            Ok(answer) => {
                raw.doc(&*address(router, &shard), |d| {
                    own_fields(&answer.reply).for_each(|e| _ = d.elem(e));
                    d.f64("ok", 1.0);
                });
            }
            Err(f) if stale(&f.error) => failed = Some(f.error),
            Err(f) => {
                let e = f.error;
                raw.doc(&*address(router, &shard), |d| {
                    d.f64("ok", 0.0).str("errmsg", &e.message).i32("code", e.code.0);
                    d.str("codeName", &e.code.name());
                });
                failed = failed.or(Some(e));
            }
        }
    }
    let raw = raw.finish();
    match failed {
        None => {
            let mut r = Reply::new();
            r.body.raw_doc("raw", &raw);
            Ok(r)
        }
        Some(e) if stale(&e) => Err(e),
        Some(e) => {
            let mut extra = DocBuilder::new();
            if let Ok(own) = RawDoc::validate(&e.extra) {
                extra.elems_of(own);
            }
            extra.raw_doc("raw", &raw);
            Err(e.with_extra(extra.finish().into_bytes()))
        }
    }
}
