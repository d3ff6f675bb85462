//! `pando`: the command line tool. One file per subcommand.

mod admin;
mod args;
mod backup;
mod client;
mod cluster;
mod decrypt;
mod dump;
mod encryption;
mod form;
mod load;
mod login;
mod progress;
mod restore;
mod router;
mod server;
mod set;
mod tls;
mod up;
mod version;

use pandod::exit;
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
    router::COMMAND,
    backup::COMMAND,
    restore::COMMAND,
    dump::COMMAND,
    load::COMMAND,
    decrypt::COMMAND,
    version::COMMAND,
];

fn main() -> ExitCode {
    // Backups, dumps, keys and data are their owner's alone.
    pando_env_tokio::process::set_umask(0o077);
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = args.first() else {
        print!("{}", usage());
        return ExitCode::from(exit::BAD_OPTIONS);
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    match COMMANDS.iter().find(|c| c.name == name || name.strip_prefix("--") == Some(c.name)) {
        Some(command) => ExitCode::from((command.run)(&args[1..])),
        None => {
            eprintln!("pando: there is no command '{name}'\n\n{}", usage());
            ExitCode::from(exit::BAD_OPTIONS)
        }
    }
}

/// A subcommand from what was typed to its exit code: help, what is `wanted`, and then `act`.
fn carry_out<T, F: Future<Output = Result<(), String>>>(
    name: &str,
    help: &str,
    args: &[String],
    wanted: impl FnOnce() -> Result<T, String>,
    act: impl FnOnce(T) -> F,
) -> u8 {
    // `-h` names the host in some of them.
    if args.iter().any(|a| a == "--help") || args == ["-h"] {
        print!("{help}");
        return exit::CLEAN;
    }
    let wanted = match wanted() {
        Ok(wanted) => wanted,
        Err(e) => {
            eprintln!("{e}\n'pando {name} --help' tells more.");
            return exit::BAD_OPTIONS;
        }
    };
    let runtime = pando_env_tokio::runtime().map_err(|e| e.to_string());
    match runtime.and_then(|rt| rt.block_on(act(wanted))) {
        Ok(()) => exit::CLEAN,
        Err(e) => {
            eprintln!("{e}");
            exit::FAILED
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
