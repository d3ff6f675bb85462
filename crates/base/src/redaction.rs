//! What clients have sent, and what may be in the log of it.
//!
//! ```text
//!   a log line's attribute ─┬─ Plain: numbers, times, names of collections, paths, errors of the system   always shown
//!                           └─ ClientData: documents, texts, errors (which repeat what a client said)       "###" where
//!                              redactClientLogData is on
//! ```
//! A value that is neither cannot be put into the log, so whoever adds a line has to say which it is. Names of fields and of collections
//! are shown in either case, as on MongoDB.

use crate::{Error, Namespace, OpTime, Timestamp, Uuid};
use std::fmt::{Display, Write};

/// Stands for every value that is not shown.
pub const REDACTED: &str = "###";

/// May hold what a client has sent.
pub trait ClientData {
    /// Appends JSON: as it is, or with [`REDACTED`] for each value.
    fn push_json(&self, out: &mut String, redacted: bool);
}

/// Holds nothing that a client has sent, but names of collections and indexes.
pub trait Plain: Display {}

/// A text that a client has sent.
pub struct ClientText<'a>(pub &'a str);

impl ClientData for ClientText<'_> {
    fn push_json(&self, out: &mut String, redacted: bool) {
        push_json_string(out, if redacted { REDACTED } else { self.0 });
    }
}

/// Its message may repeat a value (`E11000 duplicate key`); its code never does.
impl ClientData for Error {
    fn push_json(&self, out: &mut String, redacted: bool) {
        match redacted {
            true => push_json_string(out, &format!("{}: {REDACTED}", self.code.name())),
            false => push_json_string(out, &self.message),
        }
    }
}

/// An error with the name of its code before its message.
pub struct WithCode<'a>(pub &'a Error);

impl ClientData for WithCode<'_> {
    fn push_json(&self, out: &mut String, redacted: bool) {
        match redacted {
            true => self.0.push_json(out, redacted),
            false => push_json_string(out, &self.0.to_string()),
        }
    }
}

impl<T: ClientData + ?Sized> ClientData for &T {
    fn push_json(&self, out: &mut String, redacted: bool) {
        (**self).push_json(out, redacted);
    }
}

impl<T: Plain + ?Sized> Plain for &T {}
impl Plain for str {}
impl Plain for String {}
impl Plain for i32 {}
impl Plain for i64 {}
impl Plain for u16 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for usize {}
impl Plain for Namespace {}
impl Plain for OpTime {}
impl Plain for Timestamp {}
impl Plain for Uuid {}
impl Plain for std::io::Error {}
impl Plain for std::net::SocketAddr {}
impl Plain for std::panic::Location<'_> {}
impl Plain for std::path::Display<'_> {}
impl Plain for std::backtrace::Backtrace {}

/// Appends `s` as a JSON string literal.
pub fn push_json_string(out: &mut String, s: &str) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 || c as u32 == 0x7F => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    fn of(data: &impl ClientData, redacted: bool) -> String {
        let mut out = String::new();
        data.push_json(&mut out, redacted);
        out
    }

    #[test]
    fn an_error_keeps_its_code() {
        let e = Error::new(ErrorCode::DuplicateKey, "E11000 dup key: { a: \"s3cret\" }");
        assert_eq!(of(&e, false), "\"E11000 dup key: { a: \\\"s3cret\\\" }\"");
        assert_eq!(of(&&e, true), "\"DuplicateKey: ###\"");
        assert_eq!(of(&ClientText("s3cret"), true), "\"###\"");
    }
}
