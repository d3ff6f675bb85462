//! Entries into this node's log, at their own timestamps (the first half of R-APPLY-14).
//!
//! Everything that waits is appended at once; the flusher's next sync makes it durable (group commit). It is asked for
//! here while somebody waits for positions, and by the reporter otherwise. Whoever follows this node may fetch an entry
//! as soon as it is written. A delayed member writes an entry only when it is old enough (R-APPLY-3), so that neither its
//! data nor its acknowledgements are ahead of the delay.

use crate::data::progress::Position;
use crate::data::queue::{Chunk, Queue};
use crate::data::{Deps, Stop};
use pando_base::{Result, limits};
use std::sync::Arc;
use std::time::Duration;

pub(crate) async fn run(deps: Deps, stop: Stop, from: Arc<Queue>, to: Arc<Queue>) {
    let mut writer = Writer { deps, stop, to };
    while let Some(chunks) = from.take_all().await {
        let delayed = !writer.deps.upper.delay().is_zero();
        let goes_on = if delayed { writer.when_due(chunks).await } else { writer.at_once(chunks).await };
        if !goes_on {
            break;
        }
    }
    writer.to.close();
}

struct Writer {
    deps: Deps,
    stop: Stop,
    to: Arc<Queue>,
}

impl Writer {
    /// False when nothing more is to be written.
    async fn at_once(&mut self, chunks: impl IntoIterator<Item = Arc<Chunk>>) -> bool {
        let chunks: Vec<_> = chunks.into_iter().collect();
        if let Err(e) = write(&self.deps, chunks.iter()) {
            self.deps.upper.fatal("The oplog entries of the sync source cannot be written", &e);
            return false;
        }
        for chunk in chunks {
            if !self.to.push(chunk).await {
                return false;
            }
        }
        true
    }

    /// What is not due when a stop is asked for is forgotten: it can be fetched again.
    async fn when_due(&mut self, chunks: impl IntoIterator<Item = Arc<Chunk>>) -> bool {
        for chunk in chunks {
            let mut rest = &chunk.entries[..];
            while let Some(next) = rest.first() {
                let old_enough = self.deps.env.clock.wall_ms() - self.deps.upper.delay().as_millis() as i64;
                let due = rest.iter().take_while(|e| e.wall <= old_enough).count();
                if due == 0 {
                    // The delay may be changed meanwhile.
                    let left = next.wall.saturating_sub(old_enough).clamp(1, limits::SECONDARY_DELAY_LOOK_MS);
                    let pause = self.deps.env.clock.sleep(Duration::from_millis(left as u64));
                    if self.stop.unless_asked(pause).await.is_none() {
                        return false;
                    }
                    continue;
                }
                let part = Chunk { bytes: chunk.bytes.clone(), entries: rest[..due].to_vec() };
                if !self.at_once([Arc::new(part)]).await {
                    return false;
                }
                rest = &rest[due..];
            }
        }
        true
    }
}

// tour: apply 3/9
/// Appends chunks and lets oplog readers see them.
pub(crate) fn write<'a>(deps: &Deps, chunks: impl Iterator<Item = &'a Arc<Chunk>> + Clone) -> Result<()> {
    let Some(last) = chunks.clone().last().and_then(|c| c.entries.last()) else { return Ok(()) };
    let log = deps.catalog.storage().log();
    let entries =
        chunks.flat_map(|c| c.entries.iter().map(|e| (e.op_time.ts, c.bytes.part(e.at as usize..e.end()))));
    log.append_foreign(entries)?;
    log.publish_written(last.op_time.ts);
    deps.progress.wrote(Position { op_time: last.op_time, wall: last.wall });
    if deps.progress.positions_awaited(deps.env.clock.mono()) {
        log.ask_flush(last.op_time.ts);
    }
    deps.upper.progressed();
    Ok(())
}
