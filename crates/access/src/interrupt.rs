//! An operation as the catalog knows it: something that may have to stop.

use pando_base::Result;
use pando_catalog::Interrupt;
use pando_command::OpCtx;

/// Stops long writes when their operation is killed or out of time.
pub struct ByCtx<'a>(pub &'a OpCtx);

impl Interrupt for ByCtx<'_> {
    fn check(&self) -> Result<()> {
        self.0.check_interrupt()
    }
}
