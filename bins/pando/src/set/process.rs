//! One server or router: a child process in a process group of its own, so that a Ctrl-C in the terminal reaches only us.

use super::Plan;
use pando_env_tokio::process::terminate;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) struct Process {
    binary: PathBuf,
    args: Vec<String>,
    host: String,
    log: PathBuf,
    child: Option<Child>,
    pid: u32,
}

fn text(p: &Path) -> String {
    p.to_string_lossy().into_owned()
}

impl Process {
    /// Member `i` of a set.
    pub(crate) fn member(plan: &Plan, binary: &Path, i: usize) -> Process {
        let folder = plan.folder(i);
        let own = ["server", "--dbpath", &text(&folder), "--replSet", &plan.set];
        let own = own.iter().copied().chain(plan.role.option()).map(str::to_owned);
        let args = own.chain(plan.options.iter().cloned()).collect();
        Process::new(binary, args, plan.port(i), folder.join("pandod.log"))
    }
    /// A router, which is told of the config servers.
    pub(crate) fn router(
        binary: &Path,
        (configdb, options): (&str, &[String]),
        port: u16,
        folder: &Path,
    ) -> Process {
        let args = ["router", "--configdb", configdb].map(str::to_owned);
        let args = args.into_iter().chain(options.iter().cloned()).collect();
        Process::new(binary, args, port, folder.join("pandos.log"))
    }
    fn new(binary: &Path, mut args: Vec<String>, port: u16, log: PathBuf) -> Process {
        let (number, path) = (port.to_string(), text(&log));
        let own = ["--port", &number, "--bind_ip", "127.0.0.1", "--nounixsocket"];
        let of_log = ["--logpath", &path, "--logappend"];
        args.extend(own.iter().chain(&of_log).map(|s| (*s).to_owned()));
        let host = format!("127.0.0.1:{port}");
        Process { binary: binary.to_owned(), args, host, log, child: None, pid: 0 }
    }
    pub(crate) fn start(&mut self) -> Result<(), String> {
        let mut command = Command::new(&self.binary);
        command
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let child =
            command.spawn().map_err(|e| format!("{} cannot be started: {e}", self.binary.display()))?;
        self.pid = child.id();
        self.child = Some(child);
        Ok(())
    }
    /// How it ended, told once.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        self.child = None;
        Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (_, Some(signal)) => format!("signal {signal}"),
            _ => "no reason known".to_owned(),
        })
    }
    pub(crate) fn is_running(&mut self) -> bool {
        self.ended();
        self.child.is_some()
    }
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }
    pub(crate) fn running_pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }
    pub(crate) fn terminate(&mut self) {
        if self.is_running() {
            terminate(self.pid as i32);
        }
    }
    pub(crate) fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended this moment.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
    /// With what it said last: the log's end, or (bad options) what it says without a log.
    pub(crate) fn did_not_start(&self, how: &str) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let said = log.lines().rev().find(|l| l.contains("\"s\":\"E\"") || l.contains("\"s\":\"F\""));
        let said = said
            .map(str::to_owned)
            .unwrap_or_else(|| format!("{} {}", self.binary.display(), self.args.join(" ")));
        format!("{} did not start ({how}): {said}\nIts log is {}", self.host, self.log.display())
    }
}
