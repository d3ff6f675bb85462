//! `$text` in a filter: parsed here, given its meaning by the collection's text index, answered by a plan.

use super::{Matcher, Node};
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

pub(super) fn parse(e: Elem<'_>) -> Result<Node> {
    let Value::Document(spec) = e.value() else { return Err(Error::bad_value("$text expects an object")) };
    let wrong = |name: &str, want: &str, v: Value<'_>| {
        Error::type_mismatch(format!(
            "\"{name}\" had the wrong type. Expected {want}, found {}",
            v.type_name()
        ))
    };
    let string = |name: &str| match spec.get(name) {
        None => Ok(None),
        Some(Value::String(s)) => Ok(Some(s.to_owned())),
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
    let known =
        1 + usize::from(language.is_some()) + usize::from(case.is_some()) + usize::from(diacritics.is_some());
    if spec.count() > known {
        return Err(Error::bad_value("extra fields in $text"));
    }
    let sensitivity = Sensitivity {
        case: case.unwrap_or(false),
        diacritics: diacritics.unwrap_or(false),
        ..Sensitivity::default()
    };
    Ok(Node::Text(Arc::new(TextNode { search, language, sensitivity, meaning: None })))
}

impl TextNode {
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
    fn with_meaning(&self, spec: &Arc<TextSpec>) -> Result<TextNode> {
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

/// Calls `visit` with every `$text` of the tree and whether it is below a `$nor`.
fn visit(node: &Node, negated: bool, each: &mut dyn FnMut(&TextNode, bool)) {
    match node {
        Node::Text(t) => each(t, negated),
        Node::And(v) | Node::Or(v) => v.iter().for_each(|n| visit(n, negated, each)),
        Node::Nor(v) => v.iter().for_each(|n| visit(n, true, each)),
        Node::Not(n) => visit(n, true, each),
        _ => {}
    }
}

fn give_meaning(node: &mut Node, spec: &Arc<TextSpec>) -> Result<()> {
    match node {
        Node::Text(t) => {
            *t = Arc::new(t.with_meaning(spec)?);
            Ok(())
        }
        Node::And(v) | Node::Or(v) | Node::Nor(v) => v.iter_mut().try_for_each(|n| give_meaning(n, spec)),
        Node::Not(n) => give_meaning(n, spec),
        _ => Ok(()),
    }
}

impl Matcher {
    /// The filter has a `$text`.
    pub fn has_text(&self) -> bool {
        let mut any = false;
        visit(self.root(), false, &mut |_, _| any = true);
        any
    }
    pub(crate) fn text_is_resolved(&self) -> bool {
        let mut all = true;
        visit(self.root(), false, &mut |t, _| all &= t.meaning.is_some());
        all
    }
    /// The same with its `$text` understood as the index does.
    pub(crate) fn with_text_index(&self, spec: &Arc<TextSpec>) -> Result<Matcher> {
        let mut m = self.clone();
        give_meaning(&mut m.scope.root, spec)?;
        let (mut count, mut negated) = (0, false);
        visit(m.root(), false, &mut |_, not| {
            count += 1;
            negated |= not;
        });
        match (negated, count) {
            (true, _) => Err(Error::bad_value("text expression not allowed in nor")),
            (_, 2..) => Err(Error::bad_value("Too many text expressions")),
            _ => Ok(m),
        }
    }
}
