//! Where `$near` may stand: once, and beside conditions rather than inside of them.

use super::node::{Node, Pred};
use crate::geo::NearQuery;
use pando_base::{Error, Result};
use std::sync::Arc;

impl Node {
    /// The `$near` of a filter, and its path.
    pub fn near(&self) -> Option<(&super::Path, &Arc<NearQuery>)> {
        match self {
            Node::Leaf(l) => match &l.pred {
                Pred::Near(n) => Some((&l.path, n)),
                _ => None,
            },
            Node::And(all) => all.iter().find_map(|n| match n {
                Node::Leaf(_) => n.near(),
                _ => None,
            }),
            _ => None,
        }
    }
}

pub(super) fn check(root: &Node) -> Result<()> {
    let count = count(root);
    if count > 1 {
        return Err(Error::bad_value("Too many geoNear expressions"));
    }
    if count == 1 && root.near().is_none() {
        return Err(super::parse::near_inside());
    }
    Ok(())
}

fn count(n: &Node) -> usize {
    let own = match n {
        Node::Leaf(l) => usize::from(matches!(l.pred, Pred::Near(_))),
        Node::ElemMatchObject(m) => count(&m.scope.root),
        Node::ElemMatchValue(m) => m.all.iter().map(count).sum(),
        _ => 0,
    };
    own + n.children().iter().map(count).sum::<usize>()
}
