//! What a text index covers: fields with weights, languages, and the ordinary fields before and behind the text.

// Words come from clients, who must not be able to choose keys that collide.
#![allow(clippy::disallowed_types)]

use super::Language;
use super::fields::each_field;
use super::tokens::{Sensitivity, Tokens};
use pando_base::{Error, Result};
use pando_bson::RawDoc;
use std::collections::{BTreeMap, HashMap};

/// A text index as specified.
#[derive(Clone, Debug)]
pub struct TextSpec {
    /// Ascending by path; `$**` stands for every field.
    pub(super) weights: BTreeMap<String, f64>,
    pub(super) default_language: Language,
    pub(super) language_override: String,
    pub version: i32,
    /// Ordinary fields of the key in front of the term, and behind the score.
    pub prefix: Vec<String>,
    pub suffix: Vec<String>,
}

/// The field of the key pattern that stands for the term, and the one behind it for the score.
pub const TERM_FIELD: &str = "_fts";
pub const SCORE_FIELD: &str = "_ftsx";
const WILDCARD: &str = "$**";
const DEFAULT_WEIGHT: f64 = 1.0;

/// How often a term was met in one text.
#[derive(Default)]
struct Met {
    count: f64,
    /// Each further time counts half of the one before.
    frequency: f64,
    next: f64,
}

impl TextSpec {
    /// From a specification as it is stored.
    pub fn from_index(index: &RawDoc) -> Result<TextSpec> {
        let doc = |name: &str| index.get(name).and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
        let text = |name: &str| index.get(name).and_then(|v| v.as_str());
        let language = text("default_language").unwrap_or("english");
        let version = index.get("textIndexVersion").and_then(|v| v.as_i64()).unwrap_or(3) as i32;
        let known = match version {
            1 => Some(Language::of_first(language)),
            _ => Language::of_name(language),
        };
        let names: Vec<&str> = doc("key").iter().map(|e| e.name()).collect();
        let at = names.iter().position(|n| *n == TERM_FIELD).unwrap_or(names.len());
        let owned = |part: &[&str]| part.iter().map(|n| (*n).to_owned()).collect();
        Ok(TextSpec {
            weights: doc("weights")
                .iter()
                .map(|e| (e.name().to_owned(), e.value().as_f64().unwrap_or(DEFAULT_WEIGHT)))
                .collect(),
            default_language: known
                .ok_or_else(|| Error::internal(format!("a text index in an unknown language: {language}")))?,
            language_override: text("language_override").unwrap_or("language").to_owned(),
            version,
            prefix: owned(&names[..at]),
            suffix: owned(names.get(at + 2..).unwrap_or_default()),
        })
    }

    pub fn default_language(&self) -> Language {
        self.default_language
    }
    /// How the terms in the index are made.
    pub(crate) fn letters(&self) -> Sensitivity {
        Sensitivity { ascii: self.version < 3, ..Sensitivity::default() }
    }
    /// Version 1 takes any name, in lower case, and does without a language for those it does not know.
    pub(crate) fn language_of(&self, name: &str) -> Option<Language> {
        match self.is_first() {
            true => Some(Language::of_first(name)),
            false => Language::of_name(name),
        }
    }
    /// An index of version 1, which looks into documents in its own way.
    pub(super) fn is_first(&self) -> bool {
        self.version == 1
    }
    pub(super) fn is_wildcard(&self) -> bool {
        self.weights.contains_key(WILDCARD)
    }
    /// The weight of a text at `path`; `None` when it is not covered.
    pub(super) fn weight_of(&self, path: &str) -> Option<f64> {
        match self.weights.get(WILDCARD) {
            Some(all) if self.is_first() => Some(*all),
            all => self.weights.get(path).or(all).copied(),
        }
    }
    /// Some text at or below `path` is covered.
    pub(super) fn reaches(&self, path: &str) -> bool {
        self.weights.contains_key(path) || self.reaches_below(path)
    }
    pub(super) fn reaches_below(&self, path: &str) -> bool {
        let below = |w: &String| w.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        self.is_wildcard() || self.weights.keys().any(below)
    }

    /// The terms of a document with their scores, ascending.
    pub fn scores(&self, doc: &RawDoc) -> Result<BTreeMap<String, f64>> {
        let mut scores = BTreeMap::new();
        let letters = self.letters();
        let mut tokens = Tokens::new(self.default_language, letters);
        let mut last = self.default_language;
        each_field(self, doc, &mut |field| {
            if field.language != last {
                tokens = Tokens::new(field.language, letters);
                last = field.language;
            }
            add_scores(&tokens, field.text, field.weight, &mut scores);
            true
        })?;
        Ok(scores)
    }
}

/// Adds one text's share. A term scores more where it is a larger part of the text, and most when it is all of it.
fn add_scores(tokens: &Tokens, text: &str, weight: f64, scores: &mut BTreeMap<String, f64>) {
    let mut terms: HashMap<String, Met> = HashMap::new();
    let mut total = 0.0;
    tokens.each(text, |term| {
        let met = terms.entry(term).or_default();
        met.next = if met.next == 0.0 { 1.0 } else { met.next * 2.0 };
        met.count += 1.0;
        met.frequency += 1.0 / met.next;
        total += 1.0;
    });
    for (term, met) in terms {
        let share = (0.5 * met.count / total) + 0.5;
        let whole = if text.len() == term.len() && text.eq_ignore_ascii_case(&term) { 1.1 } else { 1.0 };
        *scores.entry(term).or_insert(0.0) += weight * met.frequency * share * whole;
    }
}
