//! One predicate into the intervals of one index field, and how exactly they tell what matches.

use super::interval::{Interval, IntervalList, Order};
use crate::geo::GeoIndex;
use crate::matcher::{CmpOp, Comparison, InList, Node, Operand, Pred, RegexPred, TypeSet};
use crate::regex::literal_prefix;
use pando_bson::{ElementType, RawDoc, Value};

/// What an entry inside the bounds says about the predicate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tightness {
    /// The document must be looked at.
    InexactFetch,
    /// The key must be looked at.
    InexactCovered,
    /// It matches.
    Exact,
}

/// The index field that bounds are made for.
#[derive(Clone, Copy)]
pub struct FieldTraits<'a> {
    /// Some document has an array on the field's path.
    pub multikey: bool,
    pub sparse: bool,
    pub hashed: bool,
    /// Strings in keys are collation sort keys.
    pub collated: bool,
    pub order: Order<'a>,
    /// Keys are cells.
    pub geo: Option<&'a GeoIndex>,
}

pub type Bounds = (IntervalList, Tightness);

fn op(v: Value<'_>) -> Operand {
    v.into()
}

fn undefined() -> Interval {
    Interval::point(op(Value::Undefined))
}

fn null_bounds() -> IntervalList {
    IntervalList(vec![undefined(), Interval::point(op(Value::Null))])
}

/// Bounds of `node` on a field with these traits; `None` when the field cannot serve it.
pub fn bounds_of(node: &Node, field: FieldTraits<'_>) -> Option<Bounds> {
    if let Some(index) = field.geo {
        return geo_bounds(node, index);
    }
    if field.hashed {
        return hashed_bounds(node, field.order);
    }
    match node {
        Node::Leaf(l) => pred_bounds(&l.pred, field),
        Node::Not(n) => not_bounds(n, field),
        Node::ElemMatchValue(m) => {
            let mut out: Option<IntervalList> = None;
            for n in &m.all {
                if let Some((list, _)) = bounds_of(n, field) {
                    out = Some(match out {
                        None => list,
                        Some(so_far) => so_far.intersect(&list, field.order),
                    });
                }
            }
            out.map(|list| (list, Tightness::InexactFetch))
        }
        _ => None,
    }
}

/// Cells say only roughly where something is.
fn geo_bounds(node: &Node, index: &GeoIndex) -> Option<Bounds> {
    match node {
        Node::Leaf(l) => match &l.pred {
            Pred::Geo(q) => Some((index.bounds(q)?, Tightness::InexactFetch)),
            _ => None,
        },
        _ => None,
    }
}

fn pred_bounds(pred: &Pred, field: FieldTraits<'_>) -> Option<Bounds> {
    Some(match pred {
        Pred::Cmp(c) => comparison_bounds(c, field),
        Pred::In(list) => in_bounds(list, field),
        Pred::Regex(r) => regex_bounds(r, field),
        Pred::Exists => (IntervalList::everything(), Tightness::InexactFetch),
        Pred::Type(set) => type_bounds(*set, field),
        Pred::Mod(_) => (IntervalList::one(Interval::of_class(ElementType::Int32)), covered(field)),
        Pred::Implied(c) if !field.multikey => implied_bounds(c, field),
        Pred::Implied(_) | Pred::Bucket(_) | Pred::Size(_) | Pred::Bits(_) | Pred::Geo(_) | Pred::Near(_) => {
            return None;
        }
    })
}

/// A predicate on the value itself can be tested on the key, unless the document holds several.
fn covered(field: FieldTraits<'_>) -> Tightness {
    if field.multikey { Tightness::InexactFetch } else { Tightness::InexactCovered }
}

fn comparison_bounds(c: &Comparison, field: FieldTraits<'_>) -> Bounds {
    let rhs = &c.rhs;
    let (eq, exact) = (c.op == CmpOp::Eq, Tightness::Exact);
    match rhs.ty() {
        ElementType::Null | ElementType::Undefined => {
            return match c.op {
                CmpOp::Lt | CmpOp::Gt => (IntervalList::default(), exact),
                _ => (null_bounds(), Tightness::InexactFetch),
            };
        }
        ElementType::Array => return (array_bounds(c, field.order), Tightness::InexactFetch),
        ElementType::MinKey | ElementType::MaxKey if !eq => return extreme_bounds(c, field),
        _ => {}
    }
    if rhs.is_nan() {
        return match c.op {
            CmpOp::Lt | CmpOp::Gt => (IntervalList::default(), exact),
            _ => (IntervalList::one(Interval::point(rhs.clone())), exact),
        };
    }
    let class = Interval::of_class(rhs.ty());
    let low = if rhs.is_number() { op(Value::Double(f64::NEG_INFINITY)) } else { class.low.clone() };
    let interval = match c.op {
        CmpOp::Eq => Interval::point(rhs.clone()),
        CmpOp::Lt => Interval::new(low, true, rhs.clone(), false),
        CmpOp::Lte => Interval::new(low, true, rhs.clone(), true),
        CmpOp::Gt => Interval::new(rhs.clone(), false, class.high, class.high_inclusive),
        CmpOp::Gte => Interval::new(rhs.clone(), true, class.high, class.high_inclusive),
    };
    (IntervalList::one(interval).normalize(field.order), exact)
}

