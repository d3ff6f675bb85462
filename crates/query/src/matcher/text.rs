//! `$text`: what is searched, as it was written, and what that means to the collection's text index.

use crate::text::{Sensitivity, TextQuery, TextSpec};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct TextNode {
    pub search: String,
    /// As given.
    language: Option<String>,
    sensitivity: Sensitivity,
    /// What it means to the index.
    pub meaning: Option<Arc<TextMeaning>>,
}

#[derive(Debug)]
pub struct TextMeaning {
    pub query: TextQuery,
    pub spec: Arc<TextSpec>,
}

impl TextNode {
    pub(super) fn parse(e: Elem<'_>) -> Result<TextNode> {
        let Value::Document(spec) = e.value() else {
            return Err(Error::bad_value("$text expects an object"));
        };
        let wrong = |name: &str, want: &str, v: Value<'_>| {
            Error::type_mismatch(format!(
                "\"{name}\" had the wrong type. Expected {want}, found {}",
                v.type_name()
            ))
        };
        let string = |name: &str| match spec.get(name) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s.to_owned())),
            Some(v) if v.string_bytes().is_some() => Err(crate::text::not_utf8()),
            Some(v) => Err(wrong(name, "string", v)),
        };
        let flag = |name: &str| match spec.get(name) {
            None => Ok(None),
            Some(Value::Boolean(b)) => Ok(Some(b)),
            Some(v) => Err(wrong(name, "bool", v)),
        };
        let search = string("$search")?
            .ok_or_else(|| Error::new(ErrorCode::NoSuchKey, "Missing expected field \"$search\""))?;
        let language = string("$language")?;
        let (case, diacritics) = (flag("$caseSensitive")?, flag("$diacriticSensitive")?);
        let known = 1
            + usize::from(language.is_some())
            + usize::from(case.is_some())
            + usize::from(diacritics.is_some());
        if spec.count() > known {
            return Err(Error::bad_value("extra fields in $text"));
        }
        let sensitivity = Sensitivity {
            case: case.unwrap_or(false),
            diacritics: diacritics.unwrap_or(false),
            ..Sensitivity::default()
        };
        Ok(TextNode { search, language, sensitivity, meaning: None })
    }
    pub(super) fn holds(&self, doc: &RawDoc) -> Result<bool> {
        match &self.meaning {
            Some(m) => m.query.matches(doc, &m.spec),
            None => Err(no_index()),
        }
    }
    fn language_name(&self) -> &str {
        match (&self.language, &self.meaning) {
            (Some(name), _) if !name.is_empty() => name,
            (_, Some(m)) => m.query.language.name(),
            _ => "",
        }
    }
    pub(super) fn write(&self, b: &mut DocBuilder) {
        b.doc("$text", |d| {
            d.str("$search", &self.search)
                .str("$language", self.language_name())
                .bool("$caseSensitive", self.sensitivity.case)
                .bool("$diacriticSensitive", self.sensitivity.diacritics);
        });
    }
    /// As in messages of the planner.
    pub(super) fn debug(&self) -> String {
        format!(
            "TEXT : query={}, language={}, caseSensitive={}, diacriticSensitive={}, tag=NULL",
            self.search,
            self.language_name(),
            u8::from(self.sensitivity.case),
            u8::from(self.sensitivity.diacritics)
        )
    }
    /// The same, as the index understands it.
    pub(super) fn with_meaning(&self, spec: &Arc<TextSpec>) -> Result<TextNode> {
        let language = match self.language.as_deref().filter(|name| !name.is_empty()) {
            None => spec.default_language(),
            Some(name) => spec.language_of(name).ok_or_else(|| {
                Error::bad_value(format!(
                    "unsupported language: \"{name}\" for text index version {}",
                    spec.version
                ))
            })?,
        };
        let sensitivity = Sensitivity { ascii: spec.letters().ascii, ..self.sensitivity };
        let query = TextQuery::parse(&self.search, language, sensitivity);
        let meaning = Some(Arc::new(TextMeaning { query, spec: spec.clone() }));
        Ok(TextNode { meaning, ..self.clone() })
    }
}

pub(crate) fn no_index() -> Error {
    Error::new(ErrorCode::IndexNotFound, "text index required for $text query")
}
