//! Wildcard indexes: which paths of a document they cover.
//!
//! A wildcard index has one entry per leaf: `(path, value)`. A path is covered when it lies under the prefix
//! (`a` in `a.$**`) and inside the `wildcardProjection`; `_id` is left out unless asked for.

use pando_base::{Error, Result};
use pando_bson::{RawDoc, Value};
use std::collections::BTreeMap;

/// A parsed `wildcardProjection`.
#[derive(Clone, Debug)]
pub(crate) struct PathFilter {
    include: bool,
    id: bool,
    tree: Tree,
}

#[derive(Clone, Debug, Default)]
struct Tree {
    children: BTreeMap<Vec<u8>, Tree>,
}

/// What a path is to the projection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Coverage {
    /// Nothing below this path is indexed.
    None,
    /// Some paths below may be; look further down.
    Below,
    /// This path and everything below.
    All,
}

impl Default for PathFilter {
    /// Everything but `_id`.
    fn default() -> PathFilter {
        PathFilter { include: false, id: false, tree: Tree::default() }
    }
}

impl PathFilter {
    pub(crate) fn parse(projection: &RawDoc) -> Result<PathFilter> {
        let mut mode = None;
        let mut id = false;
        let mut tree = Tree::default();
        for e in projection {
            if e.name() == "_id" && e.value().as_doc().is_none() {
                id = e.value().is_truthy();
                continue;
            }
            add(&mut tree, e.path()?, e.value(), &mut mode)?;
        }
        Ok(PathFilter { include: mode.unwrap_or(false), id, tree })
    }

    /// Coverage of the path with these components.
    pub(crate) fn coverage(&self, path: &[u8]) -> Coverage {
        if path == b"_id" || path.starts_with(b"_id.") {
            return if self.id { Coverage::All } else { Coverage::None };
        }
        let mut node = &self.tree;
        for part in path.split(|b| *b == b'.') {
            match node.children.get(part) {
                Some(child) if child.children.is_empty() => {
                    return if self.include { Coverage::All } else { Coverage::None };
                }
                Some(child) => node = child,
                None => return if self.include { Coverage::None } else { Coverage::All },
            }
        }
        Coverage::Below
    }
}

fn add(tree: &mut Tree, path: &str, v: Value<'_>, mode: &mut Option<bool>) -> Result<()> {
    if let Value::Document(d) = v {
        for e in d {
            add(tree, &format!("{path}.{}", e.path()?), e.value(), mode)?;
        }
        return Ok(());
    }
    if !v.is_number() && !matches!(v, Value::Boolean(_)) {
        return Err(Error::location(
            51271,
            "Bad projection specification, cannot use computed fields when parsing a spec in kBanComputedFields mode",
        ));
    }
    let include = v.is_truthy();
    match *mode {
        Some(true) if !include => {
            return Err(Error::location(
                31254,
                format!("Cannot do exclusion on field {path} in inclusion projection"),
            ));
        }
        Some(false) if include => {
            return Err(Error::location(
                31253,
                format!("Cannot do inclusion on field {path} in exclusion projection"),
            ));
        }
        _ => *mode = Some(include),
    }
    let mut node = tree;
    for part in path.split('.') {
        node = node.children.entry(part.as_bytes().to_vec()).or_default();
    }
    Ok(())
}

/// Refuses what a `wildcardProjection` may not say: it is a projection as a stage has it that computes nothing.
pub(crate) fn check_projection(projection: &RawDoc) -> Result<()> {
    pando_query::stage::check_plain_projection(projection)?;
    PathFilter::parse(projection).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn inclusion_and_exclusion_cover_subtrees() {
        let inc = PathFilter::parse(&doc! { "a.b": 1, "c": 1 }.to_raw()).unwrap();
        let all = ["a", "a.b", "a.b.x", "a.c", "c", "c.d", "z", "_id"].map(|p| inc.coverage(p.as_bytes()));
        use Coverage::{All, Below, None};
        assert_eq!(all, [Below, All, All, None, All, All, None, None]);

        let exc = PathFilter::parse(&doc! { "a": { "b": 0 }, "_id": 1 }.to_raw()).unwrap();
        assert_eq!(
            ["a", "a.b", "a.c", "z", "_id"].map(|p| exc.coverage(p.as_bytes())),
            [Below, None, All, All, All]
        );
        assert_eq!(PathFilter::default().coverage(b"x.y"), All);
    }

    #[test]
    fn mixed_modes_are_refused() {
        let e = check_projection(&doc! { "a": 1, "b": 0 }.to_raw()).unwrap_err();
        assert_eq!(e.code.0, 31254);
        assert!(check_projection(&doc! { "a": 1, "_id": 0 }.to_raw()).is_ok());
    }
}
