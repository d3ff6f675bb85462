//! What is open of a multi-document transaction, and what it has met.
//!
//! It lies on the session between statements ([`OpenTxn`]): a storage unit with its snapshot and its writes, shared locks of the
//! collections that the transaction met, its place inside the write gate. While a statement runs, it hangs on the operation
//! ([`Statement`]), where the door finds it.

pub mod conflicts;
mod meet;
mod memory;
pub mod metrics;
mod open;
pub(crate) mod source;
mod statement;

pub use open::OpenTxn;
pub use statement::{Statement, open_txn, statement};

use crate::Access;
use metrics::Metrics;
use pando_base::{Result, SessionId, Timestamp};
use pando_command::OpCtx;
use pando_storage::ReadAt;
use std::sync::Arc;

impl Access {
    /// Opens a transaction on the state at `at`.
    pub fn begin_transaction(
        &self,
        ctx: &OpCtx,
        (lsid, number): (SessionId, i64),
        at: ReadAt,
        metrics: &Arc<Metrics>,
    ) -> Result<Arc<OpenTxn>> {
        let unit = self.catalog.begin_transaction(at, (lsid, number))?;
        let read_timestamp = match at {
            ReadAt::Latest => Timestamp::ZERO,
            _ => unit.txn().read_ts(),
        };
        let cache = self.catalog.storage().memory_limit();
        let open = OpenTxn::begin(ctx, lsid, number, unit, read_timestamp, metrics.clone(), cache);
        Ok(Arc::new(open))
    }
}
