//! docs/systems.md: every row present, every proof real.

use crate::tree::Tree;

const ROWS: usize = 305;

pub fn check(tree: &Tree, problems: &mut Vec<String>) {
    let Some(doc) = tree.get("docs/systems.md") else {
        problems.push("docs/systems.md is missing".into());
        return;
    };
    let mut next = 1;
    for line in doc.text.lines().filter(|l| l.starts_with("| SYS-")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let id = cells[1];
        if id != format!("SYS-{next:03}") {
            problems.push(format!("docs/systems.md: expected SYS-{next:03}, found {id}"));
            return;
        }
        next += 1;
        let (state, proof) = (cells.get(4).copied().unwrap_or(""), cells.get(5).copied().unwrap_or(""));
        if !["done", "partial", "missing"].contains(&state) {
            problems.push(format!("docs/systems.md: {id} has state '{state}'"));
        }
        let named: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
        if state == "done" && named.is_empty() {
            problems.push(format!("docs/systems.md: {id} is done without a named test"));
        }
        for name in named {
            if !exists(tree, name) {
                problems.push(format!("docs/systems.md: {id} names `{name}`, which does not exist"));
            }
        }
    }
    if next != ROWS + 1 {
        problems.push(format!("docs/systems.md: {} rows, want {ROWS}", next - 1));
    }
}

/// A path in the tree, or `module::test_function` found as `fn test_function` in a file whose path holds `module`.
fn exists(tree: &Tree, name: &str) -> bool {
    if name.contains('/') {
        return tree.root.join(name).exists();
    }
    let function = format!("fn {}(", name.rsplit("::").next().unwrap_or(name));
    tree.rust().any(|f| f.text.contains(&function))
}
