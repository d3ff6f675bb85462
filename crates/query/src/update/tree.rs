//! An operator update as a tree of path components with modifiers at the leaves.
//!
//! Building it finds conflicts between paths once, and applying it visits each part of a document once,
//! however many fields are updated.

use super::modifier::Modifier;
use super::path::{Part, Path, cmp_names};
use pando_base::{Error, ErrorCode, HashMap, Result};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) enum Node {
    Object(ObjectNode),
    Array(ArrayNode),
    Leaf(Arc<dyn Modifier>),
}

/// Children by field name or array position.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectNode {
    /// In the order in which new fields are added.
    pub(super) fields: Vec<(Arc<str>, Node)>,
    /// Indexes of `fields` by name bytes; only kept when a search beats a scan.
    by_name: Vec<u32>,
    /// Where children are in `fields`, which is not in order yet: only while a large node is being built.
    unordered: Option<HashMap<Arc<str>, u32>>,
    /// The child under `$`.
    pub(super) positional: Option<Box<Node>>,
}

/// Children by array filter; the empty id is `$[]`.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrayNode {
    pub(super) children: Vec<(Arc<str>, Node)>,
}

/// From here on a binary search beats comparing with every name.
const SCAN_FIELDS_MAX: usize = 8;

/// So many fields are kept in order one by one.
const ORDERED_FIELDS_MAX: usize = 256;

impl ObjectNode {
    /// Position in `fields` of the child with this name.
    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        if self.by_name.is_empty() {
            return self.fields.iter().position(|(n, _)| n.as_bytes() == name);
        }
        let at = self.by_name.binary_search_by(|&i| self.fields[i as usize].0.as_bytes().cmp(name)).ok()?;
        Some(self.by_name[at] as usize)
    }
    /// The child of that name, put there when absent (then the flag is true).
    fn child(&mut self, name: &Arc<str>, absent: Node) -> (&mut Node, bool) {
        let at = self.fields.partition_point(|(n, _)| cmp_names(n, name).is_lt());
        // Names that compare equal as positions have equal bytes, so the point is exact.
        let fresh = self.fields.get(at).is_none_or(|(n, _)| n != name);
        if fresh {
            self.fields.insert(at, (name.clone(), absent));
            self.by_name.clear();
        }
        (&mut self.fields[at].1, fresh)
    }
    /// The same before [`ObjectNode::seal`]. Many fields come in any order and are sorted once.
    fn build_child(&mut self, name: &Arc<str>, absent: Node) -> (&mut Node, bool) {
        if self.fields.len() < ORDERED_FIELDS_MAX {
            return self.child(name, absent);
        }
        let fields = &mut self.fields;
        let known = self.unordered.get_or_insert_with(|| {
            fields.iter().enumerate().map(|(at, (name, _))| (name.clone(), at as u32)).collect()
        });
        let end = fields.len() as u32;
        let at = *known.entry(name.clone()).or_insert(end);
        if at == end {
            fields.push((name.clone(), absent));
        }
        (&mut fields[at as usize].1, at == end)
    }
    /// Finishes building: brings the fields in order and prepares the search in large nodes, here and below.
    fn seal(&mut self) {
        if self.unordered.take().is_some() {
            self.fields.sort_by(|(a, _), (b, _)| cmp_names(a, b));
        }
        if self.fields.len() > SCAN_FIELDS_MAX {
            self.by_name = (0..self.fields.len() as u32).collect();
            let fields = &self.fields;
            self.by_name
                .sort_by(|&a, &b| fields[a as usize].0.as_bytes().cmp(fields[b as usize].0.as_bytes()));
        }
        for (_, child) in &mut self.fields {
            child.seal();
        }
        if let Some(child) = &mut self.positional {
            child.seal();
        }
    }
}

impl ArrayNode {
    fn child(&mut self, id: &Arc<str>, absent: Node) -> (&mut Node, bool) {
        let at = self.children.partition_point(|(n, _)| n < id);
        let fresh = self.children.get(at).is_none_or(|(n, _)| n != id);
        if fresh {
            self.children.insert(at, (id.clone(), absent));
        }
        (&mut self.children[at].1, fresh)
    }
}

