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
];

/// Files that do so still. The list may only get shorter.
const EXCEPTIONS: &[&str] = &[
    "crates/server/src/aggregation/foreign_collections.rs",
    "crates/server/src/aggregation/mod.rs",
    "crates/server/src/aggregation/writing.rs",
    "crates/server/src/change_stream/event.rs",
    "crates/server/src/commands/apply_ops.rs",
    "crates/server/src/commands/capped_tests.rs",
    "crates/server/src/commands/compact.rs",
    "crates/server/src/commands/create.rs",
    "crates/server/src/commands/create_indexes.rs",
    "crates/server/src/commands/db_hash.rs",
    "crates/server/src/commands/db_stats.rs",
    "crates/server/src/commands/distinct.rs",
    "crates/server/src/commands/explain.rs",
    "crates/server/src/commands/find.rs",
    "crates/server/src/commands/god_insert.rs",
    "crates/server/src/commands/index_build_votes.rs",
    "crates/server/src/commands/list_collections.rs",
    "crates/server/src/commands/list_databases.rs",
    "crates/server/src/commands/map_reduce.rs",
    "crates/server/src/commands/split_vector.rs",
    "crates/server/src/commands/validate_db_metadata.rs",
    "crates/server/src/cursors/query.rs",
    "crates/server/src/explain/mod.rs",
    "crates/server/src/namespaces.rs",
    "crates/server/src/replication/rollback_files.rs",
    "crates/server/src/statistics/plan_use.rs",
    "crates/server/src/statistics/mod.rs",
    "crates/server/src/timeseries/by_source.rs",
    "crates/server/src/timeseries/mod.rs",
    "crates/server/src/transaction/checkout.rs",
    "crates/server/src/transaction/open.rs",
    "crates/server/src/transaction/units.rs",
    "crates/server/src/upkeep/check_all.rs",
    "crates/server/src/upkeep/index_builds.rs",
    "crates/server/src/write/find_one.rs",
];

pub fn check(tree: &Tree, problems: &mut Vec<String>) {
    check_but(tree, EXCEPTIONS, problems);
}

fn check_but(tree: &Tree, exceptions: &[&str], problems: &mut Vec<String>) {
    for f in tree.rust().filter(|f| f.path.starts_with("crates/server/src/")) {
        let found: Vec<String> = finders_in(&f.text)
            .map(|(line, word)| {
                format!("{}:{line}: `{word}` finds a collection; ask `pando_access::Access`", f.path)
            })
            .collect();
        match exceptions.contains(&f.path.as_str()) {
            true if found.is_empty() => {
                problems.push(format!("{}: is no exception any more (xtask/src/finders.rs)", f.path));
            }
            true => {}
            false => problems.extend(found),
        }
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

    const PATH: &str = "crates/server/src/commands/find.rs";

    fn problems_of(path: &str, text: &str, exceptions: &[&str]) -> usize {
        let files = vec![File { path: path.into(), text: text.into() }];
        let mut problems = Vec::new();
        check_but(&Tree { root: Default::default(), files }, exceptions, &mut problems);
        problems.len()
    }

    #[test]
    fn a_finder_is_a_problem_in_server_and_nowhere_else() {
        let text = "let c = self.catalog.lookup(ns);\nlet s = catalog\n    .snapshot()\n    .get(ns);\n";
        assert_eq!(problems_of(PATH, text, &[]), 2);
        assert_eq!(problems_of("crates/access/src/door.rs", text, &[]), 0);
        assert_eq!(problems_of(PATH, "let c = access.read(ctx, ns, at)?;\n// not .lookup(\n", &[]), 0);
    }

    #[test]
    fn an_exception_without_a_finder_is_a_problem() {
        assert_eq!(problems_of(PATH, "self.catalog.lookup(ns)", &[PATH]), 0);
        assert_eq!(problems_of(PATH, "access.read(ctx, ns, at)", &[PATH]), 1);
    }
}
