//! How one index serves a conjunction: bounds per field, what is left to check on keys and on documents.
//!
//! **Arrays.** An index entry stands for one element of an array, a condition on an array for "some element".
//! Two conditions on a path that holds arrays may be met by different elements, so their bounds are not
//! intersected, and fields that share an array in their paths are not bounded together, unless an `$elemMatch`
//! says that both speak of the same element.

use super::bound_field::BoundField;
use super::bounds::{Tightness, bounds_of};
use super::eligible::{serves, traits, wildcard_covers};
use super::interval::{Interval, IntervalList};
use super::predicates::Predicate;
use crate::collation::Collation;
use crate::matcher::{Node, Pred};
use crate::source::{FieldKind, IndexInfo, IndexKind};
use pando_base::patience;
use pando_bson::{ElementType, Value, canonical_type};
use std::sync::Arc;

/// One way to use one index.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub index: usize,
    pub fields: Vec<BoundField>,
    /// Conditions to check on the key; their paths name index fields.
    pub key_filter: Vec<Node>,
    /// Per conjunct: the document need not be looked at for it.
    pub done: Vec<bool>,
    /// Per conjunct: it narrows the bounds.
    pub used: Vec<bool>,
    /// A document may come more than once.
    pub multikey: bool,
    /// Path of a wildcard scan.
    pub wild_path: Option<String>,
}

/// What is being served.
pub(super) struct Wanted<'a> {
    pub predicates: &'a [Predicate<'a>],
    pub conjuncts: usize,
    pub collation: &'a Option<Arc<Collation>>,
}

/// All ways in which `index` can serve some of the predicates; empty if it cannot.
pub(super) fn accesses(position: usize, index: &IndexInfo, wanted: &Wanted<'_>) -> Vec<Access> {
    if index.kind == IndexKind::Wildcard {
        return wildcard_accesses(position, index, wanted);
    }
    let bits: Vec<u64> = (0..index.fields.len()).map(|i| index.multikey.field(i)).collect();
    let names: Vec<&str> = index.fields.iter().map(|f| f.path.as_str()).collect();
    let lead = candidates(index, 0, names[0], bits[0], wanted);
    if lead.is_empty() {
        return Vec::new();
    }
    let places = |i: usize| !candidates(index, i, names[i], bits[i], wanted).is_empty();
    if index.geo.is_some() && !(0..names.len()).any(|i| index.fields[i].kind == FieldKind::Geo && places(i)) {
        return Vec::new();
    }
    // On an array field each condition is a choice of its own.
    let choices = if bits[0] != 0 { groups_of(&lead, bits[0]) } else { vec![lead] };
    let builder = Builder { position, index, names: &names, bits: &bits, wanted };
    choices.into_iter().take(MAX_LEAD_CHOICES).map(|lead| builder.build(lead)).collect()
}

/// The fields of an index that is searched for what is near; `None` when its first field is another one, which no
/// condition bounds.
pub(super) fn near_access(
    position: usize,
    index: &IndexInfo,
    wanted: &Wanted<'_>,
    place: usize,
) -> Option<Access> {
    let bits: Vec<u64> = (0..index.fields.len()).map(|i| index.multikey.field(i)).collect();
    let names: Vec<&str> = index.fields.iter().map(|f| f.path.as_str()).collect();
    let mut lead = Vec::new();
    if place > 0 {
        lead = candidates(index, 0, names[0], bits[0], wanted);
        if bits[0] != 0 {
            lead = groups_of(&lead, bits[0]).into_iter().next()?;
        }
        lead.first()?;
    }
    let builder = Builder { position, index, names: &names, bits: &bits, wanted };
    Some(builder.build(lead))
}

/// Alternatives tried for the first field of one index.
const MAX_LEAD_CHOICES: usize = 6;

/// A predicate with its bounds on some field.
#[derive(Clone)]
struct Bounded<'a> {
    predicate: &'a Predicate<'a>,
    intervals: IntervalList,
    tightness: Tightness,
}

fn candidates<'a>(
    index: &IndexInfo,
    field: usize,
    path: &str,
    bits: u64,
    wanted: &Wanted<'a>,
) -> Vec<Bounded<'a>> {
    let traits = traits(index, field, bits != 0);
    if patience::is_over(wanted.predicates.len()) {
        return Vec::new();
    }
    let mut out: Vec<Bounded<'a>> = wanted
        .predicates
        .iter()
        .filter(|p| p.path == path && serves(index, field, p.node, wanted.collation))
        .filter_map(|predicate| {
            let (intervals, tightness) = bounds_of(predicate.node, traits)?;
            Some(Bounded { predicate, intervals, tightness })
        })
        .collect();
    out.sort_by_key(|b| rank(b.predicate.node));
    out
}

