//! What a write waits for before it begins.

use super::flow_control::FlowController;
use super::fsync_lock::FsyncLock;
use pando_base::Result;
use pando_command::OpCtx;
use pando_storage::Storage;
use std::sync::Arc;

/// Who may hold a write back.
pub(crate) struct WriteAdmission {
    pub(crate) storage: Storage,
    pub(crate) fsync_lock: FsyncLock,
    pub(crate) flow_control: Arc<FlowController>,
}

impl WriteAdmission {
    /// Before a write: no `fsync` lock, room in memory, a majority that can follow.
    pub(crate) async fn before_write(&self, ctx: &OpCtx) -> Result<()> {
        ctx.arguments_read()?;
        if self.fsync_lock.is_locked() {
            ctx.interruptible(self.fsync_lock.wait()).await?;
        }
        if !self.storage.has_room() {
            ctx.interruptible(self.storage.wait_room()).await?;
        }
        self.flow_control.take_ticket(ctx).await
    }
}