/// An expression compares across types.
fn implied_bounds(c: &Comparison, field: FieldTraits<'_>) -> Bounds {
    let (min, max, rhs) = (op(Value::MinKey), op(Value::MaxKey), c.rhs.clone());
    let interval = match c.op {
        CmpOp::Eq => Interval::point(rhs),
        CmpOp::Lt => Interval::new(min, true, rhs, false),
        CmpOp::Lte => Interval::new(min, true, rhs, true),
        CmpOp::Gt => Interval::new(rhs, false, max, true),
        CmpOp::Gte => Interval::new(rhs, true, max, true),
    };
    (IntervalList::one(interval).normalize(field.order), Tightness::Exact)
}

/// Arrays are not keys themselves, their elements are.
fn array_bounds(c: &Comparison, order: Order<'_>) -> IntervalList {
    let first = c.rhs.value().as_array().and_then(|a| a.first().map(Operand::from));
    // An empty array has the key undefined, but any array is above it.
    let none = if c.op == CmpOp::Eq { Value::Undefined } else { Value::MinKey };
    let first = first.unwrap_or_else(|| op(none));
    match c.op {
        CmpOp::Eq => {
            let points = vec![Interval::point(first), Interval::point(c.rhs.clone())];
            IntervalList(points).normalize(order)
        }
        CmpOp::Lt | CmpOp::Lte => {
            IntervalList::one(Interval::new(op(Value::MinKey), true, c.rhs.clone(), true))
        }
        // The first element of a greater array may be of any lower class too, when it is not a key of the
        // array alone: take all from the smaller of the two.
        CmpOp::Gt | CmpOp::Gte => {
            let low =
                if super::interval::compare(&first, &c.rhs, order).is_lt() { first } else { c.rhs.clone() };
            IntervalList::one(Interval::new(low, true, op(Value::MaxKey), true))
        }
    }
}

fn extreme_bounds(c: &Comparison, field: FieldTraits<'_>) -> Bounds {
    let (min, max) = (op(Value::MinKey), op(Value::MaxKey));
    let everything = |low, high| IntervalList::one(Interval::new(min.clone(), low, max.clone(), high));
    let point = |v: &Operand| IntervalList::one(Interval::point(v.clone()));
    let strict = if field.multikey { Tightness::InexactFetch } else { Tightness::Exact };
    match (c.rhs.ty(), c.op) {
        (ElementType::MinKey, CmpOp::Gt) => (everything(field.multikey, true), strict),
        (ElementType::MaxKey, CmpOp::Lt) => (everything(true, field.multikey), strict),
        (ElementType::MinKey, CmpOp::Gte) | (ElementType::MaxKey, CmpOp::Lte) => {
            (everything(true, true), Tightness::Exact)
        }
        (_, CmpOp::Gt | CmpOp::Lt) => (IntervalList::default(), Tightness::Exact),
        _ => (point(&c.rhs), Tightness::Exact),
    }
}

fn in_bounds(list: &InList, field: FieldTraits<'_>) -> Bounds {
    let mut out = IntervalList::default();
    let mut tightness = Tightness::Exact;
    for v in list.values() {
        let c = Comparison::new(CmpOp::Eq, v.clone(), None);
        let (bounds, t) = comparison_bounds(&c, field);
        out.0.extend(bounds.0);
        tightness = tightness.min(t);
    }
    for r in &list.regexes {
        let (bounds, t) = regex_bounds(r, field);
        out.0.extend(bounds.0);
        tightness = tightness.min(t);
    }
    (out.normalize(field.order), tightness)
}

fn regex_bounds(r: &RegexPred, field: FieldTraits<'_>) -> Bounds {
    let stored = Interval::point(op(Value::Regex { pattern: &r.pattern, options: &r.options }));
    let prefix = if field.collated { None } else { literal_prefix(&r.pattern, &r.options) };
    let (strings, exact) = match prefix {
        Some((prefix, exact)) if !prefix.is_empty() => match successor(&prefix) {
            Some(end) => {
                (Interval::new(op(Value::String(&prefix)), true, op(Value::String(&end)), false), exact)
            }
            None => {
                let end = op(Value::Document(RawDoc::empty()));
                (Interval::new(op(Value::String(&prefix)), true, end, false), false)
            }
        },
        Some((_, exact)) => (Interval::of_class(ElementType::String), exact),
        None => (Interval::of_class(ElementType::String), false),
    };
    let tightness = match (exact, field.collated) {
        (true, _) => Tightness::Exact,
        (false, true) => Tightness::InexactFetch,
        (false, false) => covered(field),
    };
    (IntervalList(vec![strings, stored]), tightness)
}

