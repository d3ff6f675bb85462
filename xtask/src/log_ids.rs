//! Ids of log lines: whoever searches a log for one, or a test that counts one, finds one kind of line.
//!
//! Lines that a real server has carry its ids, and may stand in several places; ours are 91000xx, each in one place.

use crate::tree::Tree;
use std::collections::BTreeMap;

/// Where an id stands that is not a real server's.
fn ours(line: &str) -> Vec<String> {
    let line = line.replace('_', "");
    let words = line.split(|c: char| !c.is_ascii_digit());
    words.filter(|w| w.len() == 7 && w.starts_with("91000")).map(str::to_owned).collect()
}

pub fn check(tree: &Tree, problems: &mut Vec<String>) {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let shipped = |path: &str| path.starts_with("crates/") && path.contains("/src/");
    for f in tree.rust().filter(|f| shipped(&f.path) && !f.path.starts_with("crates/sim/")) {
        let code = f.text.split("#[cfg(test)]").next().unwrap_or_default();
        for (i, line) in code.lines().enumerate() {
            for id in ours(line) {
                let here = format!("{}:{}", f.path, i + 1);
                if let Some(there) = seen.get(&id) {
                    problems.push(format!("{here}: the log id {id} is also that of {there}"));
                }
                seen.entry(id).or_insert(here);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_our_own_are_looked_at() {
        let found = ours("log.info(c, 9100027, \"x\"); log.info(c, 9_100_028, \"y\"); 21612, 91000271");
        assert_eq!(found, ["9100027", "9100028"]);
    }
}