/// How promising a condition is.
fn rank(node: &Node) -> u8 {
    match node {
        Node::Leaf(l) => match &l.pred {
            Pred::Cmp(c) if c.op == crate::matcher::CmpOp::Eq => 0,
            Pred::Implied(c) if c.op == crate::matcher::CmpOp::Eq => 0,
            Pred::In(_) => 1,
            Pred::Cmp(_) => 2,
            Pred::Regex(_) => 3,
            Pred::Exists => 6,
            _ => 4,
        },
        Node::ElemMatchValue(_) => 2,
        _ => 7,
    }
}

/// Which predicates may be intersected on one array field: those of one `$elemMatch` that has the arrays
/// outside of itself, else each alone.
fn groups_of<'a>(all: &[Bounded<'a>], bits: u64) -> Vec<Vec<Bounded<'a>>> {
    let mut out: Vec<Vec<Bounded<'a>>> = Vec::new();
    for b in all {
        let joins = |set: &&mut Vec<Bounded<'a>>| match (set[0].predicate.group, b.predicate.group) {
            (Some(x), Some(y)) => x.id == y.id && bits >> x.depth.min(63) == 0,
            _ => false,
        };
        match out.iter_mut().find(joins) {
            Some(set) => set.push(b.clone()),
            None => out.push(vec![b.clone()]),
        }
    }
    out
}

struct Builder<'b, 'a> {
    position: usize,
    index: &'b IndexInfo,
    names: &'b [&'b str],
    bits: &'b [u64],
    wanted: &'b Wanted<'a>,
}

impl<'a> Builder<'_, 'a> {
    fn build(&self, lead: Vec<Bounded<'a>>) -> Access {
        let mut chosen: Vec<Vec<Bounded<'a>>> = vec![lead];
        for field in 1..self.names.len() {
            let all: Vec<Bounded<'a>> =
                candidates(self.index, field, self.names[field], self.bits[field], self.wanted)
                    .into_iter()
                    .filter(|b| self.compatible(field, b, &chosen))
                    .collect();
            let set = if self.bits[field] == 0 {
                all
            } else {
                // The largest group first: it narrows most.
                let mut groups = groups_of(&all, self.bits[field]);
                groups.sort_by_key(|g| std::cmp::Reverse(g.len()));
                groups.into_iter().next().unwrap_or_default()
            };
            chosen.push(set);
        }
        self.assemble(chosen)
    }

    /// Whether a condition on `field` may be bounded together with what is chosen for earlier fields.
    fn compatible(&self, field: usize, b: &Bounded<'a>, chosen: &[Vec<Bounded<'a>>]) -> bool {
        chosen.iter().enumerate().all(|(other, set)| {
            let Some(first) = set.first() else { return true };
            let shared = shared_components(self.names[field], self.names[other]).min(63);
            let arrays = (self.bits[field] | self.bits[other]) & ((1 << shared) - 1);
            if arrays == 0 {
                return true;
            }
            let deepest = 63 - arrays.leading_zeros() as usize;
            match (first.predicate.group, b.predicate.group) {
                (Some(x), Some(y)) => x.id == y.id && x.depth > deepest,
                _ => false,
            }
        })
    }

    fn assemble(&self, chosen: Vec<Vec<Bounded<'a>>>) -> Access {
        let order = Collation::order(&self.index.collation);
        let mut done = vec![false; self.wanted.conjuncts];
        let mut used = vec![false; self.wanted.conjuncts];
        let mut key_filter = Vec::new();
        let mut fields = Vec::with_capacity(chosen.len());
        for (i, set) in chosen.into_iter().enumerate() {
            let mut intervals: Option<IntervalList> = None;
            for b in set {
                let whole = b.predicate.group.is_none();
                used[b.predicate.conjunct] = true;
                match b.tightness {
                    Tightness::Exact if whole => done[b.predicate.conjunct] = true,
                    Tightness::InexactCovered if whole => {
                        done[b.predicate.conjunct] = true;
                        key_filter.push(b.predicate.node.clone());
                    }
                    _ if whole && self.exists_is_exact(b.predicate.node) => done[b.predicate.conjunct] = true,
                    _ => {}
                }
                intervals = Some(match intervals {
                    None => b.intervals,
                    Some(so_far) => so_far.intersect(&b.intervals, order),
                });
            }
            fields.push(BoundField {
                name: self.names[i].to_owned(),
                kind: self.index.fields[i].kind,
                intervals: intervals.unwrap_or_else(IntervalList::everything),
                multikey: self.bits[i],
            });
        }
        Access {
            index: self.position,
            fields,
            key_filter,
            done,
            used,
            multikey: self.index.multikey.is_multikey(),
            wild_path: None,
        }
    }

    /// A sparse single-field index holds just the documents that have the field.
    fn exists_is_exact(&self, node: &Node) -> bool {
        self.index.sparse
            && self.names.len() == 1
            && matches!(node, Node::Leaf(l) if matches!(l.pred, Pred::Exists))
    }
}

