//! Prepared transactions as their coordinator drives them, and how they come back.

use super::{Transactions, lsid_doc};
use pando_access::transaction::metrics::Last;
use pando_access::{Statement, statement};
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_command::{OpCtx, SessionId};
use pando_session::transaction::State;

fn invalid(text: &str) -> Error {
    Error::new(ErrorCode::InvalidOptions, text.to_owned())
}

fn whose(ctx: &OpCtx) -> Result<(SessionId, i64)> {
    match (&ctx.lsid, ctx.txn_number) {
        (Some(lsid), Some(number)) => Ok((*lsid, number)),
        _ => Err(Error::internal("a prepared transaction without session")),
    }
}

impl Transactions {
    /// Returns the prepare timestamp; the pipeline waits for the write concern.
    pub(crate) async fn prepare(&self, ctx: &OpCtx) -> Result<Timestamp> {
        let (lsid, number) = whose(ctx)?;
        let statement =
            statement(ctx).ok_or_else(|| Error::internal("a prepare outside of a transaction"))?;
        ctx.will_write();
        let there = statement.with_loan(|loan| {
            let now = loan.machine().may_prepare(&lsid, number)?;
            Ok((!now).then(|| loan.last_op()))
        })?;
        if let Some(at) = there {
            // Its entry may be of an earlier term, in which nobody counts any more.
            ctx.set_last_op(self.replication.last_applied());
            return Ok(at.ts);
        }
        let done = self.prepare_open(ctx, statement, &lsid, number).await;
        if done.is_err() {
            // Whatever went wrong: a transaction that cannot be prepared is over.
            statement.fail();
        }
        done
    }

    async fn prepare_open(
        &self,
        ctx: &OpCtx,
        statement: &Statement,
        lsid: &SessionId,
        number: i64,
    ) -> Result<Timestamp> {
        self.check_may_prepare()?;
        let open = statement.open().ok_or_else(|| Error::internal("nothing is open to prepare"))?;
        self.admission.before_write(ctx).await?;
        let (unit, held) = open.take_to_prepare()?;
        let id = (*lsid, number);
        let prepared = match ctx.before_commit(true) {
            Ok(()) => {
                self.maintenance
                    .prepare_transaction(unit, &lsid_doc(lsid), id, held, Some(open.clone()))
                    .await
            }
            Err(e) => Err(e),
        };
        let at = match prepared {
            Ok(at) => at,
            Err(e) => {
                open.ended(false);
                return Err(e);
            }
        };
        statement.with_loan(|loan| {
            loan.become_(State::Prepared);
            loan.set_last_op(at);
            Ok(())
        })?;
        self.metrics.prepared();
        ctx.set_last_op(at);
        Ok(at.ts)
    }

    /// A set that could take writes and never commit them must not promise anything (T-PREP-11).
    fn check_may_prepare(&self) -> Result<()> {
        if !self.config.majority_reads {
            return Err(Error::new(
                ErrorCode::ReadConcernMajorityNotEnabled,
                "'prepareTransaction' is not supported with 'enableMajorityReadConcern=false'",
            ));
        }
        if self.replication.member.config().is_some_and(|c| c.members.iter().any(|m| m.arbiter_only)) {
            let text = "'prepareTransaction' is not supported for replica sets with arbiters";
            return Err(Error::new(ErrorCode::ReadConcernMajorityNotEnabled, text));
        }
        Ok(())
    }

    pub(super) async fn commit_prepared(
        &self,
        ctx: &OpCtx,
        statement: &Statement,
        at: Option<Timestamp>,
    ) -> Result<()> {
        let (lsid, number) = whose(ctx)?;
        let prepare = statement.with_loan(|loan| Ok(loan.last_op()))?;
        let commit = at.ok_or_else(|| {
            invalid("commitTransaction must provide commitTimestamp to prepared transaction.")
        })?;
        if commit.is_zero() {
            return Err(invalid("'commitTimestamp' cannot be null"));
        }
        if commit < prepare.ts {
            return Err(invalid("'commitTimestamp' must be greater than or equal to 'prepareTimestamp'"));
        }
        if self.replication.committed() < prepare.ts {
            return Err(invalid(
                "commitTransaction for a prepared transaction cannot be run before its prepare oplog entry has been \
                 majority committed",
            ));
        }
        self.admission.before_write(ctx).await?;
        ctx.before_commit(true)?;
        let id = (lsid, number);
        let done = self.maintenance.decide_prepared(&lsid_doc(&lsid), &id, Some(commit))?;
        statement.with_loan(|loan| {
            loan.become_(State::CommittingPrepared);
            loan.become_(State::Committed);
            loan.set_last_op(done);
            Ok(())
        })?;
        ctx.set_last_op(done);
        self.metrics.prepared_ended(true);
        let write_concern = ctx.write_concern.clone().unwrap_or_else(|| self.default_write_concern());
        self.metrics.note_last(Last { operations: 0, bytes: 0, write_concern });
        Ok(())
    }

    pub(super) async fn abort_prepared(&self, ctx: &OpCtx, statement: &Statement) -> Result<()> {
        let (lsid, number) = whose(ctx)?;
        ctx.will_write();
        self.admission.before_write(ctx).await?;
        ctx.before_commit(true)?;
        let done = self.maintenance.decide_prepared(&lsid_doc(&lsid), &(lsid, number), None)?;
        statement.with_loan(|loan| {
            loan.become_(State::AbortedPrepared);
            loan.set_last_op(done);
            Ok(())
        })?;
        ctx.set_last_op(done);
        self.metrics.prepared_ended(false);
        Ok(())
    }
}