/// The least string above all strings that start with `prefix`; `None` when there is none in UTF-8.
fn successor(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            '\u{D7FF}' => Some('\u{E000}'),
            c => char::from_u32(c as u32 + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

fn type_bounds(set: TypeSet, field: FieldTraits<'_>) -> Bounds {
    if set.contains(ElementType::Array) {
        return (IntervalList::everything(), Tightness::InexactFetch);
    }
    let mut out = IntervalList::default();
    if set.all_numbers {
        out.0.push(Interval::of_class(ElementType::Double));
    }
    out.0.extend(set.iter().map(Interval::of_class));
    // Classes of one type need no second look.
    let own_class = |ty: ElementType| {
        !matches!(
            ty,
            ElementType::Double
                | ElementType::Int32
                | ElementType::Int64
                | ElementType::Decimal128
                | ElementType::String
                | ElementType::Symbol
        )
    };
    let tightness = if set.contains(ElementType::Null) || set.contains(ElementType::Undefined) {
        // Missing fields and empty arrays have such keys too.
        Tightness::InexactFetch
    } else if set
        .iter()
        .all(|t| own_class(t) || (set.all_numbers && t != ElementType::String && t != ElementType::Symbol))
    {
        Tightness::Exact
    } else if field.collated {
        Tightness::InexactFetch
    } else {
        covered(field)
    };
    (out.normalize(field.order), tightness)
}

fn not_bounds(inner: &Node, field: FieldTraits<'_>) -> Option<Bounds> {
    let Node::Leaf(l) = inner else { return None };
    let has_array = |v: &Operand| matches!(v.ty(), ElementType::Array | ElementType::Regex);
    let has_null = |v: &Operand| v.ty() == ElementType::Null;
    match &l.pred {
        Pred::Exists => {
            if field.sparse {
                return None;
            }
            return Some((IntervalList::one(Interval::point(op(Value::Null))), Tightness::InexactFetch));
        }
        Pred::Cmp(c) if has_array(&c.rhs) || (has_null(&c.rhs) && field.multikey) => return None,
        Pred::In(list)
            if !list.regexes.is_empty()
                || list.values().iter().any(has_array)
                || (list.has_null() && field.multikey) =>
        {
            return None;
        }
        Pred::Cmp(_) | Pred::In(_) => {}
        _ => return None,
    }
    let null = match &l.pred {
        Pred::Cmp(c) => has_null(&c.rhs),
        Pred::In(list) => list.has_null(),
        _ => false,
    };
    let (list, tightness) = pred_bounds(&l.pred, field)?;
    if tightness != Tightness::Exact && !null {
        return None;
    }
    let mut out = list.complement();
    if null {
        // Nothing lies between undefined and null.
        out.0.retain(|i| i.low.ty() != ElementType::Undefined);
    }
    let tightness = if field.multikey { Tightness::InexactFetch } else { Tightness::Exact };
    Some((out, tightness))
}

fn hashed_bounds(node: &Node, order: Order<'_>) -> Option<Bounds> {
    let point = |v: Value<'_>| Interval::point(op(Value::Int64(pando_bson::hashed::hashed_key(v))));
    let of = |v: &Operand| match v.ty() {
        ElementType::Array | ElementType::Regex => None,
        // Their keys are hashes of sort keys.
        ElementType::String | ElementType::Symbol | ElementType::Document if order.is_some() => None,
        ElementType::Null => Some(vec![point(Value::Null), point(Value::Undefined)]),
        _ => Some(vec![point(v.value())]),
    };
    let list = match node {
        Node::Not(inner) => match &**inner {
            Node::Leaf(l) if matches!(l.pred, Pred::Exists) => IntervalList::one(point(Value::Null)),
            _ => return None,
        },
        Node::Leaf(l) => match &l.pred {
            Pred::Cmp(c) | Pred::Implied(c) if c.op == CmpOp::Eq => IntervalList(of(&c.rhs)?),
            Pred::In(list) if list.regexes.is_empty() => {
                let points = list.values().iter().map(of).collect::<Option<Vec<_>>>()?;
                IntervalList(points.into_iter().flatten().collect())
            }
            Pred::Exists => IntervalList::everything(),
            _ => return None,
        },
        _ => return None,
    };
    Some((list.normalize(None), Tightness::InexactFetch))
}
