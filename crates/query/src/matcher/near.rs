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

/// `$near` orders the whole result, so it cannot be part of something else.
fn near_inside() -> Error {
    Error::bad_value("geo $near must be top-level expr")
}

pub(super) fn check(root: &Node) -> Result<()> {
    let count = count(root);
    if count > 1 {
        return Err(Error::bad_value("Too many geoNear expressions"));
    }
    // Beside a search it is refused wherever it stands, once there is a text index.
    if count == 1 && root.near().is_none() && !has_text(root) {
        return Err(near_inside());
    }
    Ok(())
}

pub(super) fn is_in(root: &Node) -> bool {
    count(root) > 0
}

/// Two orders for one query: that of the search's index and that of the distance.
pub(crate) fn check_beside_text(root: &Node) -> Result<()> {
    match count(root) > 0 && has_text(root) {
        true => Err(Error::bad_value("text and geoNear not allowed in same query")),
        false => Ok(()),
    }
}

/// Some node below searches for words.
pub(super) fn has_text(n: &Node) -> bool {
    matches!(n, Node::Text(_)) || n.children().iter().any(has_text)
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
