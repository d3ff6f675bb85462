//! COMPAT.md's table of commands is the registry's. `BLESS=1 cargo test -p pando-server --test it compat::` rewrites it.

use pando_base::ErrorCode;
use pando_command::{CommandRow, Roles};
use pando_testkit::compat::check;
use std::fmt::Write;

const BEGIN: &str = "<!-- commands: from the registry -->\n";
const END: &str = "<!-- end of commands -->\n";

fn refusal(c: &CommandRow) -> &'static str {
    match c.refusal(Roles::MEMBER).code {
        ErrorCode::IllegalOperation => "20: config servers only",
        ErrorCode::NoShardingEnabled => "193: shards only",
        _ => "not built: 115",
    }
}

fn table() -> String {
    let mut out = String::from("| command | answer | Stable API | about |\n|---|---|---|---|\n");
    for c in pando_server::commands::registry().commands() {
        let answer = match c.handler {
            Some(_) => "built",
            None => refusal(c),
        };
        let mut names = format!("`{}`", c.name);
        for alias in c.aliases {
            let _ = write!(names, " `{alias}`");
        }
        let api = if c.api_v1 { "v1" } else { "" };
        let _ = writeln!(out, "| {names} | {answer} | {api} | {} |", c.help.replace('|', "or"));
    }
    out
}

#[test]
fn compat_lists_the_registry() {
    check(env!("CARGO_MANIFEST_DIR"), BEGIN, END, &table(), "the registry");
}
