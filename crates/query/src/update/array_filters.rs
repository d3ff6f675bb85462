//! `arrayFilters`: which elements `$[id]` stands for.

use crate::ctx::QueryCtx;
use crate::matcher::Matcher;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{Elem, RawDoc, Value};

/// Filters by identifier.
#[derive(Debug, Default)]
pub(super) struct ArrayFilters {
    filters: Vec<(String, Matcher)>,
}

fn in_filter(e: Error) -> Error {
    e.context("Error parsing array filter")
}

impl ArrayFilters {
    pub(super) fn parse<'a>(
        filters: impl IntoIterator<Item = &'a RawDoc>,
        ctx: &QueryCtx,
    ) -> Result<ArrayFilters> {
        let mut out = ArrayFilters::default();
        for filter in filters {
            let mut id = None;
            find_id(filter, &mut id).map_err(in_filter)?;
            let matcher = Matcher::parse_of_elements(filter, ctx).map_err(in_filter)?;
            let Some(id) = id else {
                return Err(Error::failed_to_parse(
                    "Cannot use an expression without a top-level field name in arrayFilters",
                ));
            };
            let mut letters = id.bytes();
            let first_is_lower = letters.next().is_some_and(|b| b.is_ascii_lowercase());
            if !first_is_lower || !letters.all(|b| b.is_ascii_alphanumeric()) {
                return Err(in_filter(Error::bad_value(format!(
                    "The top-level field name must be an alphanumeric string beginning with a lowercase letter, \
                     found '{id}'"
                ))));
            }
            if out.get(id).is_some() {
                return Err(Error::failed_to_parse(format!(
                    "Found multiple array filters with the same top-level field name {id}"
                )));
            }
            out.filters.push((id.to_owned(), matcher));
        }
        Ok(out)
    }
    fn get(&self, id: &str) -> Option<&Matcher> {
        self.filters.iter().find(|(name, _)| name == id).map(|(_, m)| m)
    }
    pub(super) fn contains(&self, id: &str) -> bool {
        self.get(id).is_some()
    }
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.filters.iter().map(|(id, _)| id.as_str())
    }
    pub(super) fn matches(&self, id: &str, e: Elem<'_>) -> Result<bool> {
        match self.get(id) {
            Some(filter) => filter.matches_elem(Elem::new(e.ty, id, e.data())),
            None => Ok(false),
        }
    }
}

/// `$expr` and `$where` look at whole documents; an array element has none.
pub(super) fn refuse_document_operators(filter: &RawDoc) -> Result<()> {
    for e in filter {
        match (e.name(), e.value()) {
            ("$and" | "$or" | "$nor", Value::Array(branches)) => {
                for branch in branches {
                    if let Value::Document(d) = branch.value() {
                        refuse_document_operators(d)?;
                    }
                }
            }
            ("$expr" | "$where", _) => return Err(not_allowed(e.name())),
            _ => {}
        }
    }
    Ok(())
}

fn not_allowed(operator: &str) -> Error {
    let code = match operator {
        "$expr" => ErrorCode::QueryFeatureNotAllowed,
        _ => ErrorCode::BadValue,
    };
    Error::new(code, format!("{operator} is not allowed in this context"))
}

/// The one first path component that the filter's conditions share.
fn find_id<'a>(filter: &'a RawDoc, id: &mut Option<&'a str>) -> Result<()> {
    for e in filter {
        match (e.name(), e.value()) {
            ("$and" | "$or" | "$nor", Value::Array(branches)) => {
                for branch in branches {
                    if let Value::Document(d) = branch.value() {
                        find_id(d, id)?;
                    }
                }
            }
            ("$expr" | "$where", _) => return Err(not_allowed(e.name())),
            (name, _) if name.starts_with('$') => {}
            (name, _) => {
                let first = name.split('.').next().unwrap_or(name);
                match *id {
                    Some(seen) if seen != first => {
                        return Err(Error::failed_to_parse(format!(
                            "Expected a single top-level field name, found '{seen}' and '{first}'"
                        )));
                    }
                    _ => *id = Some(first),
                }
            }
        }
    }
    Ok(())
}
