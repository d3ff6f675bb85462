//! A statement takes the session and what is open of its transaction, and gives both back.

use super::Transactions;
use pando_access::{OpenTxn, Statement, statement};
use pando_base::{Error, ErrorCode, Result};
use pando_command::{OpCtx, ReadLevel, Request, SessionId};
use pando_session::retryable::{Begin, Loan};
use pando_session::transaction::State;
use pando_storage::ReadAt;
use std::sync::Arc;

impl Transactions {
    pub(crate) async fn check_out(&self, ctx: &OpCtx, req: &Request<'_>) -> Result<()> {
        let (Some(lsid), Some(number)) = (&ctx.lsid, ctx.txn_number) else {
            return Err(Error::internal("a statement of a transaction without session or number"));
        };
        if !self.replication.member.is_primary() {
            let text = "Not primary so we cannot begin or continue a transaction";
            return Err(Error::new(ErrorCode::NotWritablePrimary, text));
        }
        // A change of role ends it.
        ctx.show(|op| (op.is_write, op.in_txn) = (true, true));
        let newer = ctx.start_transaction.then_some(number);
        let mut loan = self.wait_for_session(ctx, lsid, newer).await?;
        let ends = pando_command::ends_transaction(ctx.command);
        if ctx.start_transaction {
            loan.start(lsid, number, self.config.cluster_role.is_some())?;
        } else if !ends {
            loan.machine().proceed(lsid, number)?;
        }
        let open = match ctx.start_transaction {
            true => match self.open_transaction(ctx, lsid, number).await {
                Ok(open) => Some(open),
                Err(e) => {
                    loan.abort();
                    return Err(e);
                }
            },
            // The one that is parked may be of an older number than an end that comes late.
            false if loan.machine().number() != number => None,
            false => loan.unpark().and_then(|parked| parked.downcast::<OpenTxn>().ok()),
        };
        if !ends && open.is_none() {
            return Err(Error::internal("a transaction in progress without anything open"));
        }
        if let Some(open) = &open {
            open.statement_begins(ctx);
        }
        ctx.attach(Arc::new(Statement::new(loan, open)));
        let met = self.access.meet_target(ctx, req).await;
        if met.is_err() {
            self.check_in(ctx, true);
        }
        met
    }

    /// A newer number waits also until what is prepared on the session is decided.
    async fn wait_for_session(&self, ctx: &OpCtx, lsid: &SessionId, newer: Option<i64>) -> Result<Loan> {
        loop {
            let decided = self.storage.prepare_changes();
            let seen = decided.version();
            match self.sessions.retryable.check_out(lsid, ctx.started) {
                Begin::Yours(loan) if newer.is_some_and(|n| loan.machine().holds_back(n)) => {
                    drop(loan);
                    ctx.interruptible(decided.changed(seen)).await?;
                }
                Begin::Yours(loan) => return Ok(loan),
                Begin::Wait(changed) => ctx.interruptible(changed).await?,
            }
        }
    }

    /// The first statement fixes what the transaction reads.
    async fn open_transaction(&self, ctx: &OpCtx, lsid: &SessionId, number: i64) -> Result<Arc<OpenTxn>> {
        let rc = &ctx.read_concern;
        let log = self.storage.log();
        if let Some(at) = rc.at_cluster_time {
            if at > log.visible() {
                self.replication.write_noop("waiting for atClusterTime")?;
            }
            ctx.interruptible(log.wait_applied(at)).await?;
        } else if rc.may_wait() {
            self.replication.await_readable(ctx).await?;
        }
        let at = match (rc.level(), rc.at_cluster_time) {
            (_, Some(at)) => ReadAt::At(at),
            (ReadLevel::Snapshot, None) => ReadAt::AllDurable,
            _ => ReadAt::Latest,
        };
        self.access.begin_transaction(ctx, (*lsid, number), at, &self.metrics)
    }

    pub(crate) fn check_in(&self, ctx: &OpCtx, failed: bool) {
        let Some(statement) = statement(ctx) else { return };
        let Some(mut loan) = statement.take_loan() else { return };
        let Some(open) = statement.open() else { return };
        open.statement_ends(ctx.env().clock.mono());
        let number = open.number;
        if loan.machine().state() == State::InProgress && !failed && !statement.has_failed() {
            loan.park(open.clone());
            return;
        }
        if loan.machine().state() == State::Prepared {
            return;
        }
        if matches!(loan.machine().state(), State::InProgress | State::CommittingUnprepared) {
            loan.abort();
        }
        open.abort();
        drop(loan);
        let lsid = open.lsid;
        let now = ctx.env().clock.mono();
        self.cursors.kill_where(now, |c| c.lsid == Some(lsid) && c.txn_number == Some(number));
    }
}
