//! What is blocked of users in the whole cluster (SYS-265): a set that becomes a shard takes it over first.

use crate::manager::CatalogManager;
use crate::metadata::ns;
use crate::mutexes::Subject;
use pando_access::{Guard, Interrupt};
use pando_base::{Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder};

impl CatalogManager {
    /// While it is held no set becomes a shard.
    pub async fn lock_membership(&self, interrupt: &dyn Interrupt) -> Result<Guard> {
        self.lock(interrupt, Subject::Membership).await
    }
    /// Has the set block what shards block, and nothing else, whatever it has blocked by itself, or as a shard before.
    pub(crate) async fn hand_on_blocks(&self, host: &str, shard: &str) -> Result<()> {
        let kept = self.internal.named(&ns("user_writes_critical_sections"), "")?;
        let says = |field: &str| kept.as_ref().is_some_and(|d| d.get(field).is_some_and(|v| v.is_truthy()));
        let number = self.node.number("a shard takes over what is blocked", shard).await?;
        self.node.call(host, &phase(false, "complete", number)).await?;
        if says("blockNewUserShardedDDL") {
            self.node.call(host, &phase(true, "prepare", number)).await?;
        }
        if says("blockUserWrites") {
            self.node.call(host, &phase(true, "complete", number)).await?;
        }
        Ok(())
    }
}

fn phase(block: bool, phase: &str, number: Timestamp) -> DocBuf {
    let mut b = DocBuilder::new();
    b.i32("_shardsvrSetUserWriteBlockMode", 1).bool("global", block).str("phase", phase);
    b.timestamp("timestamp", number);
    b.doc("writeConcern", |wc| _ = wc.str("w", "majority")).str("$db", "admin");
    b.finish()
}
