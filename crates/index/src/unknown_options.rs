//! Options of an index specification that nobody knows.

use crate::spec_check::is_known;
use pando_bson::{DocBuf, DocBuilder, RawDoc};

/// The specification less what no index has (`ignoreUnknownIndexOptions`).
pub fn without_unknown_options(raw: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::with_capacity(raw.byte_len());
    for e in raw {
        if is_known(e.name()) {
            b.elem(e);
        }
    }
    b.finish()
}
