//! What exists, as data: collections, views, their options and names, the durable rows and the snapshot in memory.

pub(crate) mod collection;
pub(crate) mod durable;
pub mod names;
pub mod options;
pub(crate) mod sizes;
pub(crate) mod snapshot;
pub(crate) mod stored_options;
pub(crate) mod table;
pub(crate) mod tables;
pub(crate) mod views;
pub(crate) mod write_guard;
