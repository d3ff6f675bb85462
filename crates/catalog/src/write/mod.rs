//! The one write path: a document, its record, its keys and its log entry in one unit.

pub(crate) mod capped;
pub(crate) mod crud;
pub(crate) mod document;
pub(crate) mod gate;
pub(crate) mod index_entries;
pub mod observer;
pub(crate) mod oid;
pub(crate) mod record_id;
pub(crate) mod touched;
pub(crate) mod unit;
pub(crate) mod validation;
