//! `arrayFilters`: which elements `$[id]` stands for.

use crate::ctx::QueryCtx;
use crate::matcher::{Matcher, Place};
use pando_base::{Error, Result};
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
            let matcher = Matcher::parse_in(Place::Elements, filter, ctx).map_err(in_filter)?;
            let mut id = None;
            find_id(filter, &mut id).map_err(in_filter)?;
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
            (name, _) if name.starts_with('$') => {}
            // What nothing matches has no name left.
            (_, Value::Document(ops)) if is_all_of_nothing(ops) => {}
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

/// `{$all: []}`
fn is_all_of_nothing(ops: &RawDoc) -> bool {
    ops.first().is_some_and(|e| e.name() == "$all" && matches!(e.value(), Value::Array(a) if a.is_empty()))
}
