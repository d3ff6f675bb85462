//! What the binary does with its command line: mongod's.

use crate::{exit, start, version};
use pando_env_tokio::{lock, process};
use pando_process::command_line::{Binary, Ended, current_folder};
use pando_shell::Config;
use pando_shell::options::{Refusal, Settings, parse};
use std::time::Duration;

/// Runs until the server ends; `argv` has a program's name in front. One of [`exit`].
pub fn run(program: &str, argv: Vec<String>) -> u8 {
    let version = || version::text("db version");
    Binary { program, kind: "server", help: parse::help, version }.run(argv, serve)
}

fn serve(binary: &Binary<'_>, settings: Settings, argv: Vec<String>) -> Result<u8, Refusal> {
    let config = Config::from_settings(&settings, argv, &current_folder()?)?;
    if settings.flag("shutdown") {
        return Ok(stop_running(&config));
    }
    binary.serve(config, |config, ready| {
        let ended = start::serve(config, |_| ready());
        Ended { code: ended.code, error: ended.error }
    })
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
