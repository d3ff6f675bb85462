//! Text search: from a document to weighted terms, from a search string to what a document must hold.
//!
//! ```text
//!   document ── fields (weights, languages) ─► text ── tokens ─► terms ─► scores   = keys of a text index
//!   "$search" ── words, -negations, "phrases" ─► tokens ─► terms                   = scans of that index
//! ```
//!
//! A token is what stands between two delimiters ([`delimiters`]). In lower case it may be a stop word
//! ([`stop_words`]); what is left is stemmed in the language of the text and loses its diacritics ([`fold`]).
//! [`spec`] says which fields of a document count and how much, [`query`] what a search asks for.

use pando_base::Error;

mod delimiters;
mod fields;
mod fold;
mod language;
mod query;
mod spec;
mod stop_words;
mod tokens;

pub use language::Language;
pub use query::TextQuery;
pub use spec::{SCORE_FIELD, TERM_FIELD, TextSpec};
pub use tokens::Sensitivity;

/// A text that is searched, or searched for, has to be UTF-8.
#[cold]
pub(crate) fn not_utf8() -> Error {
    Error::location(28755, "text contains invalid UTF-8")
}

#[cfg(test)]
mod tests;
