//! The one write path: a document, its record, its keys and its log entry in one unit.

pub(crate) mod array_marks;
pub(crate) mod begin;
pub(crate) mod capped;
mod carried_out;
pub(crate) mod collected;
pub(crate) mod crud;
pub(crate) mod document;
pub(crate) mod duplicate;
pub(crate) mod entry_layout;
pub(crate) mod gate;
pub(crate) mod index_entries;
pub(crate) mod interrupt;
pub(crate) mod length_prefix;
pub mod observer;
pub(crate) mod oid;
pub(crate) mod op;
pub(crate) mod record_id;
pub(crate) mod touched;
pub(crate) mod transaction_event;
pub(crate) mod undecided;
pub(crate) mod unit;
pub(crate) mod validation;