impl Node {
    pub(super) fn seal(&mut self) {
        match self {
            Node::Object(o) => o.seal(),
            Node::Array(a) => a.children.iter_mut().for_each(|(_, c)| c.seal()),
            Node::Leaf(_) => {}
        }
    }
    pub(super) fn has_positional(&self) -> bool {
        match self {
            Node::Object(o) => o.positional.is_some() || o.fields.iter().any(|(_, c)| c.has_positional()),
            Node::Array(a) => a.children.iter().any(|(_, c)| c.has_positional()),
            Node::Leaf(_) => false,
        }
    }
}

fn conflict(path: &str, parts_taken: usize) -> Error {
    let at = path.split('.').take(parts_taken).collect::<Vec<_>>().join(".");
    Error::new(
        ErrorCode::ConflictingUpdateOperators,
        format!("Updating the path '{path}' would create a conflict at '{at}'"),
    )
}

/// Puts a modifier at a path; code 40 when it overlaps another.
pub(super) fn insert(root: &mut Node, path: &str, parts: &[Part], modifier: Arc<dyn Modifier>) -> Result<()> {
    let mut holder = root;
    for (at, part) in parts.iter().enumerate() {
        // What this component's child must be to hold the next one.
        let wanted = match parts.get(at + 1) {
            None => Node::Leaf(modifier.clone()),
            Some(Part::Filtered(_)) => Node::Array(ArrayNode::default()),
            Some(_) => Node::Object(ObjectNode::default()),
        };
        let (child, fresh) = match (holder, part) {
            (Node::Object(o), Part::Field(name)) => o.build_child(name, wanted),
            (Node::Object(o), Part::Positional) => {
                let fresh = o.positional.is_none();
                (&mut **o.positional.get_or_insert_with(|| Box::new(wanted)), fresh)
            }
            (Node::Array(a), Part::Filtered(id)) => a.child(id, wanted),
            _ => return Err(conflict(path, at)),
        };
        if !fresh && at + 1 == parts.len() {
            return Err(conflict(path, at + 1));
        }
        holder = child;
    }
    Ok(())
}

pub(super) fn merge_conflict(path: &Path<'_>) -> Error {
    Error::new(ErrorCode::ConflictingUpdateOperators, format!("Update created a conflict at '{path}'"))
}

/// Joins two subtrees that turn out to be about the same element; code 40 when both write it.
pub(super) fn merge(a: &Node, b: &Node, path: &Path<'_>) -> Result<Node> {
    match (a, b) {
        (Node::Object(a), Node::Object(b)) => {
            let mut out = a.clone();
            out.by_name.clear();
            for (name, node) in &b.fields {
                match out.fields.iter().position(|(n, _)| n == name) {
                    Some(at) => {
                        let merged = merge(&out.fields[at].1, node, &path.child(name))?;
                        out.fields[at].1 = merged;
                    }
                    None => {
                        out.child(name, node.clone());
                    }
                }
            }
            out.positional = match (&a.positional, &b.positional) {
                (Some(x), Some(y)) => Some(Box::new(merge(x, y, &path.child("$"))?)),
                (x, y) => x.clone().or_else(|| y.clone()),
            };
            Ok(Node::Object(out))
        }
        (Node::Array(a), Node::Array(b)) => {
            let mut out = a.clone();
            for (id, node) in &b.children {
                match out.children.iter().position(|(n, _)| n == id) {
                    Some(at) => {
                        let shown = format!("$[{id}]");
                        let merged = merge(&out.children[at].1, node, &path.child(&shown))?;
                        out.children[at].1 = merged;
                    }
                    None => {
                        out.child(id, node.clone());
                    }
                }
            }
            Ok(Node::Array(out))
        }
        _ => Err(merge_conflict(path)),
    }
}

/// The node with its `$` child moved to the matched position.
pub(super) fn place_positional(node: &ObjectNode, position: &str, path: &Path<'_>) -> Result<ObjectNode> {
    let mut out = node.clone();
    out.by_name.clear();
    if let Some(child) = out.positional.take() {
        match out.fields.iter().position(|(n, _)| &**n == position) {
            Some(at) => out.fields[at].1 = merge(&out.fields[at].1, &child, &path.child(position))?,
            None => {
                out.child(&position.into(), *child);
            }
        }
    }
    Ok(out)
}
