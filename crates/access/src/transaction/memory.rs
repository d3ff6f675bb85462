//! What all open transactions together hold in memory, and its bound.
//!
//! ```text
//!   bound = transactionTooLargeForCacheThreshold x cache
//!   a transaction above it alone ─► TransactionTooLargeForCache: it would not fit the next time either
//!   all together above it        ─► the one that asks for more ends with WriteConflict, and may be tried again
//! ```
//! An open transaction's writes lie in its own overlay until the commit, so nothing of them can be flushed meanwhile.

use pando_base::{Error, ErrorCode, Result};
use pando_metrics::Counter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of all open transactions.
#[derive(Default)]
pub struct Memory {
    bytes: AtomicUsize,
    /// Transactions given up because they alone were too large.
    pub too_large: Counter,
}

impl Memory {
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}

/// One transaction's part, given back when dropped.
pub(super) struct Share {
    of: Arc<Memory>,
    bytes: usize,
    max: usize,
}

impl Share {
    pub(super) fn new(of: Arc<Memory>, max: usize) -> Share {
        Share { of, bytes: 0, max }
    }
    /// Notes what the transaction holds now; an error when it may not hold more than before.
    pub(super) fn set(&mut self, bytes: usize) -> Result<()> {
        let grows = bytes > self.bytes;
        let all = if grows {
            let by = bytes - self.bytes;
            self.of.bytes.fetch_add(by, Relaxed) + by
        } else {
            let by = self.bytes - bytes;
            self.of.bytes.fetch_sub(by, Relaxed) - by
        };
        self.bytes = bytes;
        if !grows || all <= self.max {
            return Ok(());
        }
        if bytes > self.max {
            self.of.too_large.inc();
            let text = "transaction is too large and will not fit in the storage engine cache";
            return Err(Error::new(ErrorCode::TransactionTooLargeForCache, text));
        }
        let text =
            "the open transactions together fill the storage engine cache; please retry the transaction";
        Err(Error::new(ErrorCode::WriteConflict, text))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alone_is_too_large_and_several_conflict() {
        let all = Arc::new(Memory::default());
        let (mut a, mut b) = (Share::new(all.clone(), 100), Share::new(all.clone(), 100));
        assert!(a.set(60).is_ok() && b.set(40).is_ok());
        assert_eq!(b.set(50).unwrap_err().code, ErrorCode::WriteConflict);
        // What shrinks is never in the way.
        assert!(b.set(45).is_ok());
        drop(b);
        assert_eq!((all.bytes(), a.set(101).unwrap_err().code), (60, ErrorCode::TransactionTooLargeForCache));
        drop(a);
        assert_eq!((all.bytes(), all.too_large.get()), (0, 1));
    }
}
