//! `$match`.

use super::{FindPart, Needs, Stage, Step, Upstream};
use crate::ctx::QueryCtx;
use crate::exec::{Each, Fed};
use crate::expr::ParseCtx;
use crate::matcher::Matcher;
use pando_base::{Error, Result};
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use std::sync::Arc;

pub(super) struct Match {
    matcher: Arc<Matcher>,
    ctx: QueryCtx,
}

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    let Value::Document(filter) = e.value() else {
        return Err(Error::location(15959, "the match filter must be an expression in an object"));
    };
    crate::matcher::refuse_where(filter)?;
    crate::matcher::check_match(filter)?;
    out.push(stage(filter, p.ctx)?);
    crate::matcher::refuse_near(filter)
}

pub(super) fn stage(filter: &RawDoc, ctx: &QueryCtx) -> Result<Box<dyn Stage>> {
    let matcher = Arc::new(Matcher::parse(filter, ctx)?);
    Ok(Box::new(Match { matcher, ctx: ctx.clone() }))
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

impl Stage for Match {
    fn may_nest(&self) -> bool {
        false
    }
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
    fn needs(&self, needs: &mut Needs) {
        if !filter_paths(self.matcher.filter(), needs) {
            needs.whole();
        }
    }
    fn has_text(&self) -> bool {
        self.matcher.has_text()
    }
    fn as_filter(&self) -> Option<&RawDoc> {
        Some(self.matcher.filter())
    }
    fn push_down(&mut self, find: &mut FindPart) -> bool {
        // Behind a sort the filter may as well come first; behind a skip or limit it may not.
        if find.skip > 0 || find.limit.is_some() {
            return false;
        }
        let joined = match &find.matcher {
            None => self.matcher.clone(),
            Some(first) => {
                let mut both = DocBuilder::new();
                both.array("$and", |a| {
                    a.raw_doc(first.filter());
                    a.raw_doc(self.matcher.filter());
                });
                match Matcher::parse(&both.finish(), &self.ctx) {
                    Ok(m) => Arc::new(m),
                    Err(_) => return false,
                }
            }
        };
        find.matcher = Some(joined);
        true
    }
}
