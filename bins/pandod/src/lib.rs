//! The process around a server: what `pandod` and `pando up` share.

pub mod allocator;
mod audit;
pub mod command_line;
pub mod encryption;
pub mod exit;
mod keyfile;
mod panics;
mod secret_file;
pub mod start;
mod tls;
pub mod version;
mod watchdog;
