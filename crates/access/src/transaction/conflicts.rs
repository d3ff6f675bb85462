//! Who meets what a prepared transaction has written: some read what was before, others wait for the decision (T-PREP-6).
//!
//! A command that waits runs again from its beginning; within a transaction, its own writes are undone first. A batch of a
//! cursor that is open already waits before it begins for everything prepared in its collection.

use crate::Access;
use crate::transaction::open_txn;
use pando_base::{Error, Result, Timestamp};
use pando_catalog::{Collection, UnitMark};
use pando_command::{Attempt, OpCtx, ReadConcern, ReadLevel};
use pando_env::BoxFuture;
use pando_storage::{OnPrepared, PREPARE_CONFLICT};
use std::sync::Arc;

/// A collection, and until when something was prepared that is waited for.
pub type Undecided = (Arc<Collection>, Timestamp);

struct Before {
    decisions: u64,
    unit: Option<UnitMark>,
}

/// Those whose readers must not miss what is decided later than they began.
pub fn on_prepared(rc: &ReadConcern) -> OnPrepared {
    let at = rc.after_cluster_time.is_some() || rc.at_cluster_time.is_some();
    match rc.level() {
        ReadLevel::Snapshot | ReadLevel::Linearizable => OnPrepared::Conflict,
        _ if at => OnPrepared::Conflict,
        _ => OnPrepared::Ignore,
    }
}

impl Access {
    /// Where a command begins again after a conflict.
    pub fn attempt_of(&self, ctx: &OpCtx) -> Attempt {
        let open = open_txn(ctx);
        if open.is_none() && on_prepared(&ctx.read_concern) == OnPrepared::Ignore {
            return Attempt::default();
        }
        let decisions = self.catalog.storage().prepare_changes().version();
        let unit = open.and_then(|open| open.with(|unit| Ok(unit.mark())).ok());
        Attempt(Some(Box::new(Before { decisions, unit })))
    }
    /// Undoes what the command did, and waits; `None` when the error is another one.
    pub fn after_decision<'a>(
        &'a self,
        ctx: &'a OpCtx,
        attempt: Attempt,
        error: &Error,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        if error.code != PREPARE_CONFLICT {
            return None;
        }
        let Before { decisions, unit } = *attempt.0?.downcast::<Before>().ok()?;
        if let (Some(open), Some(mark)) = (open_txn(ctx), unit) {
            open.with(|unit| {
                unit.back_to(mark);
                Ok(())
            })
            .ok()?;
        }
        Some(Box::pin(async move {
            ctx.interruptible(self.catalog.storage().prepare_changes().changed(decisions)).await
        }))
    }

    /// Waits until nothing of that is undecided.
    pub async fn past_prepared(&self, ctx: &OpCtx, wait: Option<Undecided>) -> Result<()> {
        let Some((coll, upto)) = wait else { return Ok(()) };
        let decided = self.catalog.storage().prepare_changes();
        loop {
            let seen = decided.version();
            if !self.catalog.storage().has_prepared(coll.idents(), upto) {
                return Ok(());
            }
            ctx.interruptible(decided.changed(seen)).await?;
        }
    }
}
