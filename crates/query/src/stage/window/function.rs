//! A window function while it runs.

use super::partition::Partition;
use crate::ctx::QueryCtx;
use crate::expr::Val;
use pando_base::Result;

/// One window function over the documents of a partition, asked for each of them in order.
pub(super) trait Function: Send {
    /// Before the first document, and even if there is none.
    fn prepare(&mut self, _ctx: &QueryCtx) -> Result<()> {
        Ok(())
    }
    /// A new partition begins.
    fn begin(&mut self, _p: &Partition, _ctx: &QueryCtx) -> Result<()> {
        Ok(())
    }
    /// The value for document `at`, and how many documents were looked at.
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)>;
}
