//! What a search string asks for.
//!
//! Words are wanted (one of them is enough), `-words` must not be there, `"phrases"` must be there as written and
//! `-"phrases"` must not.

use super::fields::each_field;
use super::tokens::{Sensitivity, Tokens, folded};
use super::{Language, TextSpec};
use pando_base::{Result, patience};
use pando_bson::RawDoc;
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq)]
pub struct TextQuery {
    pub language: Language,
    pub sensitivity: Sensitivity,
    /// What to look up in the index, where letters are always folded.
    pub lookups: BTreeSet<String>,
    /// The same with the letters that count.
    pub terms: BTreeSet<String>,
    pub negated_terms: BTreeSet<String>,
    pub phrases: Vec<String>,
    pub negated_phrases: Vec<String>,
    /// As they are compared, without repetitions.
    folded_phrases: BTreeSet<String>,
    folded_negated_phrases: BTreeSet<String>,
    /// Letters in them.
    phrase_bytes: usize,
}

/// Where the next character stands.
#[derive(Default)]
struct Place {
    negated: bool,
    /// Where the open phrase began.
    phrase: Option<usize>,
}

/// The tab is not among them.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

impl TextQuery {
    pub fn parse(search: &str, language: Language, sensitivity: Sensitivity) -> TextQuery {
        let mut q = TextQuery {
            language,
            sensitivity,
            lookups: BTreeSet::new(),
            terms: BTreeSet::new(),
            negated_terms: BTreeSet::new(),
            phrases: Vec::new(),
            negated_phrases: Vec::new(),
            folded_phrases: BTreeSet::new(),
            folded_negated_phrases: BTreeSet::new(),
            phrase_bytes: 0,
        };
        let (mut wanted, mut unwanted) = (String::new(), String::new());
        let mut place = Place::default();
        let mut after_space = true;
        for (at, c) in search.char_indices() {
            if patience::is_over(1) {
                break;
            }
            if is_space(c) {
                // A negation goes as far as the next space.
                place.negated &= place.phrase.is_some();
            } else if c == '"' {
                q.quote(&mut place, search, at);
            } else if c == '-' {
                place.negated |= place.phrase.is_none() && after_space;
            }
            let words = match (place.negated, place.phrase) {
                (true, Some(_)) => None,
                (true, None) => Some(&mut unwanted),
                (false, _) => Some(&mut wanted),
            };
            if let Some(words) = words {
                words.push(if matches!(c, '-' | '"') || is_space(c) { ' ' } else { c });
            }
            // Words of different kinds do not grow together.
            wanted.extend(place.negated.then_some(' '));
            unwanted.extend((!place.negated).then_some(' '));
            after_space = is_space(c);
        }
        q.add_terms(&wanted, &unwanted);
        let fold = |p: &String| folded(p, language, sensitivity);
        q.folded_phrases = q.phrases.iter().map(fold).collect();
        q.folded_negated_phrases = q.negated_phrases.iter().map(fold).collect();
        q.phrase_bytes = q.folded_phrases.iter().chain(&q.folded_negated_phrases).map(String::len).sum();
        q
    }

    /// Roughly the letters that [`TextQuery::accepts`] looks at in a document of this size.
    pub(crate) fn work_bytes(&self, doc_bytes: usize) -> usize {
        let phrases = self.folded_phrases.len() + self.folded_negated_phrases.len();
        doc_bytes.saturating_mul(1 + phrases).saturating_add(self.phrase_bytes)
    }

    /// A phrase begins or ends at `at`.
    fn quote(&mut self, place: &mut Place, search: &str, at: usize) {
        match place.phrase.take() {
            None => place.phrase = Some(at + 1),
            Some(start) if place.negated => self.negated_phrases.push(search[start..at].to_owned()),
            Some(start) => self.phrases.push(search[start..at].to_owned()),
        }
    }

    fn add_terms(&mut self, wanted: &str, unwanted: &str) {
        let folding = Tokens::new(self.language, self.sensitivity.of_index());
        folding.each(wanted, |t| {
            self.lookups.insert(t);
        });
        let exact = Tokens::new(self.language, self.sensitivity);
        exact.each(wanted, |t| {
            self.terms.insert(t);
        });
        exact.each(unwanted, |t| {
            self.negated_terms.insert(t);
        });
    }

    /// Whether a document that the index found for some term is a match.
    pub fn accepts(&self, doc: &RawDoc, spec: &TextSpec) -> Result<bool> {
        if self.sensitivity.any() && !self.has_term(doc, spec, &self.terms, self.sensitivity)? {
            return Ok(false);
        }
        if self.has_term(doc, spec, &self.negated_terms, self.sensitivity)? {
            return Ok(false);
        }
        self.phrases_fit(doc, spec)
    }

    /// All wanted phrases are there, each within one field, and none of the unwanted.
    fn phrases_fit(&self, doc: &RawDoc, spec: &TextSpec) -> Result<bool> {
        if self.folded_phrases.is_empty() && self.folded_negated_phrases.is_empty() {
            return Ok(true);
        }
        let mut missing: Vec<&String> = self.folded_phrases.iter().collect();
        let mut refused = false;
        each_field(spec, doc, &mut |field| {
            let text = folded(field.text, self.language, self.sensitivity);
            let steps = text.len() / 64 + 1;
            missing.retain(|phrase| !patience::is_over(steps) && !text.contains(phrase.as_str()));
            refused |= self
                .folded_negated_phrases
                .iter()
                .any(|phrase| patience::is_over(steps) || text.contains(phrase.as_str()));
            !refused
        })?;
        Ok(!refused && missing.is_empty())
    }

    /// The same for any document.
    pub fn matches(&self, doc: &RawDoc, spec: &TextSpec) -> Result<bool> {
        Ok(self.has_term(doc, spec, &self.lookups, self.sensitivity.of_index())?
            && self.accepts(doc, spec)?)
    }

    fn has_term(
        &self,
        doc: &RawDoc,
        spec: &TextSpec,
        terms: &BTreeSet<String>,
        sensitivity: Sensitivity,
    ) -> Result<bool> {
        // A word of the search may be a stop word in the language of the document.
        let mut found = false;
        if terms.is_empty() {
            return Ok(false);
        }
        each_field(spec, doc, &mut |field| {
            Tokens::new(field.language, sensitivity)
                .with_stop_words()
                .each(field.text, |t| found |= terms.contains(&t));
            !found
        })?;
        Ok(found)
    }
}
