//! How often this member has rolled back or given its data up: others that fetch from it learn by the number that its log
//! is another one (R-RB-3).

use super::Replication;
use pando_base::{Namespace, OpTime, Result};
use pando_bson::{Value, doc};

fn rollback_id_ns() -> Namespace {
    Namespace::unchecked("local", "system.rollback.id")
}

impl Replication {
    /// The next rollback number, on disk before any data is changed (R-RB-3).
    pub(crate) async fn count_rollback(&self, common: OpTime) -> Result<i32> {
        self.storage.log().wait_durable(common.ts).await?;
        let rbid = self.progress.rbid() + 1;
        self.store_rollback_id(rbid).await?;
        self.sync_local().await?;
        self.progress.set_rbid(rbid);
        Ok(rbid)
    }

    /// At the start. The first one of a member writes down the number that it begins with.
    pub(crate) async fn restore_rollback_id(&self) -> Result<()> {
        let stored = self.internal.first(&rollback_id_ns())?;
        if let Some(Value::Int32(n)) = stored.as_ref().and_then(|d| d.get("rollbackId")) {
            self.progress.set_rbid(n);
            return Ok(());
        }
        self.store_rollback_id(self.progress.rbid()).await
    }
    async fn store_rollback_id(&self, rbid: i32) -> Result<()> {
        let doc = doc! { "_id": "rollbackId", "rollbackId": rbid };
        self.internal.replace_only(&rollback_id_ns(), &doc.to_raw()).await
    }
}
