//! The conditions of a conjunction that an index could answer, pulled out of the filter tree.

use crate::matcher::Node;

/// One condition on one path.
#[derive(Clone, Debug)]
pub(super) struct Predicate<'a> {
    /// Full path, through enclosing `$elemMatch`es.
    pub path: String,
    pub node: &'a Node,
    /// Which top-level conjunct it belongs to.
    pub conjunct: usize,
    /// The `$elemMatch` object it is in: predicates of one group speak of the same array element.
    pub group: Option<Group>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Group {
    pub id: usize,
    /// Path components of the `$elemMatch` itself.
    pub depth: usize,
}

/// The members of a conjunction; a lone condition is one of itself.
pub(super) fn conjuncts(root: &Node) -> &[Node] {
    match root {
        Node::And(all) => all,
        one => std::slice::from_ref(one),
    }
}

/// All indexable conditions among the conjuncts; `$or` is treated elsewhere.
pub(super) fn collect(conjuncts: &[Node]) -> Vec<Predicate<'_>> {
    let mut out = Vec::new();
    let mut groups = 0;
    for (i, node) in conjuncts.iter().enumerate() {
        add(node, "", None, i, &mut groups, &mut out);
    }
    out
}

fn add<'a>(
    node: &'a Node,
    prefix: &str,
    group: Option<Group>,
    conjunct: usize,
    groups: &mut usize,
    out: &mut Vec<Predicate<'a>>,
) {
    let full = |path: &str| if prefix.is_empty() { path.to_owned() } else { format!("{prefix}.{path}") };
    match node {
        Node::Leaf(l) => out.push(Predicate { path: full(l.path.dotted()), node, conjunct, group }),
        Node::ElemMatchValue(m) => out.push(Predicate { path: full(m.path.dotted()), node, conjunct, group }),
        Node::Not(inner) => {
            if let Node::Leaf(l) = &**inner {
                out.push(Predicate { path: full(l.path.dotted()), node, conjunct, group });
            }
        }
        Node::ElemMatchObject(m) => {
            *groups += 1;
            let path = full(m.path.dotted());
            let group = Some(Group { id: *groups, depth: path.split('.').count() });
            for inner in conjuncts(&m.scope.root) {
                add(inner, &path, group, conjunct, groups, out);
            }
        }
        _ => {}
    }
}
