//! `$_requestResumeToken` and `$_resumeAfter` of `find`: a collection scan that somebody else can go on with (R-IS-5).
//!
//! A token is `{$recordId: n}`, the last record of a batch; null stands for the beginning.

use super::find::FindArgs;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_query::plan::{Hint, natural_of};
use pando_query::source::{Direction, RecordId};

pub fn check(a: &FindArgs<'_>) -> Result<()> {
    if !a.resume_token {
        return match a.resume_after {
            Some(_) => {
                Err(Error::bad_value("'requestResumeToken' must be true if 'resumeAfter' is specified"))
            }
            None => Ok(()),
        };
    }
    if a.hint != Some(Hint::Natural(Direction::Forward)) {
        return Err(Error::bad_value("hint must be {$natural:1} if 'requestResumeToken' is enabled"));
    }
    let natural = |d: &RawDoc| natural_of(d).is_ok_and(|n| n.is_some_and(|n| n.is_forward()));
    if a.sort.is_some_and(|s| !natural(s)) {
        return Err(Error::bad_value(
            "sort must be unset or {$natural:1} if 'requestResumeToken' is enabled",
        ));
    }
    parse(a.resume_after).map(drop)
}

/// The record after which a scan is to go on; `None` = from the beginning.
pub fn parse(token: Option<&RawDoc>) -> Result<Option<RecordId>> {
    let Some(token) = token else { return Ok(None) };
    let value = if token.count() == 1 { token.get("$recordId") } else { None };
    match value {
        Some(Value::Int64(n)) => Ok(Some(RecordId::Long(n))),
        Some(Value::Binary { bytes, .. }) => Ok(Some(RecordId::Key(bytes.to_vec().into()))),
        Some(Value::Null) => Ok(None),
        _ => Err(Error::bad_value(
            "Malformed resume token: the '_resumeAfter' object must contain exactly one field named '$recordId', of \
             type NumberLong, BinData or jstNULL.",
        )),
    }
}

pub fn document(at: Option<&RecordId>) -> DocBuf {
    let mut b = DocBuilder::new();
    match at {
        Some(RecordId::Long(n)) => b.i64("$recordId", *n),
        Some(RecordId::Key(key)) => b.binary("$recordId", 0, key),
        None => b.null("$recordId"),
    };
    b.finish()
}
