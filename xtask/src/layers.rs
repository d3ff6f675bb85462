//! The layer table of ARCHITECTURE.md against the crates' real dependencies.
//!
//! A row reads `| <layer number> | `crate` | … |`. A crate may depend on crates of lower layers, and on
//! crates of its own layer only when its row names them in the last column.

use crate::tree::Tree;
use std::collections::BTreeMap;

struct Row {
    layer: u32,
    same_layer: Vec<String>,
}

fn table(tree: &Tree, problems: &mut Vec<String>) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    let Some(doc) = tree.get("ARCHITECTURE.md") else {
        problems.push("ARCHITECTURE.md is missing".into());
        return rows;
    };
    for line in doc.text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (Some(layer), Some(name)) = (cells.get(1).and_then(|c| c.parse().ok()), cells.get(2)) else {
            continue;
        };
        let last = cells.iter().rev().find(|c| !c.is_empty()).copied().unwrap_or_default();
        let same_layer = last.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        rows.insert(name.trim_matches('`').to_owned(), Row { layer, same_layer });
    }
    rows
}

/// `pando-x` names under `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut out = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim() == "[dependencies]";
        } else if inside && let Some(rest) = line.trim().strip_prefix("pando-") {
            out.push(rest.split(['.', ' ', '=']).next().unwrap_or_default().to_owned());
        }
    }
    out
}

pub fn check(tree: &Tree, problems: &mut Vec<String>) {
    let rows = table(tree, problems);
    let manifests = tree.files.iter().filter(|f| {
        (f.path.starts_with("crates/") || f.path.starts_with("bins/")) && f.path.ends_with("/Cargo.toml")
    });
    let mut seen = Vec::new();
    for m in manifests {
        let name = m.path.split('/').nth(1).unwrap_or_default();
        seen.push(name.to_owned());
        let Some(row) = rows.get(name) else {
            problems.push(format!("ARCHITECTURE.md: crate `{name}` has no row in the layer table"));
            continue;
        };
        for dep in dependencies(&m.text) {
            let allowed = rows.get(&dep).is_some_and(|d| {
                d.layer < row.layer || (d.layer == row.layer && row.same_layer.contains(&dep))
            });
            if !allowed {
                problems.push(format!("{}: `{name}` may not depend on `{dep}` (layer table)", m.path));
            }
        }
    }
    for name in rows.keys().filter(|n| !seen.contains(n)) {
        problems.push(format!("ARCHITECTURE.md: row `{name}` has no crate"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::File;

    fn tree(dep: &str) -> Tree {
        let arch = "| 0 | `base` | words | |\n| 1 | `up` | x | |\n| 1 | `side` | x | |\n";
        let files = vec![
            File { path: "ARCHITECTURE.md".into(), text: arch.into() },
            File { path: "crates/base/Cargo.toml".into(), text: String::new() },
            File { path: "crates/side/Cargo.toml".into(), text: String::new() },
            File {
                path: "crates/up/Cargo.toml".into(),
                text: format!("[dependencies]\npando-{dep} = {{}}\n"),
            },
        ];
        Tree { root: Default::default(), files }
    }

    #[test]
    fn a_sideways_dependency_is_a_problem_and_a_downward_one_is_not() {
        let mut problems = Vec::new();
        check(&tree("base"), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        check(&tree("side"), &mut problems);
        assert_eq!(problems.len(), 1);
    }
}
