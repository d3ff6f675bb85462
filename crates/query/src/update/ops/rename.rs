//! `$rename`: two modifiers that read the document as it was before the update.
//!
//! The target takes the old field's value (when there is one), the source goes away. Because no other modifier
//! may touch either path, their order does not matter.

use crate::update::modifier::{Apply, Blocked, Effect, Modifier, bare_id_text};
use crate::update::path::{Path, array_index, parse};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{Elem, ElementType, RawDoc, Value};

/// At the target path.
#[derive(Debug)]
pub(in crate::update) struct RenameTo {
    source: String,
    target: String,
}

/// At the source path.
#[derive(Debug)]
pub(in crate::update) struct RenameFrom;

impl RenameTo {
    /// From `{source: "target"}`.
    pub(in crate::update) fn parse(e: Elem<'_>) -> Result<RenameTo> {
        let Value::String(target) = e.value() else {
            return Err(Error::bad_value(format!("The 'to' field for $rename must be a string: {e:#}")));
        };
        let source = e.name();
        if target.contains('\0') {
            return Err(Error::bad_value("The 'to' field for $rename cannot contain an embedded null byte"));
        }
        let (from, to) = (parse(source)?, parse(target)?);
        if source == target {
            return Err(Error::bad_value(format!(
                "The source and target field for $rename must differ: {e:#}"
            )));
        }
        if from.starts_with(&to) || to.starts_with(&from) {
            return Err(Error::bad_value(format!(
                "The source and target field for $rename must not be on the same path: {e:#}"
            )));
        }
        if from.iter().any(|p| p.is_dynamic()) {
            return Err(Error::bad_value(format!(
                "The source field for $rename may not be dynamic: {source}"
            )));
        }
        if to.iter().any(|p| p.is_dynamic()) {
            return Err(Error::bad_value(format!(
                "The destination field for $rename may not be dynamic: {target}"
            )));
        }
        Ok(RenameTo { source: source.to_owned(), target: target.to_owned() })
    }
    pub(in crate::update) fn target(&self) -> &str {
        &self.target
    }

    fn source_elem<'d>(&self, root: &'d RawDoc) -> Result<Option<Elem<'d>>> {
        let mut doc = root;
        let mut through_array: Option<Elem<'d>> = None;
        let mut parts = self.source.split('.').peekable();
        while let Some(part) = parts.next() {
            let found = doc.elem(part);
            if parts.peek().is_none() {
                return match (found, through_array) {
                    (Some(_), Some(array)) => Err(self.array_error("source", &self.source, array, root)),
                    (found, _) => Ok(found),
                };
            }
            let Some(e) = found else { return Ok(None) };
            doc = match e.value() {
                Value::Document(d) => d,
                Value::Array(a) if parts.peek().is_some_and(|p| array_index(p).is_some()) => {
                    through_array = Some(e);
                    a
                }
                _ => {
                    return Err(Error::new(
                        ErrorCode::PathNotViable,
                        format!(
                            "cannot use the part ({part} of {}) to traverse the element ({{{e:#}}})",
                            self.source
                        ),
                    ));
                }
            };
        }
        Ok(None)
    }

    fn array_error(&self, which: &str, path: &str, array: Elem<'_>, root: &RawDoc) -> Error {
        Error::bad_value(format!(
            "The {which} field cannot be an array element, '{path}' in doc with {} has an array field called '{}'",
            bare_id_text(root),
            array.name()
        ))
    }

    fn check_target(&self, root: &RawDoc) -> Result<()> {
        let mut doc = root;
        let Some((inner, _last)) = self.target.rsplit_once('.') else { return Ok(()) };
        for part in inner.split('.') {
            match doc.elem(part).map(|e| (e, e.value())) {
                Some((_, Value::Document(d))) => doc = d,
                Some((e, Value::Array(_))) => {
                    return Err(self.array_error("destination", &self.target, e, root));
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    fn value<'d>(&self, cx: &Apply<'d>) -> Result<Option<Elem<'d>>> {
        let Some(source) = self.source_elem(cx.root)? else { return Ok(None) };
        self.check_target(cx.root)?;
        Ok(Some(source))
    }
}

impl Modifier for RenameTo {
    fn update(&self, cx: &Apply<'_>, _old: Elem<'_>, _path: &Path<'_>, out: &mut Vec<u8>) -> Result<Effect> {
        Ok(match self.value(cx)? {
            None => Effect::Same,
            Some(v) => {
                out.extend_from_slice(v.data());
                Effect::Set(v.ty)
            }
        })
    }
    fn create(&self, cx: &Apply<'_>, out: &mut Vec<u8>) -> Result<Option<ElementType>> {
        Ok(self.value(cx)?.map(|v| {
            out.extend_from_slice(v.data());
            v.ty
        }))
    }
    fn blocked(&self, cx: &Apply<'_>) -> Result<Blocked> {
        Ok(if self.value(cx)?.is_some() { Blocked::Refuse } else { Blocked::Ignore })
    }
    fn depth(&self) -> usize {
        // Depends on the document: always check.
        pando_base::limits::BSON_DEPTH_MAX
    }
}

impl Modifier for RenameFrom {
    fn update(&self, _: &Apply<'_>, _: Elem<'_>, _: &Path<'_>, _: &mut Vec<u8>) -> Result<Effect> {
        Ok(Effect::Remove)
    }
    fn create(&self, _: &Apply<'_>, _: &mut Vec<u8>) -> Result<Option<ElementType>> {
        Ok(None)
    }
    fn blocked(&self, _: &Apply<'_>) -> Result<Blocked> {
        Ok(Blocked::Ignore)
    }
}
