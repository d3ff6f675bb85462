//! `$match`.

use super::needs::Needs;
use super::parsed::Parsed;
use super::running::{Running, Start};
use super::step::Step;
use super::upstream::Upstream;
use crate::ctx::QueryCtx;
use crate::exec::{Each, Fed};
use crate::expr::ParseCtx;
use crate::matcher::{Matcher, Place};
use pando_base::{Error, Result};
use pando_bson::{Elem, RawDoc, Value};
use std::sync::Arc;

/// Those documents that a filter wants.
#[derive(Clone)]
pub(crate) struct Match(Arc<Matcher>);

impl PartialEq for Match {
    fn eq(&self, other: &Match) -> bool {
        self.filter().as_bytes() == other.filter().as_bytes()
    }
}

impl Match {
    pub(super) fn new(filter: &RawDoc, ctx: &QueryCtx) -> Result<Match> {
        Ok(Match(Arc::new(Matcher::parse(filter, ctx)?)))
    }
    pub(super) fn matcher(&self) -> &Arc<Matcher> {
        &self.0
    }
    pub(super) fn filter(&self) -> &RawDoc {
        self.0.filter()
    }
    pub(super) fn has_text(&self) -> bool {
        self.0.has_text()
    }
}

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<Match> {
    let Value::Document(filter) = e.value() else {
        return Err(Error::location(15959, "the match filter must be an expression in an object"));
    };
    Ok(Match(Arc::new(Matcher::parse_in(Place::Match, filter, p.ctx)?)))
}

/// Adds the paths that a filter names; false when it may look at anything.
fn filter_paths(filter: &RawDoc, needs: &mut Needs) -> bool {
    filter.iter().all(|e| match (e.name(), e.value()) {
        ("$and" | "$or" | "$nor", Value::Array(branches)) => branches.iter().all(|b| match b.value() {
            Value::Document(d) => filter_paths(d, needs),
            _ => true,
        }),
        ("$comment" | "$alwaysTrue" | "$alwaysFalse" | "$sampleRate", _) => true,
        (name, _) if name.starts_with('$') => false,
        (name, _) => {
            // Positions in paths select array elements: the array is needed whole.
            let named = name.split('.').take_while(|p| !p.bytes().all(|b| b.is_ascii_digit()));
            let path: Vec<&str> = named.collect();
            if path.is_empty() {
                return false;
            }
            needs.add(&path.join("."));
            true
        }
    })
}

impl Parsed for Match {
    fn start(self, _: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Ok(Box::new(Matching { matcher: self.0 }))
    }
    fn needs(&self, needs: &mut Needs) {
        if !filter_paths(self.filter(), needs) {
            needs.whole();
        }
    }
}

struct Matching {
    matcher: Arc<Matcher>,
}

impl Running for Matching {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            match up.next()? {
                Step::Row(row) if !self.matcher.matches(row.doc())? => {}
                step => return Ok(step),
            }
        }
    }
    fn feed(&mut self, up: &mut Upstream<'_>, each: &mut Each<'_>) -> Option<Result<Fed>> {
        let matcher = &self.matcher;
        Some(up.feed(&mut |doc| match matcher.matches(RawDoc::trusted(doc))? {
            true => each(doc),
            false => Ok(true),
        }))
    }
}
