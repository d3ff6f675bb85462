//! The argument of `$changeStream`.

use super::token::Token;
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_bson::{Elem, RawDoc, Value};

/// Whether updates bring the whole document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FullDocument {
    /// Of inserts and replacements only.
    Default,
    /// As it is when the event is read.
    UpdateLookup,
    /// As the update left it, if that is known.
    WhenAvailable,
    /// The same; a stream without it ends.
    Required,
}

/// Whether events bring the document as it was before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BeforeChange {
    Off,
    WhenAvailable,
    Required,
}

/// Where a stream begins.
#[derive(Clone, Debug)]
pub enum Start {
    Now,
    At(Timestamp),
    /// `resumeAfter`, `startAfter`.
    After(Token),
}

#[derive(Clone, Debug)]
pub struct Spec {
    pub full_document: FullDocument,
    pub before_change: BeforeChange,
    pub start: Start,
    pub all_changes: bool,
    pub expanded: bool,
    pub system_events: bool,
    pub migrations: bool,
    pub raw_description: bool,
    pub on_config: bool,
}

fn wrong(field: &str, v: &Value<'_>, wanted: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '$changeStream.{field}' is the wrong type '{}', expected type '{wanted}'",
        v.type_name()
    ))
}
fn bool_of(e: &Elem<'_>) -> Result<bool> {
    match e.value() {
        Value::Boolean(b) => Ok(b),
        v => Err(Error::type_mismatch(format!(
            "Field '{}' should be a boolean value, but found: {}",
            e.name(),
            v.type_name()
        ))),
    }
}
fn one_of<T: Copy>(e: &Elem<'_>, choices: &[(&str, T)]) -> Result<T> {
    let v = e.value();
    let Value::String(said) = v else { return Err(wrong(e.name(), &v, "string")) };
    let found = choices.iter().find(|(name, _)| *name == said);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        Error::bad_value(format!(
            "Enumeration value '{said}' for field '$changeStream.{}' is not a valid value.",
            e.name()
        ))
    })
}
fn token_of(e: &Elem<'_>) -> Result<Token> {
    match e.value() {
        Value::Document(d) => Token::parse(d),
        v => Err(wrong(e.name(), &v, "object")),
    }
}

const FULL_DOCUMENT: [(&str, FullDocument); 4] = [
    ("default", FullDocument::Default),
    ("updateLookup", FullDocument::UpdateLookup),
    ("whenAvailable", FullDocument::WhenAvailable),
    ("required", FullDocument::Required),
];
const BEFORE_CHANGE: [(&str, BeforeChange); 3] = [
    ("off", BeforeChange::Off),
    ("whenAvailable", BeforeChange::WhenAvailable),
    ("required", BeforeChange::Required),
];

/// The ways to say where a stream begins, as they are given.
#[derive(Default)]
struct Begins {
    resume_after: Option<Token>,
    start_after: Option<Token>,
    at: Option<Timestamp>,
}

impl Begins {
    /// One of them at most may be given.
    fn start(self) -> Result<Start> {
        let Begins { resume_after, start_after, at } = self;
        if resume_after.is_some() && start_after.is_some() {
            return Err(Error::location(
                50865,
                "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage",
            ));
        }
        if at.is_some() && (resume_after.is_some() || start_after.is_some()) {
            return Err(Error::location(
                40674,
                "Only one type of resume option is allowed, but multiple were found",
            ));
        }
        if resume_after.as_ref().is_some_and(|t| t.from_invalidate) {
            return Err(Error::new(
                ErrorCode::InvalidResumeToken,
                "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate \
                 notification",
            ));
        }
        Ok(match (resume_after.or(start_after), at) {
            (Some(token), _) if token.is_event => Start::After(token),
            (Some(mark), _) => Start::At(mark.time),
            (None, Some(at)) => Start::At(at),
            (None, None) => Start::Now,
        })
    }
}

impl Spec {
    pub fn parse(doc: &RawDoc) -> Result<Spec> {
        let mut begins = Begins::default();
        let mut s = Spec {
            full_document: FullDocument::Default,
            before_change: BeforeChange::Off,
            start: Start::Now,
            all_changes: false,
            expanded: false,
            system_events: false,
            migrations: false,
            raw_description: false,
            on_config: false,
        };
        for e in doc {
            let none = matches!(e.value(), Value::Null | Value::Undefined);
            match e.name() {
                "fullDocument"
                | "fullDocumentBeforeChange"
                | "resumeAfter"
                | "startAfter"
                | "startAtOperationTime"
                    if none => {}
                "fullDocument" => s.full_document = one_of(&e, &FULL_DOCUMENT)?,
                "fullDocumentBeforeChange" => s.before_change = one_of(&e, &BEFORE_CHANGE)?,
                "resumeAfter" => begins.resume_after = Some(token_of(&e)?),
                "startAfter" => begins.start_after = Some(token_of(&e)?),
                "startAtOperationTime" => match e.value() {
                    Value::Timestamp(ts) => begins.at = Some(ts),
                    v => return Err(wrong(e.name(), &v, "timestamp")),
                },
                "allChangesForCluster" => s.all_changes = bool_of(&e)?,
                "showExpandedEvents" => s.expanded = bool_of(&e)?,
                "showSystemEvents" => s.system_events = bool_of(&e)?,
                "showMigrationEvents" => s.migrations = bool_of(&e)?,
                "showRawUpdateDescription" => s.raw_description = bool_of(&e)?,
                "allowToRunOnConfigDB" => s.on_config = bool_of(&e)?,
                name => {
                    return Err(Error::location(
                        40415,
                        format!("BSON field '$changeStream.{name}' is an unknown field."),
                    ));
                }
            }
        }
        s.start = begins.start()?;
        Ok(s)
    }
}
