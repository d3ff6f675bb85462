//! One way to collections: `server` gets every collection from the door in `pando-access`, and calls no finder of the catalog.

use crate::tree::Tree;

/// Calls that find a collection, open it or begin to write to it.
const FINDERS: &[&str] = &[
    ".snapshot()",
    ".lookup(",
    ".lookup_uuid(",
    ".lookup_view(",
    ".open_source(",
    ".open_source_with(",
    ".write_lock(",
    ".try_write_lock(",
    ".write_lock_or_create(",
    ".begin_write(",
    ".begin_write_waiting(",
    ".begin_read(",
    ".read_latest(",
    ".named_at(",
    ".catalog()",
];

/// Hands the catalog on to the data path of a secondary, once.
const HANDED_ON: &str = ".catalog_of_data_path()";
const MANIFEST: &str = "crates/server/Cargo.toml";

pub fn check(tree: &Tree, problems: &mut Vec<String>) {
    if tree.get(MANIFEST).is_some_and(|m| m.text.contains("pando-catalog")) {
        problems.push(format!("{MANIFEST}: `server` knows no catalog, only `pando-access`"));
    }
    let mut handed_on = 0;
    for f in tree.rust().filter(|f| f.path.starts_with("crates/server/src/")) {
        handed_on += f.text.matches(HANDED_ON).count();
        problems.extend(finders_in(&f.text).map(|(line, word)| {
            format!("{}:{line}: `{word}` finds a collection; ask `pando_access::Access`", f.path)
        }));
    }
    if handed_on > 1 {
        problems.push(format!("crates/server: `{HANDED_ON}` is for the data path alone"));
    }
}

/// Calls with the numbers of their lines; what stands behind a dot on a line of its own counts, too.
fn finders_in(text: &str) -> impl Iterator<Item = (usize, &'static str)> {
    let code = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.filter_map(|(i, line)| Some((i + 1, *FINDERS.iter().find(|word| line.contains(**word))?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::File;

    fn problems_of(path: &str, text: &str) -> usize {
        let files = vec![File { path: path.into(), text: text.into() }];
        let mut problems = Vec::new();
        check(&Tree { root: Default::default(), files }, &mut problems);
        problems.len()
    }

    #[test]
    fn a_finder_is_a_problem_in_server_and_nowhere_else() {
        const PATH: &str = "crates/server/src/commands/find.rs";
        let text = "let c = self.catalog.lookup(ns);\nlet s = catalog\n    .snapshot()\n    .get(ns);\n";
        assert_eq!(problems_of(PATH, text), 2);
        assert_eq!(problems_of("crates/access/src/door.rs", text), 0);
        assert_eq!(problems_of(PATH, "let c = access.read(ctx, ns, at)?;\n// not .lookup(\n"), 0);
    }

    #[test]
    fn the_catalog_is_handed_on_once_and_is_no_dependency() {
        let once = "DataPath { catalog: m.catalog_of_data_path() }\n";
        assert_eq!(problems_of("crates/server/src/replication/mod.rs", once), 0);
        assert_eq!(problems_of("crates/server/src/replication/mod.rs", &once.repeat(2)), 1);
        assert_eq!(problems_of(MANIFEST, "[dependencies]\npando-catalog = {}\n"), 1);
        assert_eq!(problems_of(MANIFEST, "[dependencies]\npando-access = {}\n"), 0);
    }
}
