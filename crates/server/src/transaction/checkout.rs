//! A statement takes the session and what is open of its transaction, and gives both back.

use super::OpenTxn;
use crate::Server;
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp};
use pando_bson::RawDoc;
use pando_catalog::Named;
use pando_command::{OpCtx, ReadLevel, Request, SessionId};
use pando_query::stage::involved;
use pando_session::retryable::{Begin, Loan};
use pando_session::transaction::State;
use pando_storage::ReadAt;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What hangs on the operation while it runs. Dropped before it was checked in (the connection is gone), it ends the
/// transaction: nobody knows how far the statement got.
pub(crate) struct Statement {
    loan: Mutex<Option<Loan>>,
    open: Option<Arc<OpenTxn>>,
    failed: AtomicBool,
}

impl Statement {
    fn loan(&self) -> MutexGuard<'_, Option<Loan>> {
        self.loan.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn open(&self) -> Option<&Arc<OpenTxn>> {
        self.open.as_ref()
    }
    /// The session in the hands of this operation.
    pub(crate) fn with_loan<T>(&self, work: impl FnOnce(&mut Loan) -> Result<T>) -> Result<T> {
        match &mut *self.loan() {
            Some(loan) => work(loan),
            None => Err(Error::internal("a statement without its session")),
        }
    }
    /// The statement's reply tells of an error that ends the transaction.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Relaxed);
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        if let Some(loan) = self.loan().as_mut() {
            if loan.machine().state() == State::Prepared {
                return;
            }
            if let Some(open) = &self.open {
                open.abort();
            }
            loan.abort();
        }
    }
}

impl Server {
    pub(crate) fn statement<'a>(&self, ctx: &'a OpCtx) -> Option<&'a Statement> {
        ctx.attached::<Statement>()
    }
    /// The transaction that the operation belongs to.
    pub(crate) fn open_txn<'a>(&self, ctx: &'a OpCtx) -> Option<&'a Arc<OpenTxn>> {
        self.statement(ctx)?.open()
    }

    pub(crate) async fn check_out_session(&self, ctx: &OpCtx, req: &Request<'_>) -> Result<()> {
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
            loan.start(lsid, number)?;
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
            open.statement_begins(ctx.env().clock.mono());
        }
        let statement = Statement { loan: Mutex::new(Some(loan)), open, failed: AtomicBool::new(false) };
        ctx.attach(Arc::new(statement));
        let met = self.meet_target(ctx, req).await;
        if met.is_err() {
            self.check_in_session(ctx, true);
        }
        met
    }

    /// A newer number waits also until what is prepared on the session is decided.
    async fn wait_for_session(&self, ctx: &OpCtx, lsid: &SessionId, newer: Option<i64>) -> Result<Loan> {
        loop {
            let decided = self.storage.prepare_changes();
            let seen = decided.version();
            match self.retryable.check_out(lsid, ctx.started) {
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
        let unit = self.catalog.begin_transaction(at, (*lsid, number))?;
        let read_timestamp = match at {
            ReadAt::Latest => Timestamp::ZERO,
            _ => unit.txn().read_ts(),
        };
        let (metrics, cache) = (self.statistics.transactions.clone(), self.storage.memory_limit());
        let open = OpenTxn::begin(ctx, *lsid, number, unit, read_timestamp, metrics, cache);
        Ok(Arc::new(open))
    }

    /// Locks the collection that the statement names.
    async fn meet_target(&self, ctx: &OpCtx, req: &Request<'_>) -> Result<()> {
        let Some(open) = self.open_txn(ctx) else { return Ok(()) };
        let by_name = matches!(
            ctx.command,
            "aggregate"
                | "create"
                | "createIndexes"
                | "delete"
                | "distinct"
                | "find"
                | "findAndModify"
                | "insert"
                | "update"
        );
        match req.first().value() {
            pando_bson::Value::Int32(_) | pando_bson::Value::Int64(_) | pando_bson::Value::Double(_) => {
                Ok(())
            }
            _ if !by_name => Ok(()),
            _ => {
                let Ok(ns) = self.ns_or_uuid(req) else { return Ok(()) };
                check_target(ctx.command, &ns)?;
                open.meet(self, ctx, &ns).await?;
                match req.body.get("pipeline").and_then(|v| v.as_array()) {
                    Some(stages) if ctx.command == "aggregate" => {
                        self.meet_involved(ctx, open, &ns, stages).await
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Locks what the pipeline, and those of views, read beside.
    async fn meet_involved(
        &self,
        ctx: &OpCtx,
        open: &OpenTxn,
        target: &Namespace,
        pipeline: &RawDoc,
    ) -> Result<()> {
        let mut pipelines = vec![pipeline.to_buf()];
        // What is wrong with a view comes to light when it is read.
        let stages_of = |ns: &Namespace| Some(self.catalog.snapshot().resolve_view(ns).ok()??.pipeline);
        pipelines.extend(stages_of(target));
        let mut met = BTreeSet::new();
        while let Some(stages) = pipelines.pop() {
            let mut names = BTreeSet::new();
            involved(&stages, &mut names);
            for name in names {
                let Ok(ns) = Namespace::new(target.db(), name) else { continue };
                if !met.insert(ns.clone()) {
                    continue;
                }
                open.meet(self, ctx, &ns).await?;
                pipelines.extend(stages_of(&ns));
            }
        }
        Ok(())
    }

    pub(crate) fn check_in_session(&self, ctx: &OpCtx, failed: bool) {
        let Some(statement) = self.statement(ctx) else { return };
        let Some(mut loan) = statement.loan().take() else { return };
        let Some(open) = &statement.open else { return };
        open.statement_ends(ctx.env().clock.mono());
        let number = open.number;
        if loan.machine().state() == State::InProgress && !failed && !statement.failed.load(Relaxed) {
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

    /// What a name means to this operation: in a transaction what that has locked, to a read of the past what the name
    /// meant then.
    pub(crate) fn named(&self, ctx: &OpCtx, ns: &Namespace) -> Result<Option<Named>> {
        if let Some(open) = self.open_txn(ctx) {
            return Ok(open.named(self, ns));
        }
        match self.read_at(self.read_point(ctx)) {
            ReadAt::At(at) => self.catalog.named_at(ns, at),
            _ => Ok(self.catalog.snapshot().get(ns).cloned()),
        }
    }
}

/// Collections that transactions keep away from.
fn check_target(command: &str, ns: &Namespace) -> Result<()> {
    let writes = !matches!(command, "aggregate" | "distinct" | "find");
    if writes && ns.coll().starts_with("system.") && !matches!(command, "create" | "createIndexes") {
        return Err(Error::location(
            50791,
            format!("Cannot write to system collection {ns} within a transaction."),
        ));
    }
    if ns.coll() == "system.views" {
        return Err(Error::location(51071, "Cannot query system.views within a transaction"));
    }
    Ok(())
}
