//! What the binary does with its command line: mongod's.

use crate::{exit, start, version};
use pando_env_tokio::{arguments, lock, process};
use pando_shell::Config;
use pando_shell::log::Destination;
use pando_shell::options::{Refusal, parse, secrets_of};
use std::time::Duration;

/// Runs until the server ends; `argv` has a program's name in front. One of [`exit`].
pub fn run(program: &str, argv: Vec<String>) -> u8 {
    match serve(program, argv) {
        Ok(code) => code,
        Err(refusal) => {
            eprintln!("{refusal}\ntry '{program} --help' for more information");
            exit::BAD_OPTIONS
        }
    }
}

fn serve(program: &str, argv: Vec<String>) -> Result<u8, Refusal> {
    // Where that cannot be done they stay to be seen, as with any other program.
    let _ = arguments::hide(&secrets_of(&argv));
    let given = parse::command_line(argv.get(1..).unwrap_or_default())?;
    if given.flag("help") {
        print!("{}", parse::help(program));
        return Ok(exit::CLEAN);
    }
    if given.flag("version") {
        print!("{}", version::text("db version"));
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
    let cwd = std::env::current_dir().map_err(|e| format!("the current folder cannot be read: {e}"))?;
    let shutdown = settings.flag("shutdown");
    let config = Config::from_settings(&settings, argv, &cwd)?;
    if shutdown {
        return Ok(stop_running(&config));
    }
    config.params()?;
    if config.fork && !process::is_background_child() {
        return Ok(fork());
    }
    if process::is_background_child() {
        process::detach();
    }
    let to_file = !matches!(config.log.destination, Destination::Stdout);
    let ended = start::serve(config, |_| {
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
            eprintln!("To see additional information in this output, start without the \"--fork\" option.");
            u8::try_from(code).unwrap_or(exit::FAILED)
        }
        Err(e) => {
            eprintln!("ERROR: the server could not be started in the background: {e}");
            exit::FAILED
        }
    }
}

/// `--shutdown`: ends the server that runs on the data folder and waits for it.
fn stop_running(config: &Config) -> u8 {
    let Some(pid) = lock::running_pid(&config.dbpath) else {
        eprintln!("There doesn't seem to be a server running with dbpath: {}", config.dbpath.display());
        return exit::FAILED;
    };
    println!("Killing process with pid: {pid}");
    if !process::terminate(pid) {
        eprintln!("failed to kill process {pid}");
        return exit::FAILED;
    }
    while process::is_alive(pid) && lock::running_pid(&config.dbpath) == Some(pid) {
        process::pause(Duration::from_millis(50));
    }
    exit::CLEAN
}
