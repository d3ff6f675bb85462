//! The `$text` of a filter: found in its tree, and given its meaning by the collection's text index. A plan answers it.

use super::Matcher;
use super::node::Node;
use super::text::TextNode;
use crate::text::TextSpec;
use pando_base::{Error, Result};
use std::sync::Arc;

/// Calls `visit` with every `$text` of the tree and whether it is below a `$nor`.
fn visit(node: &Node, negated: bool, each: &mut dyn FnMut(&TextNode, bool)) {
    match node {
        Node::Text(t) => each(t, negated),
        Node::And(v) | Node::Or(v) => v.iter().for_each(|n| visit(n, negated, each)),
        Node::Nor(v) => v.iter().for_each(|n| visit(n, true, each)),
        Node::Not(n) => visit(n, true, each),
        _ => {}
    }
}

fn give_meaning(node: &mut Node, spec: &Arc<TextSpec>) -> Result<()> {
    match node {
        Node::Text(t) => {
            *t = Arc::new(t.with_meaning(spec)?);
            Ok(())
        }
        Node::And(v) | Node::Or(v) | Node::Nor(v) => v.iter_mut().try_for_each(|n| give_meaning(n, spec)),
        Node::Not(n) => give_meaning(n, spec),
        _ => Ok(()),
    }
}

impl Matcher {
    /// The filter has a `$text`.
    pub fn has_text(&self) -> bool {
        let mut any = false;
        visit(self.root(), false, &mut |_, _| any = true);
        any
    }
    pub(crate) fn text_is_resolved(&self) -> bool {
        let mut all = true;
        visit(self.root(), false, &mut |t, _| all &= t.meaning.is_some());
        all
    }
    /// The same with its `$text` understood as the index does.
    pub(crate) fn with_text_index(&self, spec: &Arc<TextSpec>) -> Result<Matcher> {
        let mut m = self.clone();
        give_meaning(&mut m.scope.root, spec)?;
        let (mut count, mut negated) = (0, false);
        visit(m.root(), false, &mut |_, not| {
            count += 1;
            negated |= not;
        });
        match (negated, count) {
            (true, _) => Err(Error::bad_value("text expression not allowed in nor")),
            (_, 2..) => Err(Error::bad_value("Too many text expressions")),
            _ => Ok(m),
        }
    }
}
