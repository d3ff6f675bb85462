//! The process itself: signals, its open-file limit, and going to the background.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the outside asks of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// End cleanly; the signal's number and name.
    Stop(i32, &'static str),
    /// SIGUSR1.
    RotateLog,
}

/// The signals a server listens to.
pub struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
    usr1: Signal,
}

impl Signals {
    /// Call inside a runtime, before anything that must not be cut short.
    pub fn new() -> io::Result<Signals> {
        Ok(Signals {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
            usr1: signal(SignalKind::user_defined1())?,
        })
    }
    pub async fn next(&mut self) -> Asked {
        std::future::poll_fn(|cx| {
            for (signal, asked) in [
                (&mut self.term, Asked::Stop(15, "Terminated")),
                (&mut self.int, Asked::Stop(2, "Interrupt")),
                (&mut self.hup, Asked::Stop(1, "Hangup")),
                (&mut self.usr1, Asked::RotateLog),
            ] {
                if signal.poll_recv(cx).is_ready() {
                    return std::task::Poll::Ready(asked);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

/// Raises the soft limit of open files to the hard one: connections and tables each need some.
pub fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without the right to do so the server runs with fewer connections.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Which permissions files and folders made from now on do not get.
pub fn set_umask(mask: u32) {
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(mask));
}

/// Asks a process to end cleanly; false when there is no such process.
pub fn terminate(pid: i32) -> bool {
    use rustix::process::{Pid, Signal, kill_process};
    Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok())
}

/// True while the process exists.
pub fn is_alive(pid: i32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok())
}

/// Set in the background child's environment.
const CHILD: &str = "PANDO_BACKGROUND";
/// What the child prints when clients can connect.
const READY: &str = "ready";

/// True in the child that [`start_background`] made.
pub fn is_background_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Starts this program again with the same arguments, detached, and waits until it says it is ready.
///
/// A fresh process instead of fork(2): nothing of a half-started runtime is inherited. Returns the child's id,
/// or the exit code with which it gave up.
pub fn start_background() -> io::Result<Result<u32, i32>> {
    let mut child = background_command().spawn()?;
    let pid = child.id();
    let ready = child
        .stdout
        .take()
        .is_some_and(|out| BufReader::new(out).lines().map_while(Result::ok).any(|line| line == READY));
    if ready { Ok(Ok(pid)) } else { Ok(Err(exit_code(&mut child)?)) }
}

fn exit_code(child: &mut Child) -> io::Result<i32> {
    Ok(child.wait()?.code().unwrap_or(1))
}

fn background_command() -> Command {
    let mut args = crate::arguments::given();
    let name = args.next().unwrap_or_default();
    let mut command = Command::new(program(&name));
    command
        .arg0(name)
        .args(args)
        .env(CHILD, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// The path this program was started by: the process name must stay that of a link (`mongod`), which
/// `/proc/self/exe` resolves.
fn program(name: &std::ffi::OsStr) -> PathBuf {
    let path = PathBuf::from(name);
    if path.components().count() > 1 {
        return path;
    }
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&dirs)
        .map(|dir| dir.join(&path))
        .find(|candidate| candidate.is_file())
        .or_else(|| std::env::current_exe().ok())
        .unwrap_or(path)
}

/// In the child, first thing: leave the terminal's session.
pub fn detach() {
    // Fails only when this process already leads a session, which is what we want.
    let _ = rustix::process::setsid();
}

/// In the child: tells the parent that clients can connect, then lets go of its pipe.
pub fn report_ready() {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{READY}").and_then(|()| out.flush());
    if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}

const AGAIN: &str = "PANDOD_STARTED_AGAIN";

/// Becomes a new run of the same program with the same arguments; returns only when that fails.
pub fn start_again() -> io::Error {
    use std::os::unix::process::CommandExt;
    let mut args = crate::arguments::given();
    let name = args.next().unwrap_or_default();
    match std::env::current_exe() {
        Ok(exe) => {
            let mut again = std::process::Command::new(exe);
            again.arg0(name).args(args).env(AGAIN, std::process::id().to_string()).exec()
        }
        Err(e) => e,
    }
}
/// Is this the run that [`start_again`] made? It has the number of the one before; a child has not.
pub fn was_started_again() -> bool {
    std::env::var(AGAIN).is_ok_and(|pid| pid == std::process::id().to_string())
}

/// Blocks this thread; for tools that wait for another process.
pub fn pause(d: std::time::Duration) {
    std::thread::sleep(d);
}

/// An I/O error in the system's words, without Rust's "(os error n)".
pub fn words(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
