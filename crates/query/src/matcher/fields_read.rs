//! Which top-level fields of a document a filter looks at.

use super::{Matcher, Node};
use std::collections::BTreeSet;

impl Matcher {
    /// Names of the top-level fields that decide, in order. What needs the whole document (`$jsonSchema`, `$$ROOT`) adds none.
    pub fn fields_read(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        collect(self.root(), &mut names);
        names
    }
}

fn collect(node: &Node, names: &mut BTreeSet<String>) {
    if let Some(path) = node.path() {
        names.insert(path.first().to_owned());
    }
    if let Node::Expr(e) = node {
        let mut paths = BTreeSet::new();
        e.eval.dependencies(&mut paths);
        names.extend(paths.iter().map(|p| p.split('.').next().unwrap_or(p).to_owned()));
    }
    node.children().iter().for_each(|n| collect(n, names));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctx::QueryCtx;
    use pando_bson::doc;

    #[test]
    fn paths_and_expressions_name_their_first_field() {
        let filter = doc! { "a.b": 1, "$or": [{ "c": { "$gt": 2 } }, { "$expr": { "$gt": ["$d.e", 1] } }] };
        let matcher = Matcher::parse(&filter.to_raw(), &QueryCtx::default()).unwrap();
        assert_eq!(matcher.fields_read().into_iter().collect::<Vec<_>>(), ["a", "c", "d"]);
    }
}
