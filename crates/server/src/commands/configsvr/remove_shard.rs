//! `_configsvrRemoveShard`: a shard leaves, step by step (SH-SHARD-2).

use super::prelude::*;
use pando_config_server::Draining;

const NOTE: &str = "you need to drop or movePrimary these databases";

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let v = req.first().value();
    let Some(which) = v.as_str() else {
        let text = format!("wrong type for field ({}) {} != string", req.name, v.type_name());
        return Err(Error::location(13_111, text));
    };
    let manager = &call.config_server.manager;
    let (name, state) = manager.remove_shard(&call.interrupt, &call.client, which).await?;
    call.settled().await?;
    let mut r = Reply::new();
    append(&mut r.body, &name, state);
    Ok(r)
}

/// How far a shard is on its way out.
pub(super) fn append(b: &mut DocBuilder, name: &str, state: Draining) {
    match state {
        Draining::Started { databases } => {
            b.str("msg", "draining started successfully").str("state", "started").str("shard", name);
            to_move(b, &databases);
        }
        Draining::Ongoing { chunks, jumbo, databases } => {
            b.str("msg", "draining ongoing").str("state", "ongoing");
            b.doc("remaining", |d| {
                d.i64("chunks", chunks).i64("dbs", databases.len() as i64).i64("jumboChunks", jumbo);
            });
            to_move(b, &databases);
        }
        Draining::Completed => {
            b.str("msg", "removeshard completed successfully").str("state", "completed").str("shard", name);
        }
        Draining::PendingRangeDeletions(pending) => {
            b.str("msg", "waiting for pending range deletions").str("state", "pendingRangeDeletions");
            b.i64("pendingRangeDeletions", pending);
        }
    }
}

fn to_move(b: &mut DocBuilder, databases: &[String]) {
    b.str("note", NOTE);
    b.array("dbsToMove", |a| {
        for db in databases {
            a.str(db);
        }
    });
}
