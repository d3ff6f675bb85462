//! The parts of a server do not know it: only who assembles it, the commands and the pipeline's view of it name `Server`. So another
//! role can take the parts that it needs.

use crate::tree::Tree;

const ROOT: &str = "crates/server/src/";
/// The whole, and those who hold it.
const HOLDERS: &[&str] = &["lib.rs", "server.rs", "node.rs", "commands/", "lifecycle/"];

pub fn check(tree: &Tree, problems: &mut Vec<String>) {
    for f in tree.rust() {
        let Some(path) = f.path.strip_prefix(ROOT) else { continue };
        if HOLDERS.iter().any(|holder| path.starts_with(holder)) {
            continue;
        }
        let code = f.text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
        problems.extend(
            code.filter(|(_, line)| names_server(line))
                .map(|(i, _)| format!("{}:{}: a part takes other parts, not `Server`", f.path, i + 1)),
        );
    }
}

/// As a name of its own, not as a piece of another.
fn names_server(line: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "Server") && !line.contains('"')
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
    fn only_commands_and_the_assembly_hold_the_server() {
        let text = "use crate::Server;\n// Server\nfn f(s: &Server, e: ServerEffects) {}\n";
        assert_eq!(problems_of("crates/server/src/read/find.rs", text), 2);
        assert_eq!(problems_of("crates/server/src/commands/find.rs", text), 0);
        assert_eq!(problems_of("crates/sim/src/node.rs", text), 0);
    }
}
