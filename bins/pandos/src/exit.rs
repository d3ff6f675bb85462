//! Exit codes, as mongos uses them.

/// Ended as asked.
pub(crate) const CLEAN: u8 = 0;
pub(crate) const FAILED: u8 = 1;
/// The command line or the configuration file cannot be used.
pub(crate) const BAD_OPTIONS: u8 = 2;
/// An address cannot be listened on.
pub(crate) const NET: u8 = 48;
