//! Evaluation of a filter on raw bytes, without allocation.

use super::node::{ElemMatchObject, ElemMatchValue, Leaf, Node, Pred, Scope};
use super::path::{self, Candidate, Path};
use pando_base::{Error, Result, patience};
use pando_bson::{Elem, ElementType, RawDoc};

/// What a match can tell about where it happened, for `$` in projections and updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchDetails {
    /// Position of the array element that satisfied the last array predicate.
    pub array_index: Option<u32>,
}

/// Names beyond this many are looked up each time anew.
const SLOTS: usize = 8;

/// One document during a match: top-level fields are found in a single walk, as far as needed.
pub(super) struct View<'a, 's> {
    doc: &'a RawDoc,
    names: &'s [Box<str>],
    /// Byte offset of each named field, 0 = not met yet.
    offsets: [u32; SLOTS],
    /// Where the walk goes on; 0 = done.
    at: usize,
    /// Stands for a whole document of one element.
    single: Option<Elem<'a>>,
    error: Option<Error>,
}

impl<'a, 's> View<'a, 's> {
    pub(super) fn new(doc: &'a RawDoc, scope: &'s Scope) -> View<'a, 's> {
        View { doc, names: &scope.names, offsets: [0; SLOTS], at: 4, single: None, error: None }
    }
    pub(super) fn single(e: Elem<'a>, scope: &'s Scope) -> View<'a, 's> {
        View { at: 0, single: Some(e), ..View::new(RawDoc::empty(), scope) }
    }
    /// What was found, unless something went wrong on the way.
    #[inline]
    pub(super) fn verdict(self, yes: bool) -> Result<bool> {
        match self.error {
            None => patience::check().map(|()| yes),
            Some(e) => Err(e),
        }
    }

    #[inline]
    fn field(&mut self, slot: u8, path: &Path) -> Option<Elem<'a>> {
        let slot = slot as usize;
        if slot >= SLOTS {
            return self.doc.elem(path.first());
        }
        let known = self.offsets[slot] as usize;
        if known != 0 {
            return self.doc.elem_at(known).map(|(e, _)| e);
        }
        while self.at != 0 {
            let Some((e, next)) = self.doc.elem_at(self.at) else {
                self.at = 0;
                return None;
            };
            let here = self.at as u32;
            self.at = next;
            for (i, wanted) in self.names.iter().take(SLOTS).enumerate() {
                if e.is_named(wanted.as_bytes()) {
                    if self.offsets[i] == 0 {
                        self.offsets[i] = here;
                        if i == slot {
                            return Some(e);
                        }
                    }
                    break;
                }
            }
        }
        self.single.filter(|e| e.is_named(path.first().as_bytes()))
    }

    fn walk(
        &mut self,
        slot: u8,
        path: &Path,
        leaf: path::Leaf,
        test: &mut dyn FnMut(Candidate<'a>) -> bool,
    ) -> bool {
        let first = self.field(slot, path);
        path::any(first, path.rest(), leaf, test)
    }
}

pub(super) fn eval(node: &Node, view: &mut View<'_, '_>, mut details: Option<&mut MatchDetails>) -> bool {
    match node {
        Node::And(all) => {
            for n in all {
                if patience::is_over(1) || !eval(n, view, details.as_deref_mut()) {
                    if let Some(d) = details {
                        *d = MatchDetails::default();
                    }
                    return false;
                }
            }
            true
        }
        // Which branch holds says nothing about positions.
        Node::Or(any) => any.iter().any(|n| patience::is_over(1) || eval(n, view, None)),
        Node::Nor(none) => !none.iter().any(|n| patience::is_over(1) || eval(n, view, None)),
        Node::Not(n) => !eval(n, view, None),
        // Arrays on the way, even empty ones, must not speak against it.
        Node::Leaf(Leaf { pred: Pred::Implied(_) | Pred::Near(_), .. }) => true,
        Node::Leaf(Leaf { pred: Pred::Geo(g), path, .. }) if g.rows => g.test_bucket(view.doc, path.dotted()),
        Node::Leaf(l) => eval_leaf(l, view, details),
        Node::ElemMatchObject(m) => eval_elem_match(m, view, details),
        Node::ElemMatchValue(m) => eval_elem_match_value(m, view, details),
        Node::Expr(e) => match e.eval.holds(view.doc) {
            Ok(yes) => yes,
            Err(error) => {
                view.error.get_or_insert(error);
                false
            }
        },
        Node::Text(t) => match t.holds(view.doc) {
            Ok(yes) => yes,
            Err(error) => {
                view.error.get_or_insert(error);
                false
            }
        },
        Node::JsonSchema(s) => s.accepts(view.doc),
        Node::SampleRate(s) => s.random.next_f64() < s.rate,
        Node::AlwaysTrue => true,
        Node::AlwaysFalse => false,
    }
}

