//! Files of a crate that import one another in a circle: none over [`CIRCLE_MAX`] files, so that each can be read without
//! the others.
//!
//! A file imports another when one of its paths (`crate::`, `super::`, `self::`, or a module below its own) ends there,
//! whether it stands in a `use` or in code. Names that a module re-exports count for the file that they come from: taking
//! everything from `lib.rs` hides nothing. A `*` brings all modules that are below the one named.
//! What is not seen: methods of a type that have bodies in several files, other names that come by `*`, and macros.

use crate::tree::{File, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Files that one circle may have.
const CIRCLE_MAX: usize = 10;

/// A module's place below the crate: empty for `lib.rs`.
type Path = Vec<String>;

pub fn check(tree: &Tree, problems: &mut Vec<String>) {
    let crates: BTreeSet<&str> =
        tree.rust().filter_map(|f| f.path.strip_prefix("crates/")?.split('/').next()).collect();
    for name in crates {
        for files in circles(tree, name).iter().filter(|files| files.len() > CIRCLE_MAX) {
            problems.push(format!(
                "crates/{name}: {} files import one another in a circle, bound {CIRCLE_MAX}: {}",
                files.len(),
                files.join(" ")
            ));
        }
    }
}

/// The circles of more than one file, each as its files.
fn circles(tree: &Tree, name: &str) -> Vec<Vec<String>> {
    let root = format!("crates/{name}/src/");
    let modules: BTreeMap<Path, String> = tree
        .rust()
        .filter_map(|f| Some((f.path.strip_prefix(&root)?, f)))
        .filter(|(path, _)| !is_test(path))
        .map(|(path, f)| (module_of(path), code_of(f)))
        .collect();
    let graph = Graph::of(&modules);
    let mut found: Vec<Vec<String>> =
        graph.circles().iter().map(|c| c.iter().map(file_of).collect()).collect();
    found.iter_mut().for_each(|c| c.sort());
    found
}

/// Tests, and what only they use, may import whatever they test.
fn is_test(path: &str) -> bool {
    path.split('/').any(|p| matches!(p.trim_end_matches(".rs"), "tests" | "testing" | "main"))
}

fn module_of(path: &str) -> Path {
    let mut parts: Path = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|p| p == "mod" || p == "lib") {
        parts.pop();
    }
    parts
}

fn file_of(module: &Path) -> String {
    if module.is_empty() { "lib".to_owned() } else { module.join("/") }
}

/// The text less comments, texts in quotes on one line and the tests at the end.
fn code_of(f: &File) -> String {
    let text = f.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let line = line.replace("\\\"", "").replace("'\"'", "");
        let unquoted: Vec<&str> = line.split('"').step_by(2).collect();
        out.push_str(&unquoted.join(" "));
        out.push('\n');
    }
    out
}

/// One name that a `use` brings: where it comes from, what it is called here, and whether others may take it from here.
struct Use {
    path: Path,
    name: String,
    public: bool,
}

/// The `use` items of a file, and the paths of the rest of its text.
fn read(code: &str) -> (Vec<Use>, Vec<Path>) {
    let (mut uses, mut rest) = (Vec::new(), String::new());
    let mut item: Option<(bool, String)> = None;
    for line in code.lines() {
        let trimmed = line.trim();
        let (mut public, mut begins) = (false, trimmed.strip_prefix("use "));
        if begins.is_none() && trimmed.starts_with("pub") {
            public = true;
            begins = trimmed.split_once(" use ").or(trimmed.split_once("pub use ")).map(|(_, t)| t);
        }
        match (&mut item, begins) {
            (None, Some(tree)) => item = Some((public, tree.to_owned())),
            (Some((_, tree)), _) => tree.push_str(trimmed),
            (None, None) => {
                rest.push_str(line);
                rest.push('\n');
            }
        }
        if let Some((public, tree)) = item.take_if(|(_, tree)| tree.ends_with(';')) {
            names_of(tree.trim_end_matches(';'), &[], public, &mut uses);
        }
    }
    (uses, paths_of(&rest))
}

