//! docs/systems.md: every row present, every proof real.

use crate::tree::Tree;

const ROWS: usize = 310;

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
            if let Some(why) = unproven(tree, name) {
                problems.push(format!("docs/systems.md: {id} names `{name}`, which {why}"));
            }
        }
    }
    if next != ROWS + 1 {
        problems.push(format!("docs/systems.md: {} rows, want {ROWS}", next - 1));
    }
}

/// What runs by itself: `.ci/run` at each landing, `.ci/nightly` each night.
const RUNNERS: &[&str] = &[".ci/run", ".ci/nightly"];

/// Whether somebody runs what `name` stands for: a test function that is not ignored (`module::function` or
/// `function`), a story of the protocol (all of them are played by one test), a Rust file with tests, or a script that
/// one of [`RUNNERS`] calls. Says what is missing otherwise.
fn unproven(tree: &Tree, name: &str) -> Option<&'static str> {
    if name.contains('/') {
        if !tree.root.join(name).exists() {
            return Some("does not exist");
        }
        let runs = match name.rsplit('.').next() {
            Some("txt") => name.starts_with("crates/topology/scripts/"),
            Some("rs") => tree.get(name).is_some_and(|f| f.text.contains("#[test]")),
            _ => RUNNERS.iter().any(|runner| {
                std::fs::read_to_string(tree.root.join(runner)).is_ok_and(|text| text.contains(name))
            }),
        };
        return (!runs).then_some("is run neither by a test nor by .ci/run or .ci/nightly");
    }
    let function = format!("fn {}(", name.rsplit("::").next().unwrap_or(name));
    let mut problem = "does not exist";
    for file in tree.rust().filter(|f| f.text.contains(&function)) {
        match attributes_of(&file.text, &function) {
            (true, false) => return None,
            (true, true) => problem = "is ignored",
            (false, _) => problem = "is not a #[test]",
        }
    }
    Some(problem)
}

/// Whether `function` is a test, and whether it is ignored: by the attributes above it.
fn attributes_of(text: &str, function: &str) -> (bool, bool) {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let (mut test, mut ignored) = (false, false);
    for (at, _) in lines.iter().enumerate().filter(|(_, l)| l.contains(function)) {
        let above = lines[..at].iter().rev().take_while(|l| l.starts_with("#[") || l.starts_with("//"));
        for line in above {
            test |= line.starts_with("#[test]");
            ignored |= line.starts_with("#[ignore");
        }
    }
    (test, ignored)
}

#[cfg(test)]
mod tests {
    use super::attributes_of;

    #[test]
    fn a_proof_is_a_test_that_runs() {
        let text = "/// Told.\n#[test]\nfn runs() {}\n\n#[test]\n#[ignore = \"minutes\"]\nfn waits() {}\n\npub fn helps() {}\n";
        assert_eq!(attributes_of(text, "fn runs("), (true, false));
        assert_eq!(attributes_of(text, "fn waits("), (true, true));
        assert_eq!(attributes_of(text, "fn helps("), (false, false));
    }
}
