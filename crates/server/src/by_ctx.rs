//! The operation as the catalog asks it whether to go on.

use pando_base::Result;
use pando_catalog::Interrupt;
use pando_command::OpCtx;

/// Stops long writes when their operation is killed or out of time.
pub(crate) struct ByCtx<'a>(pub(crate) &'a OpCtx);

impl Interrupt for ByCtx<'_> {
    fn check(&self) -> Result<()> {
        self.0.check_interrupt()
    }
}
