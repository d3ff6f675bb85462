//! Definitions of users, while the writes of users are blocked (SH-UWB-3). Those that wait have state documents, and are waited for by them,
//! whichever primary goes on with them.

use super::Ddl;
use crate::commands::user_write_block;
use crate::settings::user_writes::{Phase, blocked, sections_ns};
use pando_access::Guard;
use pando_base::codes::class;
use pando_base::{Result, Timestamp};
use pando_workflows::ddl;

impl Ddl<'_> {
    /// While the guard is held nobody begins to block definitions.
    ///
    /// # Errors
    /// 371 where they are blocked.
    pub(crate) async fn unless_blocked(&self) -> Result<Guard> {
        let of = sections_ns();
        let shared = self.sharding.part_locks.shared(self.ctx.env(), of.as_str());
        let guard = self.ctx.interruptible(shared).await?;
        match self.server.settings.user_writes.definitions_are_blocked() {
            true => Err(blocked()),
            false => Ok(guard),
        }
    }
    /// One phase of blocking or letting in, of the operation of that number. Whoever blocks returns when no definition of a user is under way, or
    /// no write.
    ///
    /// # Errors
    /// 225 when a newer one has been here.
    pub(crate) async fn block_user_writes(
        &self,
        block: bool,
        phase: Phase,
        at: Option<Timestamp>,
    ) -> Result<()> {
        let settings = &self.server.settings;
        {
            let _part = self.take_part(&sections_ns(), at, true).await?;
            let now = settings.blocked_user_writes()?.after(phase, block);
            settings.block_user_writes(now).await?;
        }
        match phase {
            _ if !block => {}
            Phase::Prepare => self.drain().await?,
            Phase::Complete => user_write_block::await_users(self.server, self.ctx).await?,
        }
        // Also where it was so: what has been written before is to be on a majority.
        self.ctx.wrote(self.server.replication.last_applied());
        Ok(())
    }
    async fn drain(&self) -> Result<()> {
        let running = self.ctx.interruptible(self.host()?.all(ddl::NAME)).await??;
        for instance in running.iter().filter(|i| ddl::is_of_users(&i.state())) {
            match self.ctx.interruptible(instance.result()).await? {
                // It goes on on the next primary, where the sender asks again.
                Err(e) if e.code.is(class::NOT_PRIMARY | class::RECOVERING | class::SHUTDOWN) => {
                    return Err(e);
                }
                // Whatever came of it.
                _ => {}
            }
        }
        Ok(())
    }
}
