//! What the balancer does with a chunk that its shard has refused to move because it is too large (SH-MIG-19, SYS-245): it is split where its
//! shard finds a place, and marked where it finds none, so that the next rounds pass it over.

use super::ConfigServer;
use pando_access::Uninterrupted;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_config_server::{Move, Split};
use pando_env::Component;

/// Whether a part of the range could have moved.
pub(super) fn says_so(e: &Error) -> bool {
    // The second one is told of what was written to the range while it was moved.
    matches!(e.code, ErrorCode::ChunkTooBig | ErrorCode::ExceededMemoryLimit)
}

impl ConfigServer {
    pub(super) async fn split_or_mark(&self, one: &Move) -> Result<()> {
        let m = &one.migration;
        let points = self.split_points(one).await?;
        if !points.is_empty() {
            let split = Split {
                ns: m.ns.clone(),
                epoch: one.epoch,
                timestamp: None,
                min: m.min.clone(),
                max: m.max.clone(),
                points,
                shard: m.from.clone(),
            };
            return self.manager.split(&Uninterrupted, "", &split).await.map(drop);
        }
        self.replication.env().log.info(Component::Sharding, 21_873, "Marking chunk as jumbo", |a| {
            a.str("namespace", &m.ns).data("min", &*m.min).data("max", &*m.max);
        });
        self.manager.mark_jumbo(&Uninterrupted, &m.ns, one.epoch, (&m.min, &m.max)).await
    }
    /// Where the shard would split the chunk so that its pieces may move.
    async fn split_points(&self, one: &Move) -> Result<Vec<DocBuf>> {
        let m = &one.migration;
        let mut b = DocBuilder::new();
        b.str("splitVector", &m.ns).raw_doc("keyPattern", &one.key).raw_doc("min", &m.min);
        b.raw_doc("max", &m.max).i64("maxChunkSizeBytes", one.max_bytes.cast_signed()).str("$db", "admin");
        let reply = self.on_shard(&m.from, &b.finish()).await?;
        let keys = reply.get("splitKeys").and_then(|v| v.as_array());
        let keys = keys.ok_or_else(|| Error::internal(format!("{} tells no points: {reply}", m.from)))?;
        let keys = keys.iter().filter_map(|e| e.value().as_doc().map(RawDoc::to_buf));
        Ok(keys.take(limits::SPLIT_POINTS_MAX).collect())
    }
}