/// Takes `a::{b, c::d as e}` apart.
fn names_of(tree: &str, prefix: &[String], public: bool, out: &mut Vec<Use>) {
    let tree = tree.trim();
    let segments =
        |s: &str| -> Path { s.split("::").map(|p| p.trim().to_owned()).filter(|p| !p.is_empty()).collect() };
    if let Some((before, inside)) = tree.split_once('{') {
        let prefix: Path = prefix.iter().cloned().chain(segments(before)).collect();
        let inside = inside.trim_end().strip_suffix('}').unwrap_or(inside);
        let (mut depth, mut start) = (0, 0);
        for (i, c) in inside.char_indices().chain([(inside.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    if !inside[start..i].trim().is_empty() {
                        names_of(&inside[start..i], &prefix, public, out);
                    }
                    start = i + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(p, a)| (p, Some(a.trim())));
    let path: Path = prefix.iter().cloned().chain(segments(path)).collect();
    let own = path.iter().rev().find(|p| *p != "self").cloned().unwrap_or_default();
    let path = if path.len() > 1 && path.last().is_some_and(|p| p == "self") {
        path[..path.len() - 1].to_vec()
    } else {
        path
    };
    out.push(Use { name: alias.map_or(own, str::to_owned), path, public });
}

/// Paths in code; those that begin in another crate or at a type lead nowhere.
fn paths_of(code: &str) -> Vec<Path> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    // Who may see an item is no import.
    code.replace("pub(in ", "pub(in:")
        .split(|c: char| !is_part(c))
        .filter(|word| word.contains("::"))
        .map(|word| word.split("::").filter(|p| !p.is_empty()).map(str::to_owned).collect())
        .collect()
}

/// Who imports whom.
struct Graph {
    edges: BTreeMap<Path, BTreeSet<Path>>,
}

impl Graph {
    fn of(modules: &BTreeMap<Path, String>) -> Graph {
        let read: BTreeMap<&Path, _> = modules.iter().map(|(m, code)| (m, read(code))).collect();
        let mut exports = BTreeMap::new();
        for (m, (uses, _)) in &read {
            for u in uses.iter().filter(|u| u.public) {
                if let Some(path) = absolute(modules, m, &u.path) {
                    exports.insert(((*m).clone(), u.name.clone()), path);
                }
            }
        }
        let mut edges: BTreeMap<Path, BTreeSet<Path>> = BTreeMap::new();
        for (m, (uses, paths)) in &read {
            let to = edges.entry((*m).clone()).or_default();
            // What lib.rs or a mod.rs passes on is an edge of who takes it.
            let taken = uses.iter().filter(|u| !(u.public && m.is_empty())).map(|u| &u.path);
            for path in taken.chain(paths).filter_map(|p| absolute(modules, m, p)) {
                if let Some(("*", parent)) = path.split_last().map(|(last, parent)| (last.as_str(), parent)) {
                    let below = modules.keys().filter(|c| c.len() == path.len() && c.starts_with(parent));
                    to.extend(below.filter(|c| *c != *m).cloned());
                }
                to.extend(resolve(modules, &exports, path, 0).filter(|t| t != *m && !t.is_empty()));
            }
        }
        Graph { edges }
    }

    /// Everything that `from` reaches.
    fn reach(&self, from: &Path) -> BTreeSet<&Path> {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&Path> = self.edges.get(from).into_iter().flatten().collect();
        while let Some(m) = next.pop() {
            if seen.insert(m) {
                next.extend(self.edges.get(m).into_iter().flatten());
            }
        }
        seen
    }

    /// Sets of more than one file each of which reaches all others.
    fn circles(&self) -> Vec<Vec<Path>> {
        let reach: BTreeMap<&Path, BTreeSet<&Path>> = self.edges.keys().map(|m| (m, self.reach(m))).collect();
        let mut done = BTreeSet::new();
        let mut out = Vec::new();
        for (m, reached) in &reach {
            if !reached.contains(m) || !done.insert(*m) {
                continue;
            }
            let others = reached.iter().filter(|o| **o != *m && reach.get(*o).is_some_and(|r| r.contains(m)));
            let circle: Vec<&Path> = others.copied().chain([*m]).collect();
            done.extend(&circle);
            if circle.len() > 1 {
                out.push(circle.into_iter().cloned().collect());
            }
        }
        out
    }
}

/// A path from the crate's root; `None` for other crates' names.
fn absolute(modules: &BTreeMap<Path, String>, module: &Path, path: &[String]) -> Option<Path> {
    let first = path.first()?;
    let join = |base: &[String], rest: &[String]| base.iter().chain(rest).cloned().collect::<Path>();
    match first.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some(join(module, &path[1..])),
        "super" => {
            let ups = path.iter().take_while(|p| *p == "super").count();
            Some(join(&module[..module.len().saturating_sub(ups)], &path[ups..]))
        }
        _ if modules.contains_key(&join(module, &path[..1])) => Some(join(module, path)),
        _ => None,
    }
}

/// How often a name may be passed on.
const PASSED_ON_MAX: usize = 8;

/// The file that a path ends in, through what modules re-export.
fn resolve(
    modules: &BTreeMap<Path, String>,
    exports: &BTreeMap<(Path, String), Path>,
    path: Path,
    passed_on: usize,
) -> Option<Path> {
    let depth = (0..=path.len()).rev().find(|n| modules.contains_key(&path[..*n]))?;
    let (module, rest) = path.split_at(depth);
    if let Some(name) = rest.first()
        && passed_on < PASSED_ON_MAX
        && let Some(from) = exports.get(&(module.to_vec(), name.clone()))
    {
        let path = from.iter().chain(&rest[1..]).cloned().collect();
        return resolve(modules, exports, path, passed_on + 1);
    }
    Some(module.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| File {
            path: format!("crates/x/src/{path}"),
            text: (*text).to_owned(),
        };
        Tree { root: Default::default(), files: files.iter().map(file).collect() }
    }

    #[test]
    fn names_taken_through_lib_count_for_the_file_that_defines_them() {
        let lib = "mod a;\nmod b;\npub use a::A;\npub use b::{B, other as C};\n";
        let found =
            circles(&tree(&[("lib.rs", lib), ("a.rs", "use crate::C;\n"), ("b.rs", "use crate::A;\n")]), "x");
        assert_eq!(found, [["a", "b"]]);
    }

    #[test]
    fn a_path_in_code_is_an_import_and_one_in_a_comment_or_a_test_is_not() {
        let a = "fn f() {\n    crate::d::b::g();\n}\n";
        let b = "// crate::a::f\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n";
        let calm = tree(&[("lib.rs", ""), ("a.rs", a), ("d/mod.rs", ""), ("d/b.rs", b)]);
        assert!(circles(&calm, "x").is_empty());
        let b = "use super::super::{\n    a::{self, F},\n};\n";
        let round = tree(&[("lib.rs", ""), ("a.rs", a), ("d/mod.rs", ""), ("d/b.rs", b)]);
        assert_eq!(circles(&round, "x"), [["a", "d/b"]]);
    }

    #[test]
    fn modules_below_count_in_code_and_by_a_star() {
        let named = "mod b;\nfn f() {\n    b::g();\n}\n";
        let b = "use super::f;\n";
        assert_eq!(
            circles(&tree(&[("lib.rs", ""), ("a/mod.rs", named), ("a/b.rs", b)]), "x"),
            [["a", "a/b"]]
        );
        let table = "use super::ops::*;\nfn f() {\n    add::g();\n}\n";
        let add = "use crate::table::f;\n";
        let star = tree(&[("lib.rs", ""), ("table.rs", table), ("ops/mod.rs", ""), ("ops/add.rs", add)]);
        assert_eq!(circles(&star, "x"), [["ops/add", "table"]]);
    }

    #[test]
    fn a_circle_over_the_bound_is_a_problem() {
        let names: Vec<String> = (0..=CIRCLE_MAX).map(|i| format!("m{i}.rs")).collect();
        let texts: Vec<String> =
            (0..=CIRCLE_MAX).map(|i| format!("use crate::m{};\n", (i + 1) % (CIRCLE_MAX + 1))).collect();
        let files: Vec<(&str, &str)> =
            names.iter().zip(&texts).map(|(n, t)| (n.as_str(), t.as_str())).collect();
        let mut problems = Vec::new();
        check(&tree(&files), &mut problems);
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems.clear();
        check(&tree(&files[..CIRCLE_MAX]), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
    }
}
