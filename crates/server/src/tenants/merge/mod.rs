//! The copy of a shard merge: each member of the recipient takes the tenants' tables of a donor in by their files.
//!
//! ```text
//!   donor's primary:      checkpoint held still (`_openBackup`) ────────────────────────────────────► let go
//!   each member:          [`fetch`] files staged ─► [`take_in`] tables named ─► told to the primary
//!   recipient's primary:                                     all have told ─► [`publish`] ─► entries behind the checkpoint
//!   each member:                                             stands behind that ─► [`forget`]
//! ```
//! Whoever orders these steps asks for them until they are done: each may be asked for again, on any member, in any order that the
//! picture allows. What lies in between a crash or another primary: `pando_catalog`'s `import`.

mod copy;
mod fetch;
mod steps;

pub(crate) use fetch::{Donor, fetch};
pub(crate) use steps::{forget, publish, take_in};

use pando_base::{Error, ErrorCode, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether files of another set are being copied or read here: one copy at a time has room.
#[derive(Default)]
pub(crate) struct Taking(Arc<AtomicBool>);

/// As long as any handle of it lives, also one that work on another thread holds.
#[derive(Clone)]
pub(crate) struct Taken {
    _busy: Arc<Busy>,
}

struct Busy(Arc<AtomicBool>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Taking {
    pub(crate) fn is_busy(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
    /// # Errors
    /// 117 while another one goes on.
    pub(crate) fn begin(&self) -> Result<Taken> {
        if self.0.swap(true, Ordering::AcqRel) {
            let text = "files of another set are being taken in here already";
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        Ok(Taken { _busy: Arc::new(Busy(self.0.clone())) })
    }
}
