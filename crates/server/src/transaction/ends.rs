//! How transactions end: by their client's word, or from outside.

use super::Transactions;
use crate::lifecycle::Lifecycle;
use pando_access::transaction::metrics::Last;
use pando_access::{OpenTxn, statement};
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_command::{OpCtx, Param, W};
use pando_env::Component;
use pando_session::retryable::Retryable;
use pando_session::transaction::State;
use pando_storage::PREPARE_CONFLICT;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use pando_oplog::session::lsid_doc;

impl Transactions {
    pub(crate) async fn commit(&self, ctx: &OpCtx, at: Option<Timestamp>) -> Result<()> {
        let (Some(statement), Some(lsid), Some(number)) = (statement(ctx), &ctx.lsid, ctx.txn_number) else {
            return Err(Error::internal("a commit outside of a transaction"));
        };
        ctx.will_write();
        let again = statement.with_loan(|loan| {
            let again = !loan.machine().may_commit(lsid, number)?;
            Ok(again)
        })?;
        if again {
            // Its own entry may be of an earlier term, in which nobody counts any more; and whatever a first try without
            // an entry read lies before what is there now, too.
            ctx.set_last_op(self.replication.last_applied());
            return Ok(());
        }
        if statement.with_loan(|loan| Ok(loan.machine().state() == State::Prepared))? {
            return self.commit_prepared(ctx, statement, at).await;
        }
        if at.is_some() {
            statement.fail();
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                "commitTransaction cannot provide commitTimestamp to unprepared transaction.",
            ));
        }
        let open = statement.open().ok_or_else(|| Error::internal("nothing is open to commit"))?;
        if open.with(|unit| Ok(unit.operations().0 > 0))? {
            self.admission.before_write(ctx).await?;
        }
        let unit = open.take_unit()?;
        statement.with_loan(|loan| {
            loan.become_(State::CommittingUnprepared);
            Ok(())
        })?;
        let done = match ctx.before_commit(unit.operations().0 > 0) {
            Ok(()) => {
                let ms = self.instance.params.int(Param::maxTransactionLockRequestTimeoutMillis).max(1);
                let patience = Duration::from_millis(ms as u64);
                self.maintenance.commit_transaction(unit, &lsid_doc(lsid), (*lsid, number), patience).await
            }
            Err(e) => Err(e),
        };
        open.ended(done.is_ok());
        let done = done?;
        statement.with_loan(|loan| {
            loan.become_(State::Committed);
            if !done.last.is_null() {
                loan.set_last_op(done.last);
            }
            Ok(())
        })?;
        let write_concern = ctx.write_concern.clone().unwrap_or_else(|| self.default_write_concern());
        if done.last.is_null() {
            // What it read must not be rolled back: an entry behind it is waited for.
            if write_concern.w != W::Nodes(1) && write_concern.w != W::Nodes(0) {
                ctx.set_last_op(self.replication.write_noop("read-only transaction")?);
            }
        } else {
            ctx.set_last_op(done.last);
        }
        self.metrics.note_last(Last { operations: done.operations, bytes: done.bytes, write_concern });
        Ok(())
    }

    pub(crate) async fn abort(&self, ctx: &OpCtx) -> Result<()> {
        let (Some(statement), Some(lsid), Some(number)) = (statement(ctx), &ctx.lsid, ctx.txn_number) else {
            return Err(Error::internal("an abort outside of a transaction"));
        };
        let prepared = statement.with_loan(|loan| {
            loan.machine().may_abort(lsid, number)?;
            let prepared = loan.machine().state() == State::Prepared;
            if !prepared {
                loan.abort();
            }
            Ok(prepared)
        })?;
        if prepared {
            return self.abort_prepared(ctx, statement).await;
        }
        if let Some(open) = statement.open() {
            open.abort();
        }
        ctx.will_write();
        Ok(())
    }

    /// What became of a transaction that another router has tried to commit here. One that is still open is not committed any more.
    pub(crate) async fn recover(&self, ctx: &OpCtx) -> Result<()> {
        let statement =
            statement(ctx).ok_or_else(|| Error::internal("a recovery outside of a transaction"))?;
        if statement.with_loan(|loan| Ok(loan.machine().state() == State::Prepared))? {
            // Whoever has prepared it decides.
            let text = "the transaction is prepared and not decided";
            return Err(Error::new(ErrorCode::PreparedTransactionInProgress, text));
        }
        match self.abort(ctx).await {
            Err(e) if e.code == ErrorCode::TransactionCommitted => {
                ctx.will_write();
                ctx.set_last_op(self.replication.last_applied());
                Ok(())
            }
            Err(e) => Err(e),
            Ok(()) => {
                let number = ctx.txn_number.unwrap_or(0);
                let text = format!("Transaction with {{ txnNumber: {number} }} has been aborted.");
                Err(Error::new(ErrorCode::NoSuchTransaction, text))
            }
        }
    }

    fn abort_expired(&self) {
        let now = self.instance.env.clock.mono();
        for open in parked(&self.sessions.retryable) {
            let age = now.saturating_sub(open.started);
            if age < open.lifetime {
                continue;
            }
            let id = open.lsid;
            self.instance.env.log.info(
                Component::Txn,
                20707,
                "Aborting transaction because it has been running for longer than \
                 'transactionLifetimeLimitSeconds'",
                |a| {
                    a.i64("txnNumber", open.number);
                    a.str("sessionId", &pando_base::Uuid(id.id).to_string());
                },
            );
            drop(open);
            self.sessions.abort_session(&id, ErrorCode::TransactionExceededLifetimeLimitSeconds);
        }
        let limit = self.instance.params.int(Param::transactionLifetimeLimitSeconds).max(1) as u64;
        let limit = Duration::from_secs(limit);
        // A statement that runs for so long.
        self.instance.clients.kill_where(ErrorCode::TransactionExceededLifetimeLimitSeconds, |_, op| {
            op.in_txn && now.saturating_sub(op.started) >= limit
        });
    }
}

/// An error of one write: in a transaction the whole transaction ends with it, and those that tell the client to try
/// the transaction again end the command too.
pub(crate) fn write_failed(ctx: &OpCtx, e: &Error) -> Result<()> {
    let Some(statement) = statement(ctx) else { return Ok(()) };
    if e.code == PREPARE_CONFLICT {
        return Err(e.clone());
    }
    statement.fail();
    if e.code.is(class::RETRIABLE | class::TRANSIENT_IN_TXN) { Err(e.clone()) } else { Ok(()) }
}

/// Whether the transaction has written nothing so far; `None` where none is open.
pub(crate) fn has_only_read(ctx: &OpCtx) -> Option<bool> {
    let open = statement(ctx)?.open()?;
    open.with(|unit| Ok(unit.operations().0 == 0)).ok()
}

/// Open transactions that no statement uses now.
pub(crate) fn parked(sessions: &Retryable) -> Vec<Arc<OpenTxn>> {
    let parked = sessions.parked();
    parked.into_iter().filter_map(|(_, open)| open.downcast::<OpenTxn>().ok()).collect()
}

/// Ends transactions that are open for too long.
pub(crate) async fn expire(transactions: Arc<Transactions>, lifecycle: Arc<Lifecycle>) {
    loop {
        let limit = transactions.instance.params.int(Param::transactionLifetimeLimitSeconds).max(1) as u64;
        if !lifecycle.pause(Duration::from_millis((limit * 500).clamp(500, 60_000))).await {
            return;
        }
        transactions.abort_expired();
    }
}