/// Path components that two paths begin with in common.
pub(super) fn shared_components(a: &str, b: &str) -> usize {
    a.split('.').zip(b.split('.')).take_while(|(x, y)| x == y).count()
}

/// The whole index, for its order or because a hint says so.
pub(super) fn whole_index(position: usize, index: &IndexInfo, conjuncts: usize) -> Access {
    let fields = index.fields.iter().enumerate().map(|(i, f)| BoundField {
        name: f.path.clone(),
        kind: f.kind,
        intervals: IntervalList::everything(),
        multikey: index.multikey.field(i),
    });
    Access {
        index: position,
        fields: fields.collect(),
        key_filter: Vec::new(),
        done: vec![false; conjuncts],
        used: vec![false; conjuncts],
        multikey: index.multikey.is_multikey(),
        wild_path: None,
    }
}

/// A wildcard index serves one path at a time; its keys are (path, value).
fn wildcard_accesses(position: usize, index: &IndexInfo, wanted: &Wanted<'_>) -> Vec<Access> {
    let (Some(wildcard), [field]) = (&index.wildcard, index.fields.as_slice()) else { return Vec::new() };
    let mut paths: Vec<&str> = wanted.predicates.iter().map(|p| p.path.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut out = Vec::new();
    for path in paths {
        if !wildcard_covers(&wildcard.prefix, &wildcard.projection, path) || path.split('.').any(is_position)
        {
            continue;
        }
        let bits = wildcard_bits(wildcard, path);
        let all = candidates(index, 0, path, bits, wanted);
        let choices = if bits != 0 { groups_of(&all, bits) } else { vec![all] };
        for set in choices.into_iter().filter(|set| !set.is_empty()).take(MAX_LEAD_CHOICES) {
            let names = [path];
            let bits = [bits];
            let builder = Builder { position, index, names: &names, bits: &bits, wanted };
            let mut access = builder.assemble(vec![set]);
            let below = spans_documents(&access.fields[0].intervals);
            if below {
                // Documents have no key of their own: look at all that lies below, and at the document.
                access.fields[0].intervals = IntervalList::everything();
                access.key_filter.clear();
                access.done.iter_mut().for_each(|d| *d = false);

                // Looking for the field at all: nothing else has to be checked.
                for p in wanted.predicates.iter().filter(|p| p.path == path && p.group.is_none()) {
                    if matches!(p.node, Node::Leaf(l) if matches!(l.pred, Pred::Exists)) {
                        access.done[p.conjunct] = true;
                    }
                }
            }
            access.fields.insert(0, path_field(path, below));
            access.fields[1].kind = field.kind;
            access.multikey = bits[0] != 0 || below;
            access.wild_path = Some(path.to_owned());
            out.push(access);
        }
    }
    out
}

/// Whether a range (not just a point) takes in sub-documents.
fn spans_documents(list: &IntervalList) -> bool {
    list.0.iter().any(|i| {
        let (low, high) = (canonical_type(i.low.ty()), canonical_type(i.high.ty()));
        let document = canonical_type(ElementType::Document);
        !i.is_point() && low <= document && (high > document || (high == document && low == document))
    })
}

fn is_position(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())
}

/// Multikey bits of a path under a wildcard index: whichever of its prefixes held arrays.
fn wildcard_bits(wildcard: &crate::source::Wildcard, path: &str) -> u64 {
    let arrays = wildcard.multikey_paths.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut bits = 0;
    let mut prefix = String::new();
    for (i, part) in path.split('.').enumerate() {
        if i > 0 {
            prefix.push('.');
        }
        prefix.push_str(part);
        if arrays.contains(&prefix) {
            bits |= 1 << i.min(63);
        }
    }
    bits
}

fn path_field(path: &str, below: bool) -> BoundField {
    let text = |s: &str| -> crate::matcher::Operand { Value::String(s).into() };
    let mut intervals = IntervalList::one(Interval::point(text(path)));
    if below {
        let (from, to) = (format!("{path}."), format!("{path}/"));
        intervals.0.push(Interval::new(text(&from), true, text(&to), false));
    }
    BoundField { name: "$_path".into(), kind: FieldKind::Ascending, intervals, multikey: 0 }
}
