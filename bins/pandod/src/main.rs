//! `pandod`: the server, with mongod's command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    let argv: Vec<String> = std::env::args().collect();
    let program = argv.first().cloned().unwrap_or_else(|| "pandod".to_owned());
    ExitCode::from(pandod::command_line::run(&program, argv))
}
