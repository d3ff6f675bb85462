//! `pando up`: a working database here and now. Data in `./pando-data`, a replica set of one member that
//! initiates itself, log lines in a file; the terminal shows how to connect.

use crate::Command;
use pando_shell::Config;
use pando_shell::log::Destination;
use pando_shell::options::parse;
use pandod::{exit, start};
use std::path::{Path, PathBuf};

pub(crate) const COMMAND: Command =
    Command { name: "up", help: "start a database in ./pando-data and show how to connect", run };

const HELP: &str = "\
Usage: pando up [--data DIR] [--port N] [--log] [pandod options]

Starts a single-node replica set that listens on localhost only. Ctrl-C stops it; the data stays.

  --data DIR   where the data lives (./pando-data)
  --port N     port to listen on (27017)
  --log        show the log here instead of writing it to DIR/pando.log
";

fn run(args: &[String]) -> u8 {
    if args.iter().any(|a| a == "--help" || a == "-h") {
        print!("{HELP}");
        return exit::CLEAN;
    }
    match configure(args) {
        Ok(config) => up(config),
        Err(refusal) => {
            eprintln!("{refusal}\n'pando up --help' tells more.");
            exit::BAD_OPTIONS
        }
    }
}

fn configure(args: &[String]) -> Result<Config, String> {
    let mut rest = Vec::new();
    let mut data = "pando-data".to_owned();
    let mut log_here = false;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--data" | "--dbpath" => {
                data = args.next().cloned().ok_or_else(|| format!("{arg} needs a folder"))?;
            }
            "--log" => log_here = true,
            _ => rest.push(arg.clone()),
        }
    }
    let settings = parse::command_line(&rest)?;
    let cwd = std::env::current_dir().map_err(|e| format!("the current folder cannot be read: {e}"))?;
    let given_log = settings.text("systemLog.path").is_some();
    let mut config = Config::from_settings(&settings, std::env::args().collect(), &cwd)?;
    config.dbpath = shown(&data);
    if !given_log && !log_here {
        config.log.destination =
            Destination::File { path: config.dbpath.join("pando.log"), append: true, reopen: false };
    }
    config.repl_set.get_or_insert_with(|| "rs0".to_owned());
    config.self_initiate = true;
    config.fork = false;
    Ok(config)
}

/// Kept relative when given so: shorter to read.
fn shown(path: &str) -> PathBuf {
    match Path::new(path) {
        p if p.is_absolute() || path.starts_with('.') => p.to_owned(),
        p => Path::new(".").join(p),
    }
}

fn up(config: Config) -> u8 {
    if let Err(e) = std::fs::create_dir_all(&config.dbpath) {
        eprintln!("{} cannot be created: {e}", config.dbpath.display());
        return exit::CANNOT_START;
    }
    let quiet = matches!(config.log.destination, Destination::Stdout);
    let log = match &config.log.destination {
        Destination::File { path, .. } => Some(path.clone()),
        _ => None,
    };
    let (data, set) = (config.dbpath.clone(), config.repl_set.clone().unwrap_or_default());
    let ended = start::serve(config, |running| {
        if quiet {
            return;
        }
        let uri = format!("mongodb://127.0.0.1:{}/?replicaSet={set}", running.port);
        println!("PandoDB {} is running.\n", pandod::version::OWN);
        println!("  connect   {uri}");
        println!("  data      {}", data.display());
        if let Some(log) = &log {
            println!("  log       {}", log.display());
        }
        println!("\nTry it:\n");
        println!("  mongosh \"{uri}\"");
        println!(
            "  python -c 'import pymongo; c = pymongo.MongoClient(\"{uri}\"); print(c.server_info()[\"version\"])'"
        );
        println!("\nCtrl-C stops the server; the data stays.");
    });
    match &ended.error {
        None => println!("Stopped cleanly."),
        Some(error) => eprintln!("PandoDB could not run: {error}"),
    }
    ended.code
}
