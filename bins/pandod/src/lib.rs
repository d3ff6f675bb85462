//! The process around a server: what `pandod` and `pando up` share.

pub mod allocator;
pub mod exit;
pub mod start;
pub mod version;
