//! `$regex` and `/pattern/`: strings that match, or a stored regex that is the same.

use crate::regex::Regex;
use pando_base::Result;
use pando_bson::{Elem, Value};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct RegexPred {
    pub pattern: String,
    pub options: String,
    compiled: Arc<Regex>,
}

impl RegexPred {
    pub fn new(pattern: &str, options: &str) -> Result<RegexPred> {
        let compiled = Arc::new(Regex::new(pattern, options)?);
        Ok(RegexPred { pattern: pattern.to_owned(), options: options.to_owned(), compiled })
    }
    pub fn regex(&self) -> &Regex {
        &self.compiled
    }
    #[inline]
    pub(crate) fn test(&self, e: Option<&Elem<'_>>) -> bool {
        match e.map(|e| e.value()) {
            Some(Value::String(s) | Value::Symbol(s)) => self.compiled.is_match(s),
            Some(Value::Regex { pattern, options }) => self.pattern == pattern && self.options == options,
            // Strings that are not UTF-8 match no pattern.
            _ => false,
        }
    }
}
