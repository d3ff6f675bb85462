//! All checks of the tree, in one list of problems.

use crate::tree::Tree;
use crate::{
    bounds, circles, finders, functions, layers, links, log_ids, log_words, parts, sizes, systems, tour,
};

/// Every problem found, as lines to print; empty means tidy.
pub fn run(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    bounds::check(tree, &mut problems);
    layers::check(tree, &mut problems);
    circles::check(tree, &mut problems);
    finders::check(tree, &mut problems);
    parts::check(tree, &mut problems);
    tour::check(tree, &mut problems);
    systems::check(tree, &mut problems);
    links::check(tree, &mut problems);
    log_ids::check(tree, &mut problems);
    log_words::check(tree, &mut problems);
    sizes::check(tree, &mut problems);
    functions::check(tree, &mut problems);
    fence(tree, &mut problems);
    problems
}

/// Identifiers that reach the outside world, allowed only where the world is.
const WORLD: &[&str] = &["Instant::now(", "SystemTime::now(", "thread::spawn(", "thread::sleep(", "tokio::"];
const WORLDLY: &[&str] = &[
    "crates/env-tokio/",
    "bins/",
    "xtask/",
    "crates/testserver/",
    "testkit/",
    "crates/grammar/",
    "crates/sim/src/main.rs",
    "fuzz/",
    "tests/drivers/",
];

fn fence(tree: &Tree, problems: &mut Vec<String>) {
    for f in tree.rust() {
        let test_code =
            f.path.contains("/tests/") || f.path.contains("/benches/") || f.path.contains("/examples/");
        if test_code || WORLDLY.iter().any(|w| f.path.starts_with(w)) {
            continue;
        }
        let code = f.text.split("#[cfg(test)]").next().unwrap_or_default();
        for (i, line) in code.lines().enumerate() {
            if let Some(word) =
                WORLD.iter().find(|w| line.contains(**w) && !line.trim_start().starts_with("//"))
            {
                problems.push(format!("{}:{}: `{word}` outside the environment crates", f.path, i + 1));
            }
        }
    }
}
