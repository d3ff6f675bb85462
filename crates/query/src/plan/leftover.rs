//! The conditions that a scan leaves to be checked, in MongoDB's order: those that bound it first, in the order of the
//! index's fields, then the others by path and kind. A scan without bounds leaves them as they are.

use super::access::Access;
use crate::matcher::{Node, Path, rank};

/// `nodes` with, for each, whether it bounds the scan.
pub(super) fn ordered(access: &Access, nodes: Vec<(Node, bool)>) -> Vec<Node> {
    if !access.used.contains(&true) {
        return nodes.into_iter().map(|(n, _)| n).collect();
    }
    let place = |n: &Node| {
        let path = bounded_path(n);
        access.fields.iter().position(|f| f.name == path || within(&f.name, path)).unwrap_or(0)
    };
    let mut keyed: Vec<(usize, Node)> = nodes
        .into_iter()
        .map(|(n, bounds)| (if bounds { place(&n) } else { usize::MAX }, sorted(n)))
        .collect();
    keyed.sort_by(|(i, a), (j, b)| i.cmp(j).then_with(|| by_path(a, b)));
    keyed.into_iter().map(|(_, n)| n).collect()
}

fn within(field: &str, path: &str) -> bool {
    field.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
}

fn bounded_path(n: &Node) -> &str {
    match n {
        Node::Not(inner) => bounded_path(inner),
        other => other.path().map_or("", Path::dotted),
    }
}

fn by_path(a: &Node, b: &Node) -> std::cmp::Ordering {
    let path = |n: &Node| n.path().map_or(String::new(), |p| p.dotted().to_owned());
    path(a).cmp(&path(b)).then_with(|| rank(a).cmp(&rank(b)))
}

/// The members of nested lists, of which none bounds anything.
fn sorted(node: Node) -> Node {
    let list = |nodes: Vec<Node>| {
        let mut all: Vec<Node> = nodes.into_iter().map(sorted).collect();
        all.sort_by(by_path);
        all
    };
    match node {
        Node::And(v) => Node::And(list(v)),
        Node::Or(v) => Node::Or(list(v)),
        Node::Nor(v) => Node::Nor(list(v)),
        other => other,
    }
}
