//! Sorting: patterns (`{a: 1, "b.c": -1}`), sort keys, and sorters that keep the top few or spill to disk.
//!
//! A sort key is KeyString bytes, one encoded value per part of the pattern, so that comparing two documents is
//! `memcmp` whatever the pattern, the types and the collation. A document with arrays sorts by its least key
//! under the pattern (descending parts by their greatest element).

mod key;
mod sorter;
mod spill;
#[cfg(test)]
pub(crate) use sorter::tests;

pub use key::SortKeys;
pub(crate) use key::parallel_arrays;
pub use sorter::{Payload, SortStats, SortedRows, Sorter};
pub use spill::{SpillFile, SpillSpace};

use crate::facts::MetaField;
use crate::projection::check_path;
use pando_base::{Error, Result, limits};
use pando_bson::keystring::Directions;
use pando_bson::{DocBuf, RawDoc, Value};

/// A parsed sort specification.
#[derive(Clone, Debug, PartialEq)]
pub struct SortPattern {
    pub spec: DocBuf,
    pub parts: Vec<SortPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortPart {
    /// Dotted; for a metadata sort the name it was given under.
    pub path: String,
    pub descending: bool,
    pub meta: Option<SortMeta>,
}

/// `{$meta: "..."}` in a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortMeta {
    TextScore,
    GeoNearDistance,
    RandVal,
}

impl SortPattern {
    /// Parses `{a: 1, b: -1}`; `$natural` must have been dealt with before.
    pub fn parse(spec: &RawDoc) -> Result<SortPattern> {
        let mut parts = Vec::new();
        for e in spec {
            let path = e.path()?;
            if path == "$natural" {
                return Err(Error::bad_value(format!("Cannot include '$natural' in compound sort: {spec}")));
            }
            let part = match e.value() {
                Value::Document(d) => {
                    let meta = parse_meta(d)?;
                    SortPart {
                        path: path.to_owned(),
                        descending: meta != SortMeta::RandVal,
                        meta: Some(meta),
                    }
                }
                v if v.is_number() => {
                    let descending = match crate::matcher::truncated_i64(v) {
                        Some(1) => false,
                        Some(-1) => true,
                        _ => {
                            return Err(Error::location(
                                15975,
                                "$sort key ordering must be 1 (for ascending) or -1 (for descending)",
                            ));
                        }
                    };
                    check_path(path)?;
                    SortPart { path: path.to_owned(), descending, meta: None }
                }
                _ => return Err(Error::location(15974, format!("Illegal key in $sort specification: {e}"))),
            };
            if parts.iter().all(|p: &SortPart| p.path != part.path) {
                parts.push(part);
            }
        }
        if parts.len() > limits::INDEX_FIELDS_MAX {
            return Err(Error::location(13103, "too many compound keys"));
        }
        Ok(SortPattern { spec: spec.to_buf(), parts })
    }

    /// Nothing to sort by.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
    /// Which parts run downwards.
    pub fn directions(&self) -> Directions {
        let bits = self.parts.iter().enumerate();
        Directions(bits.fold(0, |bits, (i, p)| bits | u32::from(p.descending) << i))
    }
    pub fn needs_text_score(&self) -> bool {
        self.parts.iter().any(|p| p.meta == Some(SortMeta::TextScore))
    }
    pub fn needs_nearness(&self) -> bool {
        self.parts.iter().any(|p| p.meta == Some(SortMeta::GeoNearDistance))
    }
    /// What its rows have to know.
    pub fn metas(&self) -> impl Iterator<Item = MetaField> {
        let score = self.needs_text_score().then_some(MetaField::TextScore);
        score.into_iter().chain(self.needs_nearness().then_some(MetaField::GeoNearDistance))
    }
}

fn parse_meta(d: &RawDoc) -> Result<SortMeta> {
    let Some(e) = d.first().filter(|e| e.name() == "$meta") else {
        return Err(Error::location(17312, "$meta is the only expression supported by $sort right now"));
    };
    match e.value().as_str() {
        Some("textScore") => Ok(SortMeta::TextScore),
        Some("randVal") => Ok(SortMeta::RandVal),
        Some("geoNearDistance") => Ok(SortMeta::GeoNearDistance),
        Some(name @ ("searchScore" | "searchHighlights")) => {
            let code = if name == "searchScore" { 31218 } else { 31219 };
            Err(Error::location(code, format!("$meta sort by '{name}' metadata is not supported")))
        }
        _ => Err(Error::location(31138, format!("Illegal $meta sort: {e}"))),
    }
}
