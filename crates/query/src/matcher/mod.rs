//! Filters (`{a: {$gt: 5}, "b.c": null}`) over raw documents.
//!
//! [`Matcher::parse`] builds a tree of [`Node`]s, rewrites it into a normal form ([`optimize`]) and gives each
//! top-level field it needs a slot. [`Matcher::matches`] then walks a document once, as far as it must, and
//! compares encoded bytes where that is exact; nothing is allocated.
//!
//! The planner reads the same tree ([`Matcher::root`]) to find index bounds; explain prints it.

mod bits;
mod bucket;
mod bucket_node;
mod compare;
mod debug;
mod eval;
mod expr;
mod expr_bounds;
mod fields_read;
mod in_list;
mod modulo;
mod names;
mod near;
mod node;
pub mod number;
mod operand;
mod optimize;
mod parse;
mod path;
mod place;
mod regexp;
mod script;
mod searches;
mod text;
mod type_set;

pub use bits::{BitOp, BitTest};
pub use bucket::BUCKET_HOLDS;
pub use bucket::BucketTest;
pub(crate) use bucket::is_askable;
pub use compare::{CmpOp, Comparison};
pub use eval::MatchDetails;
pub(crate) use eval::first_matching_member;
pub use in_list::InList;
pub use modulo::Modulo;
pub(crate) use names::{KEYWORDS, OPERATORS};
pub(crate) use near::check_beside_text;
pub use node::{ElemMatchObject, ElemMatchValue, ExprNode, Leaf, Node, Pred, SampleRate, Scope};
pub(crate) use number::{decimal_is_nan, exact_i64, parse_non_negative, truncated_i64};
pub use operand::Operand;
pub(crate) use optimize::rank;
pub use path::Path;
pub(crate) use path::{Leaf as ArrayAtEnd, any as walk};
pub use place::Place;
pub use regexp::RegexPred;
pub(crate) use text::no_index as no_text_index;
pub use text::{TextMeaning, TextNode};
pub use type_set::{TypeSet, type_of_code};

use crate::collation::Collation;
use crate::ctx::QueryCtx;
use eval::{View, eval};
use pando_base::{Result, patience};
use pando_bson::{DocBuf, Elem, RawDoc};
use std::sync::Arc;

/// Calls `test` with the values a path leads to in a document (`None` = missing), elements of a final array one by
/// one and the array itself last, until it returns true.
pub(crate) fn any_at(doc: &RawDoc, path: &Path, test: &mut dyn FnMut(Option<&Elem<'_>>) -> bool) -> bool {
    path::any(doc.elem(path.first()), path.rest(), path::Leaf::Elements, &mut |(e, _)| test(e.as_ref()))
}

/// A parsed filter.
#[derive(Clone, Debug)]
pub struct Matcher {
    filter: DocBuf,
    scope: Scope,
    collation: Option<Arc<Collation>>,
    /// A `$near` is in it as it is written.
    orders: bool,
}

impl Matcher {
    /// The filter that matches everything.
    pub fn all() -> Matcher {
        let scope = Scope { root: Node::And(Vec::new()), names: Vec::new() };
        Matcher { filter: DocBuf::new(), scope, collation: None, orders: false }
    }

    /// A command's query.
    pub fn parse(filter: &RawDoc, ctx: &QueryCtx) -> Result<Matcher> {
        Matcher::parse_in(Place::Query, filter, ctx)
    }

    /// A filter that stands somewhere else, where not every operator may stand.
    pub fn parse_in(place: Place, filter: &RawDoc, ctx: &QueryCtx) -> Result<Matcher> {
        let root = parse::parse_filter(filter, place, ctx)?;
        let orders = near::is_in(&root);
        let scope = optimize::finish(root);
        near::check(&scope.root)?;
        Ok(Matcher { filter: filter.to_buf(), scope, collation: ctx.collation.clone(), orders })
    }

    /// A part of another filter as a filter of its own (what is left to check behind an index scan).
    pub fn from_node(root: Node, collation: Option<Arc<Collation>>) -> Matcher {
        if patience::is_over(root.children().len()) {
            return Matcher::all();
        }
        let scope = optimize::finish(root);
        Matcher { filter: scope.root.to_doc(), orders: near::is_in(&scope.root), scope, collation }
    }

    /// Parts of another filter, in this order.
    pub(crate) fn of_parts(parts: Vec<Node>, collation: Option<Arc<Collation>>) -> Matcher {
        if patience::is_over(parts.len()) {
            return Matcher::all();
        }
        let scope = optimize::joined(parts);
        Matcher { filter: scope.root.to_doc(), orders: near::is_in(&scope.root), scope, collation }
    }

    /// Runs JavaScript.
    pub fn runs_scripts(&self) -> bool {
        script::any(self.root())
    }
    /// As written.
    pub fn filter(&self) -> &RawDoc {
        &self.filter
    }
    /// The normalized tree.
    pub fn root(&self) -> &Node {
        &self.scope.root
    }
    pub fn collation(&self) -> &Option<Arc<Collation>> {
        &self.collation
    }
    /// Its documents come in an order of its own: a `$near` is in it, if only in a part that is not asked.
    pub fn orders(&self) -> bool {
        self.orders
    }
    /// Matches every document.
    pub fn is_trivial(&self) -> bool {
        self.scope.root.is_trivially_true()
    }

    /// Whether the document matches; an error can only come from an `$expr`, or because there is no time left.
    #[inline]
    pub fn matches(&self, doc: &RawDoc) -> Result<bool> {
        let mut view = View::new(doc, &self.scope);
        let yes = eval(&self.scope.root, &mut view, None);
        view.verdict(yes)
    }

    /// Like [`Matcher::matches`], and where in which array; `None` when the document does not match.
    pub fn matches_position(&self, doc: &RawDoc) -> Result<Option<MatchDetails>> {
        let mut view = View::new(doc, &self.scope);
        let mut details = MatchDetails::default();
        let yes = eval(&self.scope.root, &mut view, Some(&mut details));
        Ok(view.verdict(yes)?.then_some(details))
    }

    /// Whether a document with only this element (under its name) would match. For array filters and `$pull`.
    pub fn matches_elem(&self, e: Elem<'_>) -> Result<bool> {
        let mut view = View::single(e, &self.scope);
        let yes = eval(&self.scope.root, &mut view, None);
        view.verdict(yes)
    }
}

#[cfg(test)]
mod tests;
