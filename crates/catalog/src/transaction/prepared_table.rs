//! The transactions that are prepared on this node.

use crate::schema::write_guard::WriteGuard;
use crate::write::transaction_event::{TxnId, TxnWrites};
use crate::write::undecided::Undecided;
use pando_base::OpTime;
use pando_base::panics::poisoned;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What the caller knows of a transaction, for whoever looks at it.
pub type About = Arc<dyn Any + Send + Sync>;

/// One of them: its writes, and what stands still for it.
pub(crate) struct Prepared {
    pub(crate) unit: Undecided,
    pub(crate) last: OpTime,
    /// Monotonic: when it was prepared here.
    pub(crate) since: Duration,
    pub(crate) writes: TxnWrites,
    /// Of a primary: definitions stand still.
    pub(crate) held: Vec<WriteGuard>,
    pub(crate) about: Option<About>,
}

/// All that are prepared on this node.
#[derive(Default)]
pub(crate) struct PreparedTable(Mutex<BTreeMap<TxnId, Prepared>>);

impl PreparedTable {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<TxnId, Prepared>> {
        self.0.lock().unwrap_or_else(poisoned)
    }
}
