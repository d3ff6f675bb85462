//! What comes before a process serves anybody: its settings are read, and it goes into the background where that was asked for.

use crate::exit;
use pando_env_tokio::{arguments, process};
use pando_shell::Config;
use pando_shell::log::Destination;
use pando_shell::options::{Refusal, Settings, parse, secrets_of};
use std::path::PathBuf;

/// How a binary names itself where somebody reads it.
pub struct Binary<'a> {
    /// What it was called as.
    pub program: &'a str,
    /// What it is.
    pub kind: &'static str,
    pub help: fn(&str) -> String,
    pub version: fn() -> String,
}

/// How a process ended, for whoever started it.
pub struct Ended {
    /// One of [`exit`].
    pub code: u8,
    /// What went wrong, for the terminal.
    pub error: Option<String>,
}

impl Binary<'_> {
    /// Runs `serve` with the settings; `argv` has a program's name in front. An exit code.
    pub fn run(
        &self,
        argv: Vec<String>,
        serve: impl FnOnce(&Self, Settings, Vec<String>) -> Result<u8, Refusal>,
    ) -> u8 {
        let done = self.settings(&argv).and_then(|given| match given {
            Some(settings) => serve(self, settings, argv),
            None => Ok(exit::CLEAN),
        });
        done.unwrap_or_else(|refusal| {
            eprintln!("{refusal}\ntry '{} --help' for more information", self.program);
            exit::BAD_OPTIONS
        })
    }

    /// Those of the command line, which win over those of its file; `None` where only a question was asked.
    fn settings(&self, argv: &[String]) -> Result<Option<Settings>, Refusal> {
        // Where that cannot be done they stay to be seen, as with any other program.
        let _ = arguments::hide(&secrets_of(argv));
        let given = parse::command_line(argv.get(1..).unwrap_or_default())?;
        if given.flag("help") {
            print!("{}", (self.help)(self.program));
            return Ok(None);
        }
        if given.flag("version") {
            print!("{}", (self.version)());
            return Ok(None);
        }
        let Some(path) = given.text("config") else { return Ok(Some(given)) };
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("Error opening config file '{path}': {}", process::words(&e)))?;
        Ok(Some(parse::merge(parse::config_file(&text)?, given)))
    }

    /// Serves, in the background if the configuration says so. `serve` calls its argument when clients can connect.
    pub fn serve(
        &self,
        config: Config,
        serve: impl FnOnce(Config, &dyn Fn()) -> Ended,
    ) -> Result<u8, Refusal> {
        config.params()?;
        if config.fork && !process::is_background_child() {
            return Ok(self.fork());
        }
        if process::is_background_child() {
            process::detach();
        }
        let to_file = !matches!(config.log.destination, Destination::Stdout);
        let ended = serve(config, &|| {
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
    fn fork(&self) -> u8 {
        println!("about to fork child process, waiting until server is ready for connections.");
        match process::start_background() {
            Ok(Ok(pid)) => {
                println!("forked process: {pid}\nchild process started successfully, parent exiting");
                exit::CLEAN
            }
            Ok(Err(code)) => {
                eprintln!("ERROR: child process failed, exited with {code}");
                eprintln!(
                    "To see additional information in this output, start without the \"--fork\" option."
                );
                u8::try_from(code).unwrap_or(exit::FAILED)
            }
            Err(e) => {
                eprintln!("ERROR: the {} could not be started in the background: {e}", self.kind);
                exit::FAILED
            }
        }
    }
}

/// Where relative paths of options begin.
pub fn current_folder() -> Result<PathBuf, Refusal> {
    std::env::current_dir().map_err(|e| format!("the current folder cannot be read: {e}"))
}
