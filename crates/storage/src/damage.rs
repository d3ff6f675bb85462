//! What to say of a file that cannot be what was written: which one it is, and the way out.

use pando_base::{Error, ErrorCode};
use std::fmt::Display;

const WAY_OUT: &str = "the data directory is damaged. Empty it and let this member copy the data of its \
                       set again, or restore a backup; a single server's data can be saved as far as it can be read with \
                       mongodump";

#[cold]
pub(crate) fn damaged(what: impl Display) -> Error {
    Error::new(ErrorCode::InternalError, format!("{what}: {WAY_OUT}"))
}

/// The same of a file that is none of this folder's: there is nothing to empty or to restore.
pub(crate) fn without_way_out(text: &str) -> &str {
    text.strip_suffix(WAY_OUT).map_or(text, |what| what.trim_end_matches(": "))
}
