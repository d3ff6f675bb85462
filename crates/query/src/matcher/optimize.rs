//! Rewrites that keep a filter's meaning and give equal filters equal trees.
//!
//! Nested `$and`/`$or` are flattened, constants folded, `$or` of equalities on one path becomes `$in`, an `$in` of
//! one becomes an equality, and siblings are put into MongoDB's order (kind, then path).

use super::compare::{CmpOp, Comparison};
use super::in_list::InList;
use super::near::has_text;
use super::node::{ElemMatchObject, Node, Pred, Scope};
use crate::names::NamedList;
use std::cmp::Ordering;

pub(super) fn finish(root: Node) -> Scope {
    scoped(optimize(root))
}

/// Parts of a finished tree that stand together now, in this order.
pub(super) fn joined(mut parts: Vec<Node>) -> Scope {
    scoped(if parts.len() == 1 { parts.remove(0) } else { Node::And(parts) })
}

fn scoped(mut root: Node) -> Scope {
    let mut names = NamedList::default();
    assign(&mut root, &mut names);
    Scope { root, names: names.iter().map(|(name, ())| name.clone()).collect() }
}

fn optimize(node: Node) -> Node {
    match node {
        Node::And(v) => and(v),
        Node::Or(v) => or(v),
        Node::Nor(v) => {
            let mut v: Vec<Node> = v.into_iter().map(optimize).collect();
            if v.len() == 1 {
                return not(v.remove(0));
            }
            sort(&mut v);
            Node::Nor(v)
        }
        Node::Not(n) => not(optimize(*n)),
        Node::Leaf(mut l) => {
            if let Pred::In(list) = &mut l.pred {
                match (list.values(), list.regexes.as_slice()) {
                    ([one], []) => {
                        l.pred = Pred::Cmp(Comparison::new(CmpOp::Eq, one.clone(), list.collation.clone()));
                    }
                    ([], [one]) => l.pred = Pred::Regex(one.clone()),
                    _ => {}
                }
            }
            Node::Leaf(l)
        }
        Node::ElemMatchObject(m) => {
            let scope = Box::new(finish(m.scope.root));
            Node::ElemMatchObject(ElemMatchObject { scope, ..m })
        }
        Node::ElemMatchValue(mut m) => {
            m.all = match and(m.all) {
                Node::And(v) => v,
                one => vec![one],
            };
            Node::ElemMatchValue(m)
        }
        other => other,
    }
}

fn not(n: Node) -> Node {
    match n {
        Node::AlwaysFalse => Node::AlwaysTrue,
        n if n.is_trivially_true() => Node::AlwaysFalse,
        n => Node::Not(Box::new(n)),
    }
}

fn and(v: Vec<Node>) -> Node {
    let (mut out, mut never) = (Vec::new(), false);
    for n in v {
        match optimize(n) {
            Node::And(inner) => out.extend(inner),
            Node::AlwaysFalse => never = true,
            n => out.push(n),
        }
    }
    if never {
        // A search stays, for it asks for an index all the same.
        out.retain(has_text);
        if out.is_empty() {
            return Node::AlwaysFalse;
        }
        out.push(Node::AlwaysFalse);
    }
    if out.len() > 1 {
        out.retain(|n| !matches!(n, Node::AlwaysTrue));
        if out.is_empty() {
            return Node::AlwaysTrue;
        }
    }
    if out.len() == 1 {
        return out.remove(0);
    }
    sort(&mut out);
    Node::And(out)
}

fn or(v: Vec<Node>) -> Node {
    let mut out = Vec::new();
    for n in v {
        match optimize(n) {
            Node::Or(inner) => out.extend(inner),
            Node::AlwaysFalse => {}
            n if n.is_trivially_true() => return Node::AlwaysTrue,
            n => out.push(n),
        }
    }
    match out.len() {
        0 => return Node::AlwaysFalse,
        1 => return out.remove(0),
        _ => {}
    }
    if let Some(one) = as_in(&out) {
        return one;
    }
    sort(&mut out);
    Node::Or(out)
}

