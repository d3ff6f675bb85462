//! The one error type. Its code, labels and extra fields become the reply document;
//! nothing below the command pipeline builds replies for errors.

use crate::{ErrorCode, limits};
use std::borrow::Cow;
use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed operation as MongoDB reports it: `{code, codeName, errmsg, errorLabels, ...extra}`.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
pub struct Inner {
    pub code: ErrorCode,
    pub message: Cow<'static, str>,
    /// Labels beyond those derived from the code's class (for fail points and transactions).
    pub labels: Vec<String>,
    /// A BSON document whose fields are merged into the reply beside `code`
    /// (for example `keyPattern` and `keyValue` of a duplicate key). Empty = none.
    pub extra: Vec<u8>,
}

impl std::ops::Deref for Error {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}
impl std::ops::DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.0
    }
}

/// What a text quotes may be as large as a document: the reply has to fit into one.
fn bounded(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.len() <= limits::ERROR_TEXT_BYTES_MAX {
        return text;
    }
    let at = text.floor_char_boundary(limits::ERROR_TEXT_BYTES_MAX);
    Cow::Owned(format!("{}... ({} bytes more)", &text[..at], text.len() - at))
}

impl Error {
    #[cold]
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Error {
        let message = bounded(message.into());
        Error(Box::new(Inner { code, message, labels: Vec::new(), extra: Vec::new() }))
    }
    /// An error that has a text and nothing else: the reply carries neither `code` nor `codeName`. Some old commands of
    /// MongoDB fail so.
    #[cold]
    pub fn uncoded(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorCode::OK, message)
    }
    /// An error with a bare number (`codeName` becomes `Location<n>` when the number has no name).
    #[cold]
    pub fn location(code: i32, message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorCode(code), message)
    }
    pub fn bad_value(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorCode::BadValue, message)
    }
    pub fn type_mismatch(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorCode::TypeMismatch, message)
    }
    pub fn failed_to_parse(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorCode::FailedToParse, message)
    }
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorCode::InternalError, message)
    }
    pub fn write_conflict() -> Error {
        Error::new(
            ErrorCode::WriteConflict,
            "Caused by :: Write conflict during plan execution and yielding is disabled. :: Please retry your \
             operation or multi-document transaction.",
        )
    }
    /// Attaches a BSON document of extra reply fields.
    pub fn with_extra(mut self, bson_document: Vec<u8>) -> Error {
        self.extra = bson_document;
        self
    }
    pub fn with_label(mut self, label: &str) -> Error {
        self.labels.push(label.to_owned());
        self
    }
    /// Puts "`context` :: caused by :: " in front of the message, as MongoDB does.
    pub fn context(mut self, context: impl fmt::Display) -> Error {
        self.message = format!("{context} :: caused by :: {}", self.message).into();
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}
impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Error {
        match e.kind() {
            std::io::ErrorKind::StorageFull => {
                let text = format!("the disk is full, make room for the data directory ({e})");
                Error::new(ErrorCode::OutOfDiskSpace, text)
            }
            _ => Error::internal(e.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_quotes_a_whole_document_is_cut() {
        let e = Error::bad_value("\u{e4}".repeat(limits::ERROR_TEXT_BYTES_MAX));
        assert!(e.message.len() < limits::ERROR_TEXT_BYTES_MAX + 100);
        assert!(e.message.ends_with("... (1048576 bytes more)"), "{}", &e.message[e.message.len() - 60..]);
        assert_eq!(Error::bad_value("short").message, "short");
    }
}
