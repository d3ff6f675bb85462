//! The states of a session's newest number (R-TXN), and the errors of requests that do not fit them.
//!
//! ```text
//!            ┌─ RetryableWrite
//!   None ────┤                ┌─ Prepared ─┬─ CommittingPrepared ── Committed
//!            └─ InProgress ───┤            └─ AbortedPrepared
//!                             ├─ CommittingUnprepared ─ Committed
//!                             └─ AbortedUnprepared  (also from CommittingUnprepared)
//! ```
//! A higher number starts over from any state but Prepared and the committing ones.

use crate::lsid_text;
use pando_base::{Error, ErrorCode, Result};
use pando_command::generic_args::SessionId;

/// Where the active number stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    #[default]
    None,
    RetryableWrite,
    InProgress,
    Prepared,
    CommittingUnprepared,
    CommittingPrepared,
    Committed,
    AbortedUnprepared,
    AbortedPrepared,
}

impl State {
    /// Moves within one number.
    pub fn may_become(self, next: State) -> bool {
        use State::*;
        matches!(
            (self, next),
            (None, RetryableWrite | InProgress)
                | (InProgress, Prepared | CommittingUnprepared | AbortedUnprepared)
                | (CommittingUnprepared, Committed | AbortedUnprepared)
                | (Prepared, CommittingPrepared | AbortedPrepared)
                | (CommittingPrepared, Committed)
        )
    }
    /// A newer number has to wait.
    fn holds_the_session(self) -> bool {
        matches!(self, State::Prepared | State::CommittingUnprepared | State::CommittingPrepared)
    }
    pub fn is_transaction(self) -> bool {
        !matches!(self, State::None | State::RetryableWrite)
    }
    /// As `config.transactions` has it; retryable writes have none.
    pub fn text(self) -> Option<&'static str> {
        match self {
            State::InProgress => Some("inProgress"),
            State::Prepared => Some("prepared"),
            State::Committed => Some("committed"),
            State::AbortedPrepared => Some("aborted"),
            _ => None,
        }
    }
}

/// What a log entry of another member says about a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DurableState {
    /// Part of a chain whose end is not there yet.
    Partial,
    Prepared,
    Committed,
    Aborted,
}

/// The active number of a session and its state.
#[derive(Clone, Debug)]
pub struct Machine {
    number: i64,
    state: State,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine { number: -1, state: State::None }
    }
}

impl Machine {
    /// A session whose newest number was a retryable write.
    pub fn retryable_write(number: i64) -> Machine {
        Machine { number, state: State::RetryableWrite }
    }
    pub fn number(&self) -> i64 {
        self.number
    }
    pub fn state(&self) -> State {
        self.state
    }

    /// `startTransaction`. The transaction before, if one was open, is aborted by this. `in_cluster`: routers begin a transaction anew
    /// when its first statement went where it should not have gone.
    pub fn start(&mut self, lsid: &SessionId, number: i64, in_cluster: bool) -> Result<()> {
        self.refuse_older(lsid, number)?;
        if number == self.number && !in_cluster {
            return Err(Error::new(
                ErrorCode::ConflictingOperationInProgress,
                "Only servers in a sharded cluster can start a new transaction at the active transaction number",
            ));
        }
        if number == self.number && !matches!(self.state, State::None | State::AbortedUnprepared) {
            let text = format!(
                "Cannot start a transaction at given transaction number {number} a transaction with the same number \
                 is in state {:?}",
                self.state
            );
            return Err(Error::location(50911, text));
        }
        self.refuse_while_held(number)?;
        *self = Machine { number, state: State::InProgress };
        Ok(())
    }
    /// A later statement of a transaction.
    pub fn proceed(&self, lsid: &SessionId, number: i64) -> Result<()> {
        self.find(lsid, number)?;
        match self.state {
            State::InProgress => Ok(()),
            State::Prepared => Err(Error::new(
                ErrorCode::PreparedTransactionInProgress,
                "Cannot call any operation other than abort, prepare or commit on a prepared transaction",
            )),
            _ => Err(self.over()),
        }
    }
    /// `prepareTransaction`; false when it is prepared already.
    pub fn may_prepare(&self, lsid: &SessionId, number: i64) -> Result<bool> {
        self.find(lsid, number)?;
        match self.state {
            State::InProgress => Ok(true),
            State::Prepared => Ok(false),
            _ => Err(self.over()),
        }
    }
    /// A newer number waits until what is prepared is decided.
    pub fn holds_back(&self, number: i64) -> bool {
        number > self.number && self.state.holds_the_session()
    }
    /// `commitTransaction`; false when it is committed already.
    pub fn may_commit(&self, lsid: &SessionId, number: i64) -> Result<bool> {
        self.find(lsid, number)?;
        match self.state {
            State::InProgress | State::Prepared => Ok(true),
            State::Committed => Ok(false),
            _ => Err(self.over()),
        }
    }
    /// `abortTransaction`.
    pub fn may_abort(&self, lsid: &SessionId, number: i64) -> Result<()> {
        self.find(lsid, number)?;
        match self.state {
            State::InProgress | State::Prepared => Ok(()),
            _ => Err(self.over()),
        }
    }
    /// A retryable write; true when its number is new. An open transaction of an older number is aborted by it.
    pub fn write(&mut self, lsid: &SessionId, number: i64) -> Result<bool> {
        if number < self.number {
            let what = if self.state.is_transaction() { "transaction" } else { "retryable write" };
            return Err(Error::new(
                ErrorCode::TransactionTooOld,
                format!(
                    "Retryable write with txnNumber {number} is prohibited on session {} because a newer {what} with \
                     txnNumber {} has already started on this session.",
                    lsid_text(lsid),
                    self.number
                ),
            ));
        }
        if number == self.number && self.state.is_transaction() {
            return Err(Error::new(
                ErrorCode::IncompleteTransactionHistory,
                "Cannot retry a retryable write that has been converted into a transaction",
            ));
        }
        if number == self.number {
            return Ok(false);
        }
        self.refuse_while_held(number)?;
        *self = Machine::retryable_write(number);
        Ok(true)
    }

