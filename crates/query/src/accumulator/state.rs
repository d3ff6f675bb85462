//! What every accumulator can do.

use crate::ctx::QueryCtx;
use crate::expr::Val;
use pando_base::Result;

pub(crate) trait Accumulator: Send {
    fn add(&mut self, v: Val<'_>, ctx: &QueryCtx) -> Result<()>;
    fn result(&mut self) -> Result<Val<'static>>;
    /// No further value changes it, and so none is worth finding out.
    fn is_settled(&self) -> bool {
        false
    }
    /// Whether it can go on after a result was taken.
    fn goes_on(&self) -> bool {
        true
    }
    /// As `add`, for accumulators that choose by a sort key.
    fn add_keyed(&mut self, _key: &[u8], v: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        self.add(v, ctx)
    }
    /// Bytes beyond the struct itself.
    fn heap_bytes(&self) -> usize {
        0
    }
    /// The state as a value that [`Accumulator::merge`] of a fresh accumulator understands.
    fn partial(&mut self) -> Result<Val<'static>>;
    fn merge(&mut self, partial: Val<'_>, ctx: &QueryCtx) -> Result<()>;
}
