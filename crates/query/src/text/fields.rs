//! The texts of a document that an index looks at, with their weights and languages.

use super::{Language, TextSpec};
use pando_base::{Error, Result};
use pando_bson::{ElementType, RawDoc, Value};

/// A text field.
pub(super) struct Field<'d> {
    pub(super) text: &'d str,
    pub(super) language: Language,
    pub(super) weight: f64,
}

/// The language that a (sub)document says its texts are in.
fn language_of(doc: &RawDoc, spec: &TextSpec, outer: Language) -> Result<Language> {
    let Some(v) = doc.get(&spec.language_override) else { return Ok(outer) };
    let Value::String(name) = v else {
        if spec.is_first() {
            return Ok(outer);
        }
        return Err(Error::location(17261, "found language override field in document with non-string type"));
    };
    spec.language_of(name)
        .ok_or_else(|| Error::location(17262, format!("language override unsupported: {name}")))
}

/// Calls `each` with the texts in the order they stand in the document.
pub(super) fn each_field<'d>(
    spec: &TextSpec,
    doc: &'d RawDoc,
    each: &mut dyn FnMut(Field<'d>) -> bool,
) -> Result<()> {
    let language = language_of(doc, spec, spec.default_language)?;
    let mut walk = Walk { spec, each, stopped: false };
    walk.document(doc, "", false, language)
}

struct Walk<'s, 'd> {
    spec: &'s TextSpec,
    /// False ends the walk.
    each: &'s mut dyn FnMut(Field<'d>) -> bool,
    stopped: bool,
}

impl<'d> Walk<'_, 'd> {
    /// `path` is that of the document, or of the array whose members these are.
    fn document(&mut self, doc: &'d RawDoc, path: &str, is_array: bool, language: Language) -> Result<()> {
        for e in doc {
            if self.stopped {
                return Ok(());
            }
            if self.spec.is_wildcard() && e.name() == self.spec.language_override {
                continue;
            }
            let named;
            let here = match (is_array, path) {
                (true, _) => path,
                (false, "") => e.name(),
                (false, _) => {
                    named = format!("{path}.{}", e.name());
                    &named
                }
            };
            match e.value() {
                Value::String(text) => {
                    if let Some(weight) = self.spec.weight_of(here) {
                        self.stopped = !(self.each)(Field { text, language, weight });
                    }
                }
                Value::NotUtf8(_) if e.ty == ElementType::String && self.spec.weight_of(here).is_some() => {
                    return Err(super::not_utf8());
                }
                // The first version did not look for paths in the members of arrays.
                Value::Document(_) if is_array && self.spec.is_first() && !self.spec.is_wildcard() => {}
                Value::Document(d) if self.spec.reaches_below(here) => {
                    let language = match self.spec.is_first() {
                        true => language,
                        false => language_of(d, self.spec, language)?,
                    };
                    self.document(d, here, false, language)?;
                }
                // Arrays in arrays are looked into by wildcard indexes only.
                Value::Array(a) if self.spec.reaches(here) && (!is_array || self.spec.is_wildcard()) => {
                    self.document(a, here, true, language)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
