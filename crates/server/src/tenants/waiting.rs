//! Reads of a tenant that is being moved (SV-MTAB-3, 4, 6), and what becomes of whoever was turned away.

use super::Tenants;
use crate::change_stream::history_lost;
use pando_base::{Error, ErrorCode, Result, TenantId, Timestamp, limits};
use pando_command::{Flags, OpCtx, ReadLevel, Request};
use pando_env::BoxFuture;
use pando_query::change_stream::{Spec, Start};
use pando_tenants::{Decision, Reading, blockers};
use std::time::Duration;

/// Commands that look at a tenant's data. What has read already may be read to its end.
fn looks_at_data(name: &str, flags: Flags) -> bool {
    flags.any(Flags::READ | Flags::WRITE) && !matches!(name, "getMore" | "killCursors")
}

/// Where the change stream begins that an `aggregate` opens. What cannot be read is told by the command itself.
fn stream_start(req: &Request<'_>) -> Option<Start> {
    let pipeline = req.body.get("pipeline").and_then(|v| v.as_array());
    let first = pipeline.and_then(|stages| stages.first()).and_then(|stage| stage.value().as_doc());
    let spec = first.and_then(|stage| stage.get("$changeStream")).and_then(|v| v.as_doc())?;
    Spec::parse(spec).ok().map(|spec| spec.start)
}

impl Tenants {
    /// `None` where nobody has to wait: nearly always.
    pub(crate) fn await_access<'a>(
        &'a self,
        ctx: &'a OpCtx,
        flags: Flags,
        req: &'a Request<'a>,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        let tenant = TenantId::of(&ctx.db)?;
        ctx.note_tenants(self.blockers.version());
        let behind = !self.member.is_up_to_date() && flags.any(Flags::READ);
        if !self.blockers.any() && !behind {
            return None;
        }
        // Members copy the data of all tenants.
        if ctx.client.is_internal() || !looks_at_data(req.name, flags) {
            return None;
        }
        let rc = &ctx.read_concern;
        let history = rc.at_cluster_time;
        // A linearizable read is judged by what holds behind it, too; but nothing of what is being copied, or is elsewhere, is looked at.
        // A stream that begins now must not begin here if it has to go on elsewhere.
        let at = rc.after_cluster_time.max(rc.at_cluster_time);
        let stream = (req.name == "aggregate").then(|| stream_start(req)).flatten();
        let at = at.or_else(|| matches!(stream, Some(Start::Now)).then_some(Timestamp(u64::MAX)));
        let from = stream.and_then(|start| match start {
            Start::Now => None,
            Start::At(at) => Some(at),
            Start::After(token) => Some(token.time),
        });
        Some(Box::pin(async move {
            if behind {
                self.await_up_to_date(ctx).await?;
            }
            loop {
                let seen = self.blockers.version();
                match self.blockers.read(&ctx.db, at) {
                    Reading::Goes => {
                        ctx.note_tenants(seen);
                        return self.check_times(&ctx.db, history, from);
                    }
                    // Events of before are in the log of this set only.
                    Reading::Refused(_) if self.ends_behind(&ctx.db, from) => return Ok(()),
                    Reading::Refused(e) => return Err(e),
                    Reading::Waits => match ctx.interruptible(self.blockers.decided(tenant, false)).await? {
                        Decision::Committed(e) => return Err(e),
                        Decision::Aborted(_) => return Ok(()),
                        Decision::Arrived | Decision::Gone(_) => {}
                    },
                }
            }
        }))
    }
    /// A member that has just started, or rolled back, has not heard of what was decided while it was away.
    async fn await_up_to_date(&self, ctx: &OpCtx) -> Result<()> {
        self.blockers.counts.blocked_reads.inc();
        let limit = Duration::from_millis(limits::TENANT_READS_AWAIT_SET_MS);
        let in_time = ctx.env().timeout(limit, self.member.up_to_date());
        ctx.interruptible(in_time).await?.ok_or_else(|| {
            let text = "this member does not have yet what its set had when it started or rolled back";
            Error::new(ErrorCode::NotPrimaryOrSecondary, text)
        })
    }
    /// A set that a tenant has come to has none of its history.
    fn check_times(&self, db: &str, history: Option<Timestamp>, from: Option<Timestamp>) -> Result<()> {
        if let Some(at) = history {
            self.blockers.check_history(db, at)?;
        }
        match from.is_none_or(|from| self.blockers.has_log_from(db, from)) {
            true => Ok(()),
            false => Err(history_lost()),
        }
    }
    /// Whether a change stream from there on has something to tell still before it goes on elsewhere.
    fn ends_behind(&self, db: &str, from: Option<Timestamp>) -> bool {
        let end = self.blockers.log_ends_at(db);
        from.zip(end).is_some_and(|(from, end)| from < end)
    }
    /// Behind a command: a linearizable read of what is elsewhere by now does not hold, and a stream goes on there.
    pub(crate) fn check_afterwards(&self, ctx: &OpCtx, req: &Request<'_>) -> Result<()> {
        if !self.blockers.any() || ctx.client.is_internal() {
            return Ok(());
        }
        // What was looked at while the tenant came may be a part of it.
        let reads = matches!(req.name, "find" | "count" | "distinct" | "aggregate");
        if reads && self.blockers.has_come_since(&ctx.db, ctx.tenants_seen()) {
            let text = "the tenant has come while it was read; read again";
            return Err(Error::new(ErrorCode::InterruptedDueToReplStateChange, text));
        }
        if ctx.read_concern.level() == ReadLevel::Linearizable {
            self.check_linearizable(&ctx.db)?;
        }
        if req.name == "getMore" && ctx.is_change_stream() && self.blockers.is_moved(&ctx.db) {
            // Where the new owner has no log of before, everything is read here first.
            if self.blockers.log_ends_at(&ctx.db).is_some_and(|end| !ctx.stream_has_all(end)) {
                return Ok(());
            }
            let text = "the change stream goes on at the new owner of this tenant";
            return Err(Error::new(ErrorCode::ResumeTenantChangeStream, text));
        }
        Ok(())
    }
    /// What was read is what there was before a majority confirmed it. Where the decision stands in a document here, the tenant may be written to
    /// elsewhere already, also if it is not known here yet that a majority has it.
    fn check_linearizable(&self, db: &str) -> Result<()> {
        match self.blockers.read(db, None) {
            Reading::Goes => Ok(()),
            Reading::Refused(e) => Err(e),
            Reading::Waits => {
                let text = "where the tenant is has been decided while it was read; read again";
                Err(Error::new(ErrorCode::InterruptedDueToReplStateChange, text))
            }
        }
    }
    /// What an error of one write of several becomes, once its tenant's operation is decided.
    pub(crate) async fn settled(&self, ctx: &OpCtx, error: Error) -> Result<Error> {
        let Some(tenant) = blockers::tenant_of(&error) else { return Ok(error) };
        Ok(ctx.interruptible(self.blockers.decided(&tenant, true)).await?.into_error())
    }
    /// Who was turned away by a write's check waits, without slots and locks, and hears what was decided.
    pub(crate) fn after_decision<'a>(
        &'a self,
        ctx: &'a OpCtx,
        error: &Error,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        let tenant = blockers::tenant_of(error)?;
        Some(Box::pin(async move {
            let decided = ctx.interruptible(self.blockers.decided(&tenant, true)).await?;
            Err(decided.into_error())
        }))
    }
}