    /// A move within the active number; one that is not legal is a broken invariant.
    pub fn become_(&mut self, next: State) {
        assert!(self.state.may_become(next), "a transaction goes from {:?} to {next:?}", self.state);
        self.state = next;
    }
    /// Whatever it was doing, unless it is decided or prepared.
    pub fn abort_unprepared(&mut self) {
        if matches!(self.state, State::InProgress | State::CommittingUnprepared) {
            self.become_(State::AbortedUnprepared);
        }
    }
    /// What the log says, on a member that follows or starts; older numbers are ignored.
    pub fn learn(&mut self, number: i64, outcome: DurableState) {
        if number < self.number {
            return;
        }
        let state = match outcome {
            DurableState::Partial => State::InProgress,
            DurableState::Prepared => State::Prepared,
            DurableState::Committed => State::Committed,
            DurableState::Aborted => State::AbortedPrepared,
        };
        *self = Machine { number, state };
    }

    fn refuse_older(&self, lsid: &SessionId, number: i64) -> Result<()> {
        if number >= self.number {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::TransactionTooOld,
            format!(
                "Cannot start transaction with {{ txnNumber: {number} }} on session {} because a newer transaction \
                 with txnNumberAndRetryCounter {{ txnNumber: {}, txnRetryCounter: 0 }} has already started on this \
                 session.",
                lsid_text(lsid),
                self.number
            ),
        ))
    }
    fn refuse_while_held(&self, number: i64) -> Result<()> {
        if !self.state.holds_the_session() {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::PreparedTransactionInProgress,
            format!(
                "Cannot start transaction {number} because there is already a prepared transaction with txnNumber {} \
                 on this session",
                self.number
            ),
        ))
    }
    /// 251 when the number is not the active transaction.
    fn find(&self, lsid: &SessionId, number: i64) -> Result<()> {
        self.refuse_older(lsid, number)?;
        if number == self.number && self.state.is_transaction() {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::NoSuchTransaction,
            format!(
                "Given transaction number {number} does not match any in-progress transactions. The active \
                 transaction number is {}",
                self.number
            ),
        ))
    }
    /// Why nothing more can be done with it.
    fn over(&self) -> Error {
        let number = self.number;
        match self.state {
            State::Committed | State::CommittingPrepared | State::CommittingUnprepared => Error::new(
                ErrorCode::TransactionCommitted,
                format!("Transaction with {{ txnNumber: {number} }} has been committed."),
            ),
            _ => Error::new(
                ErrorCode::NoSuchTransaction,
                format!("Transaction with {{ txnNumber: {number} }} has been aborted."),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: SessionId = SessionId::of([7; 16]);

    fn code(r: Result<impl Sized>) -> i32 {
        r.err().map_or(0, |e| e.code.0)
    }

    #[test]
    fn routers_begin_a_transaction_anew_that_was_aborted_before_anything_came_of_it() {
        let mut m = Machine::default();
        m.start(&S, 1, true).unwrap();
        assert_eq!(code(m.start(&S, 1, true)), 50911);
        m.abort_unprepared();
        assert_eq!(code(m.start(&S, 1, false)), 117);
        m.start(&S, 1, true).unwrap();
        assert_eq!(m.state(), State::InProgress);
        m.become_(State::CommittingUnprepared);
        m.become_(State::Committed);
        assert_eq!(code(m.start(&S, 1, true)), 50911);
    }

    #[test]
    fn a_higher_number_takes_over_and_a_lower_one_is_too_old() {
        let mut m = Machine::default();
        assert_eq!(code(m.proceed(&S, 1)), 251);
        assert_eq!(code(m.start(&S, 1, false)), 0);
        assert_eq!(code(m.start(&S, 1, false)), 117);
        assert_eq!((code(m.proceed(&S, 1)), code(m.proceed(&S, 0)), code(m.proceed(&S, 5))), (0, 225, 251));
        assert_eq!(code(m.start(&S, 3, false)), 0);
        assert_eq!((code(m.may_commit(&S, 1)), code(m.may_commit(&S, 3))), (225, 0));
    }

    #[test]
    fn an_end_is_remembered() {
        let mut m = Machine::default();
        m.start(&S, 1, false).unwrap();
        m.become_(State::CommittingUnprepared);
        m.become_(State::Committed);
        assert_eq!(m.may_commit(&S, 1).ok(), Some(false));
        assert_eq!((code(m.proceed(&S, 1)), code(m.may_abort(&S, 1)), code(m.write(&S, 1))), (256, 256, 217));
        m.start(&S, 2, false).unwrap();
        m.abort_unprepared();
        assert_eq!(
            (code(m.proceed(&S, 2)), code(m.may_abort(&S, 2)), code(m.may_commit(&S, 2))),
            (251, 251, 251)
        );
    }

    #[test]
    fn a_prepared_transaction_holds_its_session() {
        let mut m = Machine::default();
        m.start(&S, 1, false).unwrap();
        m.become_(State::Prepared);
        m.abort_unprepared();
        assert_eq!(
            (code(m.proceed(&S, 1)), code(m.start(&S, 2, false)), code(m.write(&S, 2))),
            (267, 267, 267)
        );
        assert_eq!((m.may_commit(&S, 1).ok(), code(m.may_abort(&S, 1))), (Some(true), 0));
        assert_eq!((m.may_prepare(&S, 1).ok(), m.holds_back(2), m.holds_back(1)), (Some(false), true, false));
    }

    #[test]
    fn retryable_writes_and_transactions_share_the_numbers() {
        let mut m = Machine::default();
        assert_eq!((m.write(&S, 3).ok(), m.write(&S, 3).ok()), (Some(true), Some(false)));
        assert_eq!(
            (code(m.start(&S, 3, false)), code(m.proceed(&S, 3)), code(m.may_commit(&S, 3))),
            (117, 251, 251)
        );
        assert_eq!((code(m.write(&S, 2)), code(m.start(&S, 2, false))), (225, 225));
        m.start(&S, 4, false).unwrap();
        assert_eq!(m.write(&S, 5).ok(), Some(true));
        assert_eq!(m.state(), State::RetryableWrite);
    }

    /// Whatever is asked in whatever order, the state only moves along the arrows, or starts over with a higher
    /// number; `become_` itself would panic otherwise.
    #[test]
    fn only_legal_moves_occur_over_random_commands() {
        for seed in 0..2000u64 {
            let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = move |n: u64| {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                x % n
            };
            let mut m = Machine::default();
            for _ in 0..60 {
                let before = m.clone();
                let number = (before.number + next(4) as i64 - 1).max(0);
                match next(7) {
                    0 | 1 => drop(m.start(&S, number, false)),
                    2 => drop(m.write(&S, number)),
                    3 if m.proceed(&S, number).is_ok() => m.become_(State::Prepared),
                    4 if m.may_commit(&S, number).ok() == Some(true) => {
                        let prepared = m.state() == State::Prepared;
                        m.become_(if prepared {
                            State::CommittingPrepared
                        } else {
                            State::CommittingUnprepared
                        });
                        if !prepared && next(4) == 0 {
                            m.abort_unprepared()
                        } else {
                            m.become_(State::Committed)
                        }
                    }
                    5 if m.may_abort(&S, number).is_ok() => {
                        let prepared = m.state() == State::Prepared;
                        m.become_(if prepared { State::AbortedPrepared } else { State::AbortedUnprepared });
                    }
                    _ => m.abort_unprepared(),
                }
                if m.number == before.number {
                    let over = matches!(before.state, State::Committed | State::AbortedPrepared);
                    assert!(!over || m.state == before.state, "{before:?} {m:?}");
                } else {
                    assert!(
                        m.number > before.number && !before.state.holds_the_session(),
                        "{before:?} {m:?}"
                    );
                }
            }
        }
    }
}
