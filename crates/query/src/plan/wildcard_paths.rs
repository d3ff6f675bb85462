//! Paths that a filter may not have beside a wildcard index.
//!
//! A wildcard index has every path, so each path of a filter is read as that of one field: what cannot be a field's path
//! is a mistake then, though the same filter is fine where there is no such index.

use crate::expr::FieldPath;
use crate::matcher::Node;
use crate::source::CollectionInfo;
use pando_base::Result;

/// Err for a path that no field can have, where there is a wildcard index.
pub(super) fn check(root: &Node, info: &CollectionInfo) -> Result<()> {
    if info.indexes.iter().any(|i| i.wildcard.is_some() && !i.hidden) {
        return check_node(root);
    }
    Ok(())
}

fn check_node(node: &Node) -> Result<()> {
    if let Some(path) = node.path() {
        check_path(path.dotted())?;
    }
    match node {
        Node::ElemMatchObject(m) => check_node(&m.scope.root)?,
        Node::JsonSchema(schema) => schema.try_each_name(&mut check_path)?,
        _ => {}
    }
    node.children().iter().try_for_each(check_node)
}

fn check_path(path: &str) -> Result<()> {
    match path {
        "" => Ok(()),
        path => FieldPath::parse(path).map(drop),
    }
}
