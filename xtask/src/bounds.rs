//! Bounds live in one file: no crate names a limit, timeout or buffer size of its own.

use crate::tree::Tree;

/// Endings of names that bound something.
const BOUNDS: &[&str] = &["_MAX", "_MIN", "_MS", "_SECS", "_BYTES", "_DOCS", "_LINES", "_LIMIT"];
/// Facts of a format, sizes of things, and what a test or simulation plays with: nothing that could be tuned.
const FACTS: &[(&str, &str)] = &[
    ("crates/bson/src/decimal128/", "ranges of the format"),
    ("crates/bson/src/extjson/forms.rs", "a day"),
    ("crates/bson/src/text.rs", "MongoDB's abbreviation of long strings"),
    ("crates/oplog/src/diff.rs", "size of an envelope"),
    ("crates/oplog/src/fetch.rs", "a guess at an entry's size"),
    ("crates/query/src/accumulator/", "size of an entry"),
    ("crates/query/src/regex/translate.rs", "range of the syntax"),
    ("crates/query/src/sort/sorter.rs", "size of a row's frame"),
    ("crates/query/src/stage/group", "size of an accumulator"),
    ("crates/query/src/update/tree.rs", "where one algorithm overtakes another"),
    ("crates/query/src/value_set.rs", "size of a key's frame"),
    ("crates/server/src/cursors/batch.rs", "size of an element's frame"),
    ("crates/server/src/commands/distinct.rs", "size of an element"),
    ("crates/storage/src/row.rs", "size of a header"),
    ("crates/storage/src/testing/", "a test's world"),
    ("crates/topology/src/sync_source_change.rs", "an hour"),
    ("crates/wire/src/compress.rs", "what the format can expand to"),
    ("crates/sim/", "a simulation's world"),
    ("crates/grammar/", "a fuzzer's world"),
];

/// The constant that a line declares, if its value is a number of its own.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
    let line = line.trim_start_matches("pub(super) ").strip_prefix("const ")?;
    let (name, rest) = line.split_once(':')?;
    let derived = rest.contains("limits::") || rest.contains("_MAX") || rest.contains("_BYTES");
    (!derived).then_some(name)
}

pub fn check(tree: &Tree, problems: &mut Vec<String>) {
    for f in tree.rust() {
        let product = (f.path.starts_with("crates/") || f.path.starts_with("bins/"))
            && f.path.contains("/src/")
            && f.path != "crates/base/src/limits.rs"
            && !f.path.starts_with("crates/base/src/limits/")
            && !f.path.contains("/tests")
            && !FACTS.iter().any(|(path, _)| f.path.starts_with(path));
        if !product {
            continue;
        }
        let code = f.text.split("#[cfg(test)]").next().unwrap_or_default();
        for (i, line) in code.lines().enumerate() {
            if let Some(name) = declared(line)
                && BOUNDS.iter().any(|end| name.ends_with(end))
            {
                problems.push(format!("{}:{}: the bound `{name}` belongs in base/limits.rs", f.path, i + 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::File;

    #[test]
    fn a_bound_of_its_own_is_a_problem_and_one_from_limits_is_not() {
        let problems_of = |line: &str| {
            let file = File { path: "crates/x/src/lib.rs".into(), text: line.into() };
            let mut problems = Vec::new();
            check(&Tree { root: Default::default(), files: vec![file] }, &mut problems);
            problems.len()
        };
        assert_eq!(problems_of("    const WAIT_MS: u64 = 5;\n"), 1);
        assert_eq!(problems_of("pub(crate) const ROWS_MAX: usize = 1 << 5;\n"), 1);
        assert_eq!(problems_of("const WAIT_MS: u64 = limits::OTHER_WAIT_MS;\n"), 0);
        assert_eq!(problems_of("const NAME: &str = \"x\";\n"), 0);
    }
}
