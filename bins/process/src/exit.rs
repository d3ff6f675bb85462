//! Exit codes, as mongod uses them: service managers and launchers tell failures apart by these.

/// Ended as asked.
pub const CLEAN: u8 = 0;
pub const FAILED: u8 = 1;
/// The command line or the configuration file cannot be used.
pub const BAD_OPTIONS: u8 = 2;
/// What was written may not be on disk: the process ended at once.
pub const ABRUPT: u8 = 14;
/// An address cannot be listened on.
pub const NET: u8 = 48;
/// The disk does not answer any more.
pub const WATCHDOG: u8 = 61;
/// The data folder cannot be used.
pub const CANNOT_START: u8 = 100;
