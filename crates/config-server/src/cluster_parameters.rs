//! Parameters of the whole cluster: a set that becomes a shard takes them over first.

use crate::manager::CatalogManager;
use crate::metadata::ns;
use pando_base::{Result, Timestamp};
use pando_bson::{DocBuilder, Value};

/// There is one.
const NAME: &str = "changeStreamOptions";

impl CatalogManager {
    async fn has_parameters(&self, host: &str) -> Result<bool> {
        let mut b = DocBuilder::new();
        b.str("getClusterParameter", NAME).str("$db", "admin");
        let reply = self.node.call(host, &b.finish()).await?;
        let found = reply.get("clusterParameters").and_then(|v| v.as_array()).and_then(|list| list.first());
        let time = found.and_then(|e| e.value().as_doc()?.get("clusterParameterTime"));
        Ok(matches!(time, Some(Value::Timestamp(time)) if time != Timestamp::ZERO))
    }
    /// Has the set use what the cluster does, whatever was set in it by itself.
    pub(crate) async fn hand_on_parameters(&self, host: &str, shard: &str) -> Result<()> {
        let kept = self.internal.named(&ns("clusterParameters"), NAME)?;
        let time = kept.as_ref().and_then(|doc| match doc.get("clusterParameterTime") {
            Some(Value::Timestamp(time)) => Some(time),
            _ => None,
        });
        // Only where there is something to take away.
        if kept.is_none() && !self.has_parameters(host).await? {
            return Ok(());
        }
        let number = self.node.number("a shard takes over parameters", shard).await?;
        let mut b = DocBuilder::new();
        b.doc("_shardsvrSetClusterParameter", |d| match &kept {
            None => _ = d.null(NAME),
            Some(kept) => {
                let is_value = |name: &str| !matches!(name, "_id" | "clusterParameterTime");
                d.doc(NAME, |d| {
                    kept.iter().filter(|e| is_value(e.name())).for_each(|e| _ = d.elem(e));
                });
            }
        });
        b.timestamp("clusterParameterTime", time.unwrap_or(Timestamp::ZERO)).timestamp("timestamp", number);
        b.doc("writeConcern", |wc| _ = wc.str("w", "majority")).str("$db", "admin");
        self.node.call(host, &b.finish()).await.map(drop)
    }
}
