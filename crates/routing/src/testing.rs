//! For the tests of this crate.

use pando_bson::{DocBuf, DocBuilder, extjson};

pub(crate) fn doc(json: &str) -> DocBuf {
    let mut out = DocBuilder::new();
    out.document(&extjson::parse(json).expect(json));
    out.finish()
}
