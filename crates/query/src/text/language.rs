//! The languages of text indexes: stemming, stop words and the rules of letters that differ.

use super::stop_words::is_stop_word;
use rust_stemmers::{Algorithm, Stemmer};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    None,
    Danish,
    Dutch,
    English,
    Finnish,
    French,
    German,
    Hungarian,
    Italian,
    Norwegian,
    Portuguese,
    Romanian,
    Russian,
    Spanish,
    Swedish,
    Turkish,
}

/// Names and codes. Messages and explain show the name.
const NAMES: &[(Language, &str, &str)] = &[
    (Language::None, "none", "none"),
    (Language::Danish, "danish", "da"),
    (Language::Dutch, "dutch", "nl"),
    (Language::English, "english", "en"),
    (Language::Finnish, "finnish", "fi"),
    (Language::French, "french", "fr"),
    (Language::German, "german", "de"),
    (Language::Hungarian, "hungarian", "hu"),
    (Language::Italian, "italian", "it"),
    (Language::Norwegian, "norwegian", "nb"),
    (Language::Portuguese, "portuguese", "pt"),
    (Language::Romanian, "romanian", "ro"),
    (Language::Russian, "russian", "ru"),
    (Language::Spanish, "spanish", "es"),
    (Language::Swedish, "swedish", "sv"),
    (Language::Turkish, "turkish", "tr"),
];

/// More names, for indexes of version 1.
const ALIASES: &[(Language, &[&str])] = &[
    (Language::Danish, &["dan"]),
    (Language::Dutch, &["dut", "nld"]),
    (Language::English, &["eng", "porter"]),
    (Language::Finnish, &["fin"]),
    (Language::French, &["fra", "fre"]),
    (Language::German, &["deu", "ger"]),
    (Language::Hungarian, &["hun"]),
    (Language::Italian, &["ita"]),
    (Language::Norwegian, &["no", "nor"]),
    (Language::Portuguese, &["por"]),
    (Language::Romanian, &["ron", "rum"]),
    (Language::Russian, &["rus"]),
    (Language::Spanish, &["esl", "spa"]),
    (Language::Swedish, &["swe"]),
    (Language::Turkish, &["tur"]),
];

impl Language {
    /// By name or code, in any case.
    pub fn of_name(name: &str) -> Option<Language> {
        let same = |n: &str| n.eq_ignore_ascii_case(name);
        NAMES.iter().find(|(_, long, code)| same(long) || same(code)).map(|(l, ..)| *l)
    }
    /// By a name that an index of version 1 may have: in lower case, `""` for English, any other for no language.
    pub(super) fn of_first(name: &str) -> Language {
        let aliases = ALIASES.iter().find(|(_, aliases)| aliases.contains(&name)).map(|(l, _)| *l);
        match name {
            "" => Language::English,
            _ if name.bytes().any(|b| b.is_ascii_uppercase()) => Language::None,
            _ => aliases.or_else(|| Language::of_name(name)).unwrap_or(Language::None),
        }
    }
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(l, ..)| *l == self).map_or("none", |(_, name, _)| name)
    }
    /// `lower` is in lower case, with its diacritics.
    pub(super) fn is_stop_word(self, lower: &str) -> bool {
        is_stop_word(self, lower)
    }
    pub(super) fn stemmer(self) -> Option<Stemmer> {
        let algorithm = match self {
            Language::None => return None,
            Language::Danish => Algorithm::Danish,
            Language::Dutch => Algorithm::Dutch,
            Language::English => Algorithm::English,
            Language::Finnish => Algorithm::Finnish,
            Language::French => Algorithm::French,
            Language::German => Algorithm::German,
            Language::Hungarian => Algorithm::Hungarian,
            Language::Italian => Algorithm::Italian,
            Language::Norwegian => Algorithm::Norwegian,
            Language::Portuguese => Algorithm::Portuguese,
            Language::Romanian => Algorithm::Romanian,
            Language::Russian => Algorithm::Russian,
            Language::Spanish => Algorithm::Spanish,
            Language::Swedish => Algorithm::Swedish,
            Language::Turkish => Algorithm::Turkish,
        };
        Some(Stemmer::create(algorithm))
    }
}
