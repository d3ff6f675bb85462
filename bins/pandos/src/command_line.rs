//! What the binary does with its command line: mongos's.

use crate::start;
use pando_process::command_line::{Binary, current_folder};
use pando_router::{ConfigDb, GIT_VERSION, VERSION};
use pando_shell::Config;
use pando_shell::options::{Refusal, Settings, router};

/// Runs until the router ends; `argv` has a program's name in front, and `allocator` is the binary's. An exit code.
pub fn run(program: &str, argv: Vec<String>, allocator: &'static str) -> u8 {
    let version =
        || format!("mongos version v{VERSION}\nBuild Info: {{\n    \"gitVersion\": \"{GIT_VERSION}\"\n}}\n");
    let binary = Binary { program, kind: "router", help: router::help, version };
    binary.run(argv, |binary, settings, argv| serve(binary, settings, argv, allocator))
}

fn serve(
    binary: &Binary<'_>,
    settings: Settings,
    argv: Vec<String>,
    allocator: &'static str,
) -> Result<u8, Refusal> {
    let configdb = ConfigDb::parse(&router::check(&settings)?).map_err(|e| e.message.to_string())?;
    let config = Config::of_process(&settings, argv, &current_folder()?)?;
    binary.serve(config, |config, ready| start::serve(config, configdb, allocator, ready))
}
