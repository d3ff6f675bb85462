//! What this shard has heard of the cluster's times, kept for whoever is primary next (T-CC-11, SYS-224):
//! `config.vectorClock {_id: "vectorClockState", configTime, topologyTime}`.
//!
//! Config servers are read at any member that has reached the newest time that the reader has heard of. A process that has just begun
//! has heard of none, and may be told what was so before this shard's last commit: that it still owns what it has given away, or that a
//! collection is not sharded. So what the config servers have answered is written down before the workflow goes on that has asked, and read
//! at the start and at each step-up before anybody is asked.

use super::Sharding;
use pando_access::{InternalCollections, Uninterrupted};
use pando_base::{Namespace, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

const ID: &str = "vectorClockState";

fn ns() -> Namespace {
    Namespace::unchecked("config", "vectorClock")
}
fn time(doc: &RawDoc, name: &str) -> Option<Timestamp> {
    match doc.get(name) {
        Some(Value::Timestamp(at)) => Some(at),
        _ => None,
    }
}
fn document(config: Timestamp, topology: Timestamp) -> DocBuf {
    let mut b = DocBuilder::new();
    b.str("_id", ID).timestamp("configTime", config).timestamp("topologyTime", topology);
    b.finish()
}

impl Sharding {
    /// Writes down what this node has heard; on a majority with the next checkpoint.
    pub(crate) async fn keep_times(&self, internal: &InternalCollections) -> Result<()> {
        let (config, topology) = (self.times.config(), self.times.topology());
        let kept = internal.named(&ns(), ID)?.and_then(|doc| time(&doc, "configTime"));
        if kept < Some(config) {
            internal.put(&Uninterrupted, &ns(), &document(config, topology)).await?;
        }
        Ok(())
    }
    /// Takes in what was kept.
    pub(crate) fn remember_times(&self, internal: &InternalCollections) -> Result<()> {
        if let Some(kept) = internal.named(&ns(), ID)? {
            self.times.advance(time(&kept, "configTime"), time(&kept, "topologyTime"));
        }
        Ok(())
    }
}
