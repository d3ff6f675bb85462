//! COMPAT.md's generated tables.

use std::path::Path;

/// Checks that COMPAT.md has this text between the marks of that name; with `BLESS` set, puts it there.
///
/// `crate_dir` is the testing crate's, `source` what the table comes from.
pub fn check(crate_dir: &str, begin: &str, end: &str, table: &str, source: &str) {
    let path = Path::new(crate_dir).join("../../COMPAT.md");
    let text = std::fs::read_to_string(&path).expect("COMPAT.md is in the root");
    let (before, rest) = text.split_once(begin).expect("the table's begin mark");
    let (listed, after) = rest.split_once(end).expect("the table's end mark");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{before}{begin}{table}{end}{after}")).expect("COMPAT.md is writable");
        return;
    }
    assert!(listed == table, "COMPAT.md is behind {source}: run with BLESS=1");
}
