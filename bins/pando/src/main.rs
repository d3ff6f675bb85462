//! `pando`: the command line tool. One file per subcommand.

mod args;
mod backup;
mod client;
mod dump;
mod form;
mod load;
mod progress;
mod restore;
mod server;
mod set;
mod up;
mod version;

use std::process::ExitCode;

/// One subcommand.
struct Command {
    name: &'static str,
    help: &'static str,
    run: fn(&[String]) -> u8,
}

const COMMANDS: &[Command] = &[
    up::COMMAND,
    server::COMMAND,
    backup::COMMAND,
    restore::COMMAND,
    dump::COMMAND,
    load::COMMAND,
    version::COMMAND,
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = args.first() else {
        print!("{}", usage());
        return ExitCode::from(pandod::exit::BAD_OPTIONS);
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    match COMMANDS.iter().find(|c| c.name == name || name.strip_prefix("--") == Some(c.name)) {
        Some(command) => ExitCode::from((command.run)(&args[1..])),
        None => {
            eprintln!("pando: there is no command '{name}'\n\n{}", usage());
            ExitCode::from(pandod::exit::BAD_OPTIONS)
        }
    }
}

/// The exit code of a command that did something; tells why it could not.
fn ended(done: Result<(), String>) -> u8 {
    match done {
        Ok(()) => pandod::exit::CLEAN,
        Err(e) => {
            eprintln!("{e}");
            pandod::exit::FAILED
        }
    }
}

fn usage() -> String {
    let mut out = String::from("Usage: pando <command> [options]\n\n");
    for c in COMMANDS {
        out.push_str(&format!("  {:<10}{}\n", c.name, c.help));
    }
    out.push_str("\n'pando <command> --help' tells more.\n");
    out
}
