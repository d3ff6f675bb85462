//! Whether an index may serve a condition at all: sparse, partial, collation.

use super::bounds::FieldTraits;
use crate::collation::Collation;
use crate::matcher::{CmpOp, Comparison, Leaf, Node, Operand, Pred};
use crate::source::{FieldKind, IndexInfo, IndexKind};
use pando_bson::compare::{canonical_type, cmp_elems};
use pando_bson::{ElementType, RawDoc, Value};
use std::sync::Arc;

/// The condition's own demands on the index. `field` is the position in the key pattern.
pub(super) fn serves(
    index: &IndexInfo,
    field: usize,
    node: &Node,
    query_collation: &Option<Arc<Collation>>,
) -> bool {
    let kind = index.fields[field].kind;
    match kind {
        FieldKind::Text => return false,
        FieldKind::Geo => return matches!(node, Node::Leaf(l) if matches!(l.pred, Pred::Geo(_))),
        // Arrays are one value in the further fields of a `2d` index.
        _ if index.kind == IndexKind::Geo2d => return false,
        _ => {}
    }
    if !Collation::same(&index.collation, query_collation) && compares_strings(node) {
        return false;
    }
    if index.sparse && !sparse_serves(node) {
        return false;
    }
    if index.kind == IndexKind::Wildcard && index.wildcard_field() == Some(field) {
        return wildcard_serves(node);
    }
    true
}

/// The traits that bounds of field `i` are made with.
pub(super) fn traits(index: &IndexInfo, field: usize, multikey: bool) -> FieldTraits<'_> {
    FieldTraits {
        multikey,
        sparse: index.sparse,
        hashed: index.fields[field].kind == FieldKind::Hashed,
        collated: index.collation.is_some(),
        order: Collation::order(&index.collation),
        geo: index.geo.as_deref().filter(|_| index.fields[field].kind == FieldKind::Geo),
    }
}

fn any_operand(node: &Node, test: &dyn Fn(&Operand) -> bool) -> bool {
    match node {
        Node::Leaf(l) => match &l.pred {
            Pred::Cmp(c) => test(&c.rhs),
            Pred::Implied(c) => test(&c.rhs),
            Pred::In(list) => list.values().iter().any(test),
            _ => false,
        },
        Node::Not(n) => any_operand(n, test),
        Node::ElemMatchValue(m) => m.all.iter().any(|n| any_operand(n, test)),
        _ => false,
    }
}

/// Strings anywhere in the constants: their order is the collation's business.
pub fn compares_strings(node: &Node) -> bool {
    fn holds_string(v: Value<'_>) -> bool {
        match v {
            Value::Document(d) | Value::Array(d) => d.iter().any(|e| holds_string(e.value())),
            v => matches!(v.element_type(), ElementType::String | ElementType::Symbol),
        }
    }
    any_operand(node, &|v| holds_string(v.value()))
}

fn is_null(v: &Operand) -> bool {
    v.ty() == ElementType::Null
}

/// A sparse index knows nothing of documents without the field.
fn sparse_serves(node: &Node) -> bool {
    match node {
        // Only "not null" leaves missing fields out.
        Node::Not(inner) => match &**inner {
            Node::Leaf(l) => match &l.pred {
                Pred::Cmp(c) => c.op == CmpOp::Eq && is_null(&c.rhs),
                _ => false,
            },
            _ => false,
        },
        Node::Leaf(l) => match &l.pred {
            Pred::Cmp(c) => !(is_null(&c.rhs) && c.op.includes_equal()),
            Pred::In(list) => !list.has_null(),
            Pred::Implied(c) => matches!(c.op, CmpOp::Eq | CmpOp::Gt | CmpOp::Gte),
            _ => true,
        },
        _ => true,
    }
}

fn is_eq_null(node: &Node) -> bool {
    matches!(node, Node::Leaf(l) if matches!(&l.pred, Pred::Cmp(c) if c.op == CmpOp::Eq && is_null(&c.rhs)))
}

/// Wildcard indexes hold leaves only, and nothing for missing fields.
fn wildcard_serves(node: &Node) -> bool {
    let whole = |v: &Operand| match v.value() {
        Value::Document(d) | Value::Array(d) => !d.is_empty(),
        Value::Null => true,
        _ => false,
    };
    match node {
        Node::Leaf(l) => match &l.pred {
            Pred::Cmp(c) if matches!(c.rhs.ty(), ElementType::Document) => {
                c.op == CmpOp::Eq && !whole(&c.rhs)
            }
            Pred::Cmp(c) if c.rhs.ty() == ElementType::Array => c.op == CmpOp::Eq && !whole(&c.rhs),
            Pred::Cmp(c) => c.op != CmpOp::Eq || !is_null(&c.rhs),
            Pred::In(list) => !list.values().iter().any(whole),
            Pred::Type(set) => !set.contains(ElementType::Document) && !set.contains(ElementType::Null),
            Pred::Implied(_) => false,
            _ => true,
        },
        Node::ElemMatchValue(m) => m.all.iter().all(wildcard_serves),
        Node::Not(inner) => is_eq_null(inner),
        _ => false,
    }
}

