//! The process around a router: what `pandos` and `pando router` share.

pub mod command_line;
mod start;
