//! `pando up` as a process, and other subcommands against it.
#![allow(dead_code, clippy::disallowed_methods, clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// `pando up` in a folder of its own.
pub(crate) struct Up {
    pub(crate) dir: PathBuf,
    child: Child,
    pub(crate) uri: String,
}

pub(crate) fn pando(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pando"));
    command.args(args).current_dir(dir).stdin(Stdio::null());
    command
}

impl Up {
    pub(crate) fn start(name: &str, options: &[&str]) -> Up {
        let dir = std::env::temp_dir().join(format!("pando-up-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let (child, uri) = Up::spawn(&dir, options);
        Up { dir, child, uri }
    }
    /// Stopped, and started over the same data.
    pub(crate) fn again(&mut self, options: &[&str]) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        (self.child, self.uri) = Up::spawn(&self.dir, options);
    }
    fn spawn(dir: &Path, options: &[&str]) -> (Child, String) {
        let mut up = pando(dir, &["up", "--port", "0", "--nounixsocket"]);
        let mut child = up.args(options).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let uri = lines.find_map(|l| l.trim().strip_prefix("connect ").map(|u| u.trim().to_owned()));
        std::thread::spawn(move || lines.count());
        (child, uri.unwrap())
    }
    pub(crate) fn host(&self) -> String {
        let (head, _) = self.uri.rsplit_once("/?").unwrap();
        format!("localhost:{}", head.rsplit_once(':').unwrap().1)
    }
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        pando(&self.dir, args).args(["--host", &self.host()]).output().unwrap()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
