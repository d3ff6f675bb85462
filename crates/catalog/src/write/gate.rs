//! The gate of replicated writes: open on a writable primary and on a standalone node, closed elsewhere (R-LOCK).
//!
//! Every unit that leaves entries in the log passes it when it begins and leaves it when it ends, so once the
//! gate is closed and the last unit has left, nothing of this node's own comes into the log any more. What is
//! replicated from another member, and the `local` database, do not pass it.

use crate::lock::Counts;
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Result};
use pando_env::op_locks::{self, Class, Mode, OpLocks};
use pando_env::sync::Notify;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CLOSED: u64 = 1 << 63;
/// Closed for the life of this process, whatever its role.
const READ_ONLY: u64 = 1 << 62;

#[derive(Clone, Default)]
pub struct WriteGate(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The closed bit, and how many are inside.
    state: AtomicU64,
    /// Since the start.
    entered: AtomicU64,
    left: Notify,
    /// Those who closed it.
    alone: Mutex<Counts>,
}

/// Inside the gate until dropped.
#[must_use]
pub struct Entered(Arc<Inner>, Option<Arc<OpLocks>>);

impl Entered {
    /// From here on a transaction holds it, whatever its operation.
    pub fn of_no_operation(mut self) -> Entered {
        self.leave_op();
        self
    }
    fn leave_op(&mut self) {
        if let Some(op) = self.1.take() {
            op.released(Class::ReplicationStateTransition, Mode::Shared);
        }
    }
}

impl WriteGate {
    /// Closed: the operation began on a primary that is none any more (or never was).
    pub fn enter(&self) -> Result<Entered> {
        let mut entered = Entered(self.0.clone(), None);
        let before = self.0.state.fetch_add(1, SeqCst);
        if before & READ_ONLY != 0 {
            drop(entered);
            let text = "Cannot execute a write operation in read-only mode";
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
        if before & CLOSED != 0 {
            drop(entered);
            return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
        }
        self.0.entered.fetch_add(1, Relaxed);
        entered.1 = op_locks::current();
        if let Some(op) = &entered.1 {
            op.acquired(Class::ReplicationStateTransition, Mode::Shared);
        }
        Ok(entered)
    }
    /// It was closed, and had to be waited for until it was empty.
    pub fn note_alone(&self, waited: Option<Duration>) {
        let mut counts = self.0.alone.lock().unwrap_or_else(poisoned);
        counts.exclusive += 1;
        if let Some(waited) = waited {
            counts.exclusive_waits += 1;
            counts.exclusive_us += waited.as_micros() as u64;
        }
    }
    pub fn counts(&self) -> Counts {
        let counts = *self.0.alone.lock().unwrap_or_else(poisoned);
        Counts { shared: self.0.entered.load(Relaxed), ..counts }
    }
    /// How many are inside.
    pub fn inside(&self) -> u64 {
        self.0.state.load(SeqCst) & !(CLOSED | READ_ONLY)
    }
    /// Nothing is written by this process.
    pub fn make_read_only(&self) {
        self.0.state.fetch_or(READ_ONLY, SeqCst);
    }
    pub fn is_read_only(&self) -> bool {
        self.0.state.load(SeqCst) & READ_ONLY != 0
    }
    pub fn open(&self) {
        self.0.state.fetch_and(!CLOSED, SeqCst);
    }
    pub fn close(&self) {
        self.0.state.fetch_or(CLOSED, SeqCst);
    }
    pub fn is_open(&self) -> bool {
        self.0.state.load(SeqCst) & (CLOSED | READ_ONLY) == 0
    }
    /// Resolves when nobody is inside. Close it first.
    pub async fn empty(&self) {
        loop {
            let seen = self.0.left.version();
            if self.inside() == 0 {
                return;
            }
            self.0.left.changed(seen).await;
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.leave_op();
        // Only a closed gate has somebody waiting for the last one.
        if self.0.state.fetch_sub(1, SeqCst) & !READ_ONLY == CLOSED | 1 {
            self.0.left.bump();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_gate_lets_nobody_in_and_tells_when_the_last_one_has_left() {
        let gate = WriteGate::default();
        let inside = gate.enter().unwrap();
        gate.close();
        assert_eq!(gate.enter().err().map(|e| e.code), Some(ErrorCode::NotWritablePrimary));
        let mut empty = std::pin::pin!(gate.empty());
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(empty.as_mut().poll(&mut cx).is_pending());
        drop(inside);
        assert!(empty.as_mut().poll(&mut cx).is_ready());
        gate.open();
        assert!(gate.enter().is_ok() && gate.is_open());
        gate.make_read_only();
        assert_eq!(gate.enter().err().map(|e| e.code), Some(ErrorCode::IllegalOperation));
        gate.close();
        gate.open();
        assert!(!gate.is_open() && gate.is_read_only());
    }
}
