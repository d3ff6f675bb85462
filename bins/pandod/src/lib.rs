//! The process around a server: what `pandod` and `pando up` share.

pub mod allocator;
pub mod command_line;
pub mod encryption;
mod panics;
pub mod start;
pub mod version;
mod watchdog;

pub use pando_process::exit;
