//! What the binary does with its command line: mongos's.

use crate::{exit, start};
use pando_env_tokio::process;
use pando_router::{ConfigDb, GIT_VERSION, VERSION};
use pando_shell::Config;
use pando_shell::log::Destination;
use pando_shell::options::{Refusal, parse, router};

/// Runs until the router ends; `argv` has a program's name in front, and `allocator` is the binary's. An exit code.
pub fn run(program: &str, argv: Vec<String>, allocator: &'static str) -> u8 {
    match serve(program, argv, allocator) {
        Ok(code) => code,
        Err(refusal) => {
            eprintln!("{refusal}\ntry '{program} --help' for more information");
            exit::BAD_OPTIONS
        }
    }
}

fn serve(program: &str, argv: Vec<String>, allocator: &'static str) -> Result<u8, Refusal> {
    let given = parse::command_line(argv.get(1..).unwrap_or_default())?;
    if given.flag("help") {
        print!("{}", router::help(program));
        return Ok(exit::CLEAN);
    }
    if given.flag("version") {
        println!("mongos version v{VERSION}\nBuild Info: {{\n    \"gitVersion\": \"{GIT_VERSION}\"\n}}");
        return Ok(exit::CLEAN);
    }
    let settings = match given.text("config") {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| format!("Error opening config file '{path}': {}", process::words(&e)))?;
            parse::merge(parse::config_file(&text)?, given)
        }
        None => given,
    };
    let configdb = ConfigDb::parse(&router::check(&settings)?).map_err(|e| e.message.to_string())?;
    let cwd = std::env::current_dir().map_err(|e| format!("the current folder cannot be read: {e}"))?;
    let config = Config::of_process(&settings, argv, &cwd)?;
    config.params()?;
    if config.fork && !process::is_background_child() {
        return Ok(fork());
    }
    if process::is_background_child() {
        process::detach();
    }
    let to_file = !matches!(config.log.destination, Destination::Stdout);
    let ended = start::serve(config, configdb, allocator, || {
        if process::is_background_child() {
            process::report_ready();
        }
    });
    if let Some(error) = ended.error.filter(|_| to_file) {
        eprintln!("{error}");
    }
    Ok(ended.code)
}

/// The foreground half of `--fork`.
fn fork() -> u8 {
    println!("about to fork child process, waiting until server is ready for connections.");
    match process::start_background() {
        Ok(Ok(pid)) => {
            println!("forked process: {pid}\nchild process started successfully, parent exiting");
            exit::CLEAN
        }
        Ok(Err(code)) => {
            eprintln!("ERROR: child process failed, exited with {code}");
            u8::try_from(code).unwrap_or(exit::FAILED)
        }
        Err(e) => {
            eprintln!("ERROR: the router could not be started in the background: {e}");
            exit::FAILED
        }
    }
}
