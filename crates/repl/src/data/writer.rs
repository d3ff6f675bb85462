//! Entries into this node's log, at their own timestamps (the first half of R-APPLY-14).
//!
//! Everything that waits is appended at once; the flusher's next sync makes it durable (group commit). Whoever
//! follows this node may fetch an entry as soon as it is written.

use crate::data::Deps;
use crate::data::progress::Position;
use crate::data::queue::{Chunk, Queue};
use pando_base::Result;
use std::sync::Arc;

pub(crate) async fn run(deps: Deps, from: Arc<Queue>, to: Arc<Queue>) {
    while let Some(chunks) = from.take_all().await {
        if let Err(e) = write(&deps, chunks.iter()) {
            deps.upper.fatal("The oplog entries of the sync source cannot be written", &e);
            break;
        }
        for chunk in chunks {
            if !to.push(chunk).await {
                return;
            }
        }
    }
    to.close();
}

/// Appends chunks and lets oplog readers see them.
pub(crate) fn write<'a>(deps: &Deps, chunks: impl Iterator<Item = &'a Arc<Chunk>> + Clone) -> Result<()> {
    let Some(last) = chunks.clone().last().and_then(|c| c.entries.last()) else { return Ok(()) };
    let log = deps.catalog.storage().log();
    let entries =
        chunks.flat_map(|c| c.entries.iter().map(|e| (e.op_time.ts, c.bytes.part(e.at as usize..e.end()))));
    log.append_foreign(entries)?;
    log.publish_written(last.op_time.ts);
    deps.progress.wrote(Position { op_time: last.op_time, wall: last.wall });
    log.ask_flush(last.op_time.ts);
    deps.upper.progressed();
    Ok(())
}
