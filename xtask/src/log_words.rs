//! What clients have sent goes into the log by `Attrs::data`, which hides it where that is wanted. The types see to it but for texts: an
//! error's message is one, and may repeat what a client sent.

use crate::tree::Tree;

/// `.str("error", &e.message)`, which is `.data("error", &e)`.
fn spells_an_error(line: &str) -> bool {
    line.split(".str(\"error\", ").skip(1).any(|rest| {
        let value = rest.split(')').next().unwrap_or_default();
        value.contains("message") || rest.starts_with("&e.to_string(") || rest.starts_with("&why.to_string(")
    })
}

pub fn check(tree: &Tree, problems: &mut Vec<String>) {
    for f in tree.rust().filter(|f| f.path.contains("/src/") && !f.path.starts_with("xtask/")) {
        let code = f.text.split("#[cfg(test)]").next().unwrap_or_default();
        for (i, _) in code.lines().enumerate().filter(|(_, line)| spells_an_error(line)) {
            problems.push(format!(
                "{}:{}: an error goes into the log by `data`, not by `str`",
                f.path,
                i + 1
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_errors_are_found() {
        for line in ["a.str(\"error\", &e.message);", "a.i64(\"n\", 1).str(\"error\", &e.to_string());"] {
            assert!(spells_an_error(line), "{line}");
        }
        for line in ["a.data(\"error\", &e);", "b.str(\"errmsg\", &e.message);", "a.str(\"error\", why);"] {
            assert!(!spells_an_error(line), "{line}");
        }
    }
}
