//! A text into terms.

use super::Language;
use super::delimiters::is_delimiter;
use super::fold::{lower, plain};
use pando_base::limits::STEMMED_BYTES_MAX;
use pando_base::patience;
use rust_stemmers::Stemmer;

/// Which differences between letters count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sensitivity {
    pub case: bool,
    pub diacritics: bool,
    /// Only letters and delimiters of ASCII are known, as in text indexes before version 3: others are what they are.
    pub ascii: bool,
}

impl Sensitivity {
    /// What the terms in an index are made with.
    pub(super) fn of_index(self) -> Sensitivity {
        Sensitivity { ascii: self.ascii, ..Sensitivity::default() }
    }
    /// Not all that an index finds fits.
    pub(super) fn any(self) -> bool {
        self.case || self.diacritics && !self.ascii
    }
    fn lower(self, c: char, language: Language) -> char {
        if self.ascii { c.to_ascii_lowercase() } else { lower(c, language) }
    }
    fn delimits(self, c: char, language: Language) -> bool {
        (c.is_ascii() || !self.ascii) && is_delimiter(c, language)
    }
    fn keeps_diacritics(self) -> bool {
        self.diacritics || self.ascii
    }
}

/// What making a term takes.
const TOKEN_STEPS: usize = 4;

/// Makes terms of one language, one text after another.
pub(super) struct Tokens {
    language: Language,
    stemmer: Option<Stemmer>,
    sensitivity: Sensitivity,
    stop_words: bool,
}

impl Tokens {
    pub(super) fn new(language: Language, sensitivity: Sensitivity) -> Tokens {
        Tokens { language, stemmer: language.stemmer(), sensitivity, stop_words: false }
    }

    /// The same with stop words among the terms.
    pub(super) fn with_stop_words(self) -> Tokens {
        Tokens { stop_words: true, ..self }
    }

    /// Calls `each` with every term of `text` that is not a stop word.
    pub(super) fn each(&self, text: &str, mut each: impl FnMut(String)) {
        let mut small = String::new();
        // A text ends at its first NUL.
        let text = text.split('\0').next().unwrap_or_default();
        for token in text.split(|c| self.sensitivity.delimits(c, self.language)).filter(|t| !t.is_empty()) {
            small.clear();
            small.extend(unhurried(token).map(|c| self.sensitivity.lower(c, self.language)));
            if !self.stop_words && self.language.is_stop_word(&small) {
                continue;
            }
            let word = if self.sensitivity.case { token } else { small.as_str() };
            if patience::is_over(TOKEN_STEPS + token.len() / 32) {
                return;
            }
            let stem = match &self.stemmer {
                Some(stemmer) if word.len() <= STEMMED_BYTES_MAX => stemmer.stem(word),
                _ => word.into(),
            };
            each(match self.sensitivity.keeps_diacritics() {
                true => stem.into_owned(),
                false => unhurried(&stem).filter_map(plain).collect(),
            });
        }
    }
}

/// The letters, as many as there is time for.
fn unhurried(text: &str) -> impl Iterator<Item = char> {
    text.chars().enumerate().map_while(|(i, c)| {
        let over = i % LETTERS_PER_LOOK == LETTERS_PER_LOOK - 1 && patience::is_over(LETTERS_PER_LOOK / 4);
        (!over).then_some(c)
    })
}

/// Letters taken before somebody asks whether there is time for more.
const LETTERS_PER_LOOK: usize = 1024;

/// A text as phrases are compared.
pub(super) fn folded(text: &str, language: Language, sensitivity: Sensitivity) -> String {
    let cased = unhurried(text).map(|c| if sensitivity.case { c } else { sensitivity.lower(c, language) });
    match sensitivity.keeps_diacritics() {
        true => cased.collect(),
        false => cased.filter_map(plain).collect(),
    }
}