/// Whether every document that matches `query` matches the filter of a partial index.
pub fn implies(query: &Node, partial: &Node) -> bool {
    if partial.is_trivially_true() {
        return true;
    }
    match partial {
        // It stands beside the condition that implies it.
        Node::Leaf(Leaf { pred: Pred::Implied(_), .. }) => return true,
        Node::And(all) => return all.iter().all(|p| implies(query, p)),
        Node::Or(any) => {
            if any.iter().any(|p| implies(query, p)) {
                return true;
            }
        }
        _ => {}
    }
    match query {
        // Nothing meets it.
        Node::Leaf(Leaf { pred: Pred::In(list), .. })
            if list.values().is_empty() && list.regexes.is_empty() =>
        {
            true
        }
        Node::And(all) => all.iter().any(|q| implies(q, partial)),
        Node::Or(any) => any.iter().all(|q| implies(q, partial)),
        Node::Leaf(q) => match partial {
            Node::Leaf(p) if q.path.dotted() == p.path.dotted() => pred_implies(&q.pred, &p.pred),
            _ => false,
        },
        // "not null" is "exists" for this purpose.
        Node::Not(q) => match (&**q, partial) {
            (Node::Leaf(q), Node::Leaf(p)) if q.path.dotted() == p.path.dotted() => {
                matches!(p.pred, Pred::Exists)
                    && matches!(&q.pred, Pred::Cmp(c) if c.op == CmpOp::Eq && is_null(&c.rhs))
            }
            (q, Node::Not(p)) => same(q, p),
            _ => false,
        },
        _ => same(query, partial),
    }
}

fn same(a: &Node, b: &Node) -> bool {
    a.to_doc() == b.to_doc()
}

fn pred_implies(q: &Pred, p: &Pred) -> bool {
    match (q, p) {
        (Pred::Cmp(q), Pred::Cmp(p)) => q.implies(p),
        (Pred::In(q), _) if q.regexes.is_empty() && !q.values().is_empty() => q
            .values()
            .iter()
            .all(|v| pred_implies(&Pred::Cmp(Comparison::new(CmpOp::Eq, v.clone(), q.collation.clone())), p)),
        (Pred::Cmp(q), Pred::In(p)) if q.op == CmpOp::Eq => {
            p.values().iter().any(|v| equal(&q.rhs, v, &q.collation))
        }
        // Everything but a comparison with null finds only fields that are there.
        (Pred::Cmp(q), Pred::Exists) => !is_null(&q.rhs),
        (
            Pred::Regex(_) | Pred::Type(_) | Pred::Mod(_) | Pred::Size(_) | Pred::Bits(_) | Pred::Exists,
            Pred::Exists,
        ) => true,
        (Pred::Type(q), Pred::Type(p)) => {
            q.iter().all(|t| p.contains(t)) && (!q.all_numbers || p.all_numbers)
        }
        (Pred::Cmp(q), Pred::Type(p)) if q.op == CmpOp::Eq && !is_null(&q.rhs) => {
            // 1 is also found as a double, so all of the class must be in.
            let class: Vec<ElementType> = (-1..=127)
                .filter_map(crate::matcher::type_of_code)
                .filter(|t| canonical_type(*t) == canonical_type(q.rhs.ty()))
                .collect();
            class.iter().all(|t| p.contains(*t))
        }
        (Pred::Bucket(q), Pred::Bucket(p)) => q.implies(p),
        (Pred::Regex(q), Pred::Regex(p)) => q.pattern == p.pattern && q.options == p.options,
        _ => {
            let doc = |pred: &Pred| Node::leaf("", pred.clone()).to_doc();
            doc(q) == doc(p)
        }
    }
}

fn equal(a: &Operand, b: &Operand, collation: &Option<Arc<Collation>>) -> bool {
    cmp_elems(&a.elem(), &b.elem(), Collation::order(collation)).is_eq()
}

/// Whether a projection or prefix path list of a wildcard index takes this path in.
pub fn wildcard_covers(prefix: &str, projection: &RawDoc, path: &str) -> bool {
    let below =
        |p: &str, q: &str| p.strip_prefix(q).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    if !prefix.is_empty() {
        return below(path, prefix);
    }
    if path == "_id" || path.starts_with("_id.") {
        return projection.get("_id").is_some_and(|v| v.is_truthy());
    }
    let mut including = None;
    let mut hit = false;
    flatten(projection, "", &mut |name, on| {
        if name == "_id" {
            return;
        }
        including.get_or_insert(on);
        hit |= below(path, name);
    });
    match including {
        None => true,
        Some(true) => hit,
        Some(false) => !hit,
    }
}

fn flatten(doc: &RawDoc, prefix: &str, each: &mut dyn FnMut(&str, bool)) {
    for e in doc {
        let name = if prefix.is_empty() { e.name().to_owned() } else { format!("{prefix}.{}", e.name()) };
        match e.value() {
            Value::Document(d) => flatten(d, &name, each),
            v => each(&name, v.is_truthy()),
        }
    }
}
