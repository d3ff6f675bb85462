//! The gate of replicated writes: open on a writable primary and on a standalone node, closed elsewhere (R-LOCK).
//!
//! Every unit that leaves entries in the log passes it when it begins and leaves it when it ends, so once the
//! gate is closed and the last unit has left, nothing of this node's own comes into the log any more. What is
//! replicated from another member, and the `local` database, do not pass it.

use pando_base::{Error, ErrorCode, Result};
use pando_env::sync::Notify;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const CLOSED: u64 = 1 << 63;
/// Closed for the life of this process, whatever its role.
const READ_ONLY: u64 = 1 << 62;

#[derive(Clone, Default)]
pub struct WriteGate(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The closed bit, and how many are inside.
    state: AtomicU64,
    left: Notify,
}

/// Inside the gate until dropped.
#[must_use]
pub struct Entered(Arc<Inner>);

impl WriteGate {
    /// Closed: the operation began on a primary that is none any more (or never was).
    pub fn enter(&self) -> Result<Entered> {
        let entered = Entered(self.0.clone());
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
        Ok(entered)
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
            if self.0.state.load(SeqCst) & !(CLOSED | READ_ONLY) == 0 {
                return;
            }
            self.0.left.changed(seen).await;
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
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