#[inline]
fn eval_leaf(l: &Leaf, view: &mut View<'_, '_>, details: Option<&mut MatchDetails>) -> bool {
    let pred = &l.pred;
    if let (None, []) = (&details, l.path.rest()) {
        let e = view.field(l.slot, &l.path);
        // Scalars and missing fields need no walk.
        if !matches!(&e, Some(e) if e.ty == ElementType::Array) {
            return pred.test(e.as_ref());
        }
        return path::any(e, &[], pred.leaf(), &mut |(e, _)| pred.test(e.as_ref()));
    }
    let mut position = None;
    let matched = view.walk(l.slot, &l.path, pred.leaf(), &mut |(e, at)| {
        let yes = pred.test(e.as_ref());
        if yes {
            position = at;
        }
        yes
    });
    note(details, position);
    matched
}

fn note(details: Option<&mut MatchDetails>, position: Option<&[u8]>) {
    if let (Some(d), Some(name)) = (details, position) {
        d.array_index = std::str::from_utf8(name).ok().and_then(|s| s.parse().ok());
    }
}

fn eval_elem_match(m: &ElemMatchObject, view: &mut View<'_, '_>, details: Option<&mut MatchDetails>) -> bool {
    let mut position = None;
    let matched = view.walk(m.slot, &m.path, path::Leaf::Whole, &mut |(e, at)| match matching_member(m, e) {
        Some(inner) => {
            position = at.or(Some(inner));
            true
        }
        None => false,
    });
    note(details, position);
    matched
}

/// The name of the first member of array `e` that matches.
fn matching_member<'a>(m: &ElemMatchObject, e: Option<Elem<'a>>) -> Option<&'a [u8]> {
    let array = e.filter(|e| e.ty == ElementType::Array)?;
    RawDoc::trusted(array.data())
        .iter()
        .filter(|x| matches!(x.ty, ElementType::Document | ElementType::Array))
        .find(|x| {
            patience::is_over(1)
                || eval(&m.scope.root, &mut View::new(RawDoc::trusted(x.data()), &m.scope), None)
        })
        .map(|x| x.name_bytes())
}

fn eval_elem_match_value(
    m: &ElemMatchValue,
    view: &mut View<'_, '_>,
    details: Option<&mut MatchDetails>,
) -> bool {
    let mut position = None;
    let matched = view.walk(m.slot, &m.path, path::Leaf::Whole, &mut |(e, at)| match matching_value(m, e) {
        Some(inner) => {
            position = at.or(Some(inner));
            true
        }
        None => false,
    });
    note(details, position);
    matched
}

fn matching_value<'a>(m: &ElemMatchValue, e: Option<Elem<'a>>) -> Option<&'a [u8]> {
    let array = e.filter(|e| e.ty == ElementType::Array)?;
    RawDoc::trusted(array.data())
        .iter()
        .find(|x| patience::is_over(1) || m.all.iter().all(|n| eval_single(n, Some(x))))
        .map(|x| x.name_bytes())
}

/// Whether a predicate without a path holds for one value, arrays not unwound.
pub(crate) fn eval_single(node: &Node, e: Option<&Elem<'_>>) -> bool {
    match node {
        Node::And(all) => all.iter().all(|n| !patience::is_over(1) && eval_single(n, e)),
        Node::Or(any) => any.iter().any(|n| patience::is_over(1) || eval_single(n, e)),
        Node::Nor(none) => !none.iter().any(|n| patience::is_over(1) || eval_single(n, e)),
        Node::Not(n) => !eval_single(n, e),
        Node::Leaf(l) => l.pred.test(e),
        Node::ElemMatchObject(m) => matching_member(m, e.copied()).is_some(),
        Node::ElemMatchValue(m) => matching_value(m, e.copied()).is_some(),
        Node::AlwaysTrue => true,
        Node::Expr(_) | Node::JsonSchema(_) | Node::SampleRate(_) | Node::Text(_) | Node::AlwaysFalse => {
            false
        }
    }
}

/// The name of the first array member for which the node holds, given the array itself.
pub(crate) fn first_matching_member<'a>(node: &Node, array: Elem<'a>) -> Option<Elem<'a>> {
    let name = match node {
        Node::ElemMatchObject(m) => matching_member(m, Some(array)),
        Node::ElemMatchValue(m) => matching_value(m, Some(array)),
        _ => None,
    }?;
    RawDoc::trusted(array.data()).iter().find(|x| x.name_bytes() == name)
}

impl Pred {
    /// What an array at the end of the path offers to this predicate.
    fn leaf(&self) -> path::Leaf {
        if matches!(self, Pred::Size(_)) { path::Leaf::Whole } else { path::Leaf::Elements }
    }

    #[inline]
    pub(crate) fn test(&self, e: Option<&Elem<'_>>) -> bool {
        match self {
            Pred::Cmp(c) => c.test(e),
            Pred::In(list) => list.test(e),
            Pred::Regex(r) => r.test(e),
            Pred::Exists => e.is_some(),
            Pred::Type(set) => e.is_some_and(|e| set.contains(e.ty)),
            Pred::Size(n) => e.is_some_and(|e| {
                e.ty == ElementType::Array && RawDoc::trusted(e.data()).count() as i64 == *n
            }),
            Pred::Mod(m) => m.test(e),
            Pred::Bits(b) => b.test(e),
            Pred::Geo(g) => g.test(e),
            Pred::Bucket(t) => t.test(e),
            Pred::Implied(_) | Pred::Near(_) => true,
        }
    }
}
