//! Functions stay readable: none has more lines than the bound.
//!
//! A function ends at the first closing brace that stands as far to the right as its `fn`, which is how rustfmt writes it. Its lines
//! are those of its signature and its body. Tests are not looked at.

use crate::tree::{File, Tree};

const LINES_MAX: usize = 70;

pub fn check(tree: &Tree, problems: &mut Vec<String>) {
    for f in tree.rust().filter(|f| !is_test(&f.path)) {
        for (name, lines) in functions(f).into_iter().filter(|(_, lines)| *lines > LINES_MAX) {
            problems.push(format!(
                "{}: fn {name} has {lines} lines, bound {LINES_MAX}: split it by meaning",
                f.path
            ));
        }
    }
}

fn is_test(path: &str) -> bool {
    path.starts_with("testkit/")
        || path.starts_with("fuzz/")
        || path.split('/').any(|p| matches!(p, "tests" | "testing" | "benches" | "examples"))
        || path.ends_with("tests.rs")
}

/// Name and lines of each function that has a body of more than one line.
fn functions(f: &File) -> Vec<(String, usize)> {
    let text = f.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(name) = name_of(line.trim_start()) else { continue };
        let opens = lines[i..].iter().map(|l| l.trim_end()).find(|l| l.ends_with(['{', ';', '}']));
        if !opens.is_some_and(|l| l.ends_with('{')) {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = lines[i..].iter().position(|l| l.strip_prefix(indent) == Some("}"));
        found.extend(end.map(|end| (name.to_owned(), end + 1)));
    }
    found
}

/// Of a line that begins a function.
fn name_of(line: &str) -> Option<&str> {
    let mut rest = line;
    if let Some(after) = rest.strip_prefix("pub(") {
        rest = after.split_once(") ")?.1;
    }
    for word in ["pub ", "const ", "async ", "unsafe "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    name.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).next().filter(|n| !n.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_from_their_signature_to_their_brace() {
        let text = "pub(crate) async fn long(\n    a: u8,\n) -> u8 {\n    if a > 1 {\n        2\n    } else { 3 }\n}\n\n\
                    trait T {\n    fn declared(&self);\n    const fn short() -> u8 {\n        1\n    }\n}\n\
                    fn one() {}\n// fn none() {\n\n#[cfg(test)]\nmod tests {\n    fn helper() {\n    }\n}\n";
        let f = File { path: "a.rs".to_owned(), text: text.to_owned() };
        assert_eq!(functions(&f), [("long".to_owned(), 7), ("short".to_owned(), 3)]);
        assert!(
            is_test("crates/a/src/tests/b.rs")
                && is_test("crates/a/src/b_tests.rs")
                && !is_test("crates/a/src/b.rs")
        );
    }

    #[test]
    fn a_function_over_the_bound_is_a_problem() {
        let text = format!("fn long() {{\n{}}}\n", "    a();\n".repeat(LINES_MAX));
        let f = File { path: "crates/a/src/b.rs".to_owned(), text };
        let mut problems = Vec::new();
        check(&Tree { root: Default::default(), files: vec![f] }, &mut problems);
        let about_it: Vec<_> =
            problems.iter().filter(|p| p.contains("fn long has 72 lines, bound 70")).collect();
        assert_eq!(about_it.len(), 1, "{problems:?}");
        // The tree has none of the rows of the list.
        assert_eq!(problems.len(), 1);
    }
}
