//! Who may end a command before it is done.

use pando_base::Result;

/// Told between units whether to go on.
pub trait Interrupt: Sync {
    fn check(&self) -> Result<()>;
}

/// Never interrupts.
pub struct Uninterrupted;

impl Interrupt for Uninterrupted {
    fn check(&self) -> Result<()> {
        Ok(())
    }
}
