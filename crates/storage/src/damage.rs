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
