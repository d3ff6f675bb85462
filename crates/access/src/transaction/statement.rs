//! A statement of a transaction: the session that it has taken, and what is open of the transaction.

use super::OpenTxn;
use pando_base::{Error, Result};
use pando_command::OpCtx;
use pando_session::retryable::Loan;
use pando_session::transaction::State;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What hangs on the operation while it runs. Dropped before it was checked in (the connection is gone), it ends the
/// transaction: nobody knows how far the statement got.
pub struct Statement {
    loan: Mutex<Option<Loan>>,
    open: Option<Arc<OpenTxn>>,
    failed: AtomicBool,
}

impl Statement {
    pub fn new(loan: Loan, open: Option<Arc<OpenTxn>>) -> Statement {
        Statement { loan: Mutex::new(Some(loan)), open, failed: AtomicBool::new(false) }
    }
    fn loan(&self) -> MutexGuard<'_, Option<Loan>> {
        self.loan.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub fn open(&self) -> Option<&Arc<OpenTxn>> {
        self.open.as_ref()
    }
    /// The session in the hands of this operation.
    pub fn with_loan<T>(&self, work: impl FnOnce(&mut Loan) -> Result<T>) -> Result<T> {
        match &mut *self.loan() {
            Some(loan) => work(loan),
            None => Err(Error::internal("a statement without its session")),
        }
    }
    /// The session, to be given back.
    pub fn take_loan(&self) -> Option<Loan> {
        self.loan().take()
    }
    /// The statement's reply tells of an error that ends the transaction.
    pub fn fail(&self) {
        self.failed.store(true, Relaxed);
    }
    pub fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
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

/// The statement of a transaction that the operation is.
pub fn statement(ctx: &OpCtx) -> Option<&Statement> {
    ctx.attached::<Statement>()
}

/// The transaction that the operation belongs to.
pub fn open_txn(ctx: &OpCtx) -> Option<&Arc<OpenTxn>> {
    statement(ctx)?.open()
}