/// Equalities and regexes on one path are one `$in`.
fn as_in(nodes: &[Node]) -> Option<Node> {
    let mut values = Vec::new();
    let mut regexes = Vec::new();
    let mut collation = None;
    let path = nodes.first()?.path()?.dotted();
    for n in nodes {
        let Node::Leaf(l) = n else { return None };
        if l.path.dotted() != path {
            return None;
        }
        match &l.pred {
            Pred::Regex(r) => regexes.push(r.clone()),
            // A stored regex equal to this one is not what `$in` would look for.
            Pred::Cmp(c) if c.op == CmpOp::Eq && c.rhs.ty() != pando_bson::ElementType::Regex => {
                collation.clone_from(&c.collation);
                values.push(c.rhs.clone());
            }
            _ => return None,
        }
    }
    Some(Node::leaf(path, Pred::In(InList::new(values, regexes, collation))))
}

/// The place of its kind in MongoDB's order.
pub(crate) fn rank(n: &Node) -> u8 {
    match n {
        Node::And(_) => 0,
        Node::Or(_) => 1,
        Node::ElemMatchObject(_) => 2,
        Node::ElemMatchValue(_) => 3,
        Node::Leaf(l) => match &l.pred {
            Pred::Size(_) => 4,
            Pred::Cmp(c) => match c.op {
                CmpOp::Eq => 5,
                CmpOp::Lte => 6,
                CmpOp::Lt => 7,
                CmpOp::Gt => 8,
                CmpOp::Gte => 9,
            },
            Pred::Regex(_) => 10,
            Pred::Mod(_) => 11,
            Pred::Exists => 12,
            Pred::In(_) => 13,
            Pred::Bits(b) => 14 + b.op as u8,
            Pred::Type(_) => 20,
            Pred::Geo(_) | Pred::Bucket(_) => 21,
            Pred::Near(_) => 26,
            // Behind the expression, which decides.
            Pred::Implied(_) => 27,
        },
        Node::Not(_) => 18,
        Node::Nor(_) => 19,
        Node::Expr(_) | Node::SampleRate(_) => 23,
        Node::AlwaysFalse => 24,
        Node::AlwaysTrue => 25,
        Node::JsonSchema(_) | Node::Text(_) => 26,
    }
}

fn order(a: &Node, b: &Node) -> Ordering {
    fn path(n: &Node) -> Option<&str> {
        n.path().map(|p| p.dotted())
    }
    rank(a).cmp(&rank(b)).then_with(|| path(a).cmp(&path(b))).then_with(|| {
        let (x, y) = (inner(a), inner(b));
        for (p, q) in x.iter().zip(y) {
            let by = order(p, q);
            if by != Ordering::Equal {
                return by;
            }
        }
        x.len().cmp(&y.len())
    })
}

fn inner(n: &Node) -> &[Node] {
    match n {
        Node::ElemMatchObject(m) => std::slice::from_ref(&m.scope.root),
        Node::ElemMatchValue(m) => &m.all,
        other => other.children(),
    }
}

fn sort(v: &mut [Node]) {
    v.sort_by(order);
}

/// Gives every distinct first path component of this scope a slot.
fn assign(node: &mut Node, names: &mut NamedList<()>) {
    let mut slot_of = |name: &str| -> u8 {
        let at = names.find(name.as_bytes()).unwrap_or_else(|| {
            names.push(name, ());
            names.len() - 1
        });
        u8::try_from(at).unwrap_or(u8::MAX)
    };
    match node {
        Node::Leaf(l) => l.slot = slot_of(l.path.first()),
        Node::ElemMatchObject(m) => m.slot = slot_of(m.path.first()),
        Node::ElemMatchValue(m) => m.slot = slot_of(m.path.first()),
        Node::And(v) | Node::Or(v) | Node::Nor(v) => v.iter_mut().for_each(|n| assign(n, names)),
        Node::Not(n) => assign(n, names),
        _ => {}
    }
}
