//! Extended JSON v2, out and in: for log lines, tools and golden files.
//!
//! *Canonical* keeps every type; *relaxed* prints numbers and dates the way people read them. The reader takes
//! both at once. It is strict about the wrappers (`{"$oid": …}` with a wrong or additional field is an error) and
//! leaves every other `$` name alone, so query operators pass through. Nesting is bounded by the document
//! limit; nothing here is for hot paths.

mod forms;
mod read;
mod write;

pub use forms::{base64, date_text, unbase64};
pub use read::{parse, parse_prefix, parse_shell, parse_value};
pub use write::{write_doc, write_json_string, write_redacted, write_value};

/// A document of a client's in a line of the log.
impl pando_base::redaction::ClientData for RawDoc {
    fn push_json(&self, out: &mut String, redacted: bool) {
        match redacted {
            true => write_redacted(out, self, pando_base::redaction::REDACTED),
            false => write_doc(out, self, Mode::Relaxed),
        }
    }
}

use crate::raw::RawDoc;

/// Which of the two forms to print.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Canonical,
    Relaxed,
}

pub fn to_canonical(doc: &RawDoc) -> String {
    let mut out = String::with_capacity(doc.byte_len() * 2);
    write_doc(&mut out, doc, Mode::Canonical);
    out
}

pub fn to_relaxed(doc: &RawDoc) -> String {
    let mut out = String::with_capacity(doc.byte_len() * 2);
    write_doc(&mut out, doc, Mode::Relaxed);
    out
}
