//! The log as MongoDB's tools know it: one JSON object per line, to standard output or a file.
//!
//! ```text
//! {"t":{"$date":"2026-01-02T03:04:05.678+00:00"},"s":"I",  "c":"NETWORK",  "id":23016,   "ctx":"listener",
//!  "msg":"Waiting for connections","attr":{"port":27017}}          (one line)
//! ```
//! The sink keeps the latest lines for `getLog`, knows each component's verbosity, and renames or reopens its
//! file on SIGUSR1 and `logRotate`.

use pando_base::limits;
use pando_env::Clock;
use pando_env::log::{Component, LogSink, Record, Severity, push_json_string};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where lines go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    Stdout,
    File {
        path: PathBuf,
        /// Keep what is there; otherwise an old file is renamed first.
        append: bool,
        /// `logRotate` reopens the file (someone else renamed it) instead of renaming it.
        reopen: bool,
    },
    /// Only the ring (tests).
    Memory,
}

/// MongoDB's log.
pub struct JsonLog {
    clock: Arc<dyn Clock>,
    destination: Destination,
    out: Mutex<Out>,
    /// Per component; -1 = as its parent.
    verbosity: Vec<AtomicI8>,
    starting: AtomicBool,
    redacts: AtomicBool,
}

struct Out {
    file: Option<File>,
    ring: VecDeque<String>,
    written: u64,
    startup_warnings: Vec<String>,
    line: String,
}

impl JsonLog {
    pub fn open(clock: Arc<dyn Clock>, destination: Destination) -> io::Result<Arc<JsonLog>> {
        let file = match &destination {
            Destination::File { path, append, .. } => {
                if !append && path.exists() {
                    std::fs::rename(path, rotated_name(path, clock.wall_ms()))?;
                }
                Some(open_append(path)?)
            }
            Destination::Stdout | Destination::Memory => None,
        };
        let verbosity: Vec<_> = Component::ALL.iter().map(|_| AtomicI8::new(-1)).collect();
        verbosity[Component::Default as usize].store(0, Relaxed);
        let out = Out {
            file,
            ring: VecDeque::new(),
            written: 0,
            startup_warnings: Vec::new(),
            line: String::new(),
        };
        Ok(Arc::new(JsonLog {
            clock,
            destination,
            out: Mutex::new(out),
            verbosity,
            starting: AtomicBool::new(true),
            redacts: AtomicBool::new(false),
        }))
    }
    /// Warnings from here on are no longer startup warnings.
    pub fn startup_done(&self) {
        self.starting.store(false, Relaxed);
    }
    fn lock(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_append(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// `pandod.log.2026-01-02T03-04-05`, never an existing name.
pub(crate) fn rotated_name(path: &Path, wall_ms: i64) -> PathBuf {
    let mut stamp = String::new();
    stamp.push_str(&pando_base::calendar::iso(wall_ms));
    let stamp: String = stamp.chars().take(19).map(|c| if c == ':' { '-' } else { c }).collect();
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(&stamp);
    let mut candidate = PathBuf::from(&name);
    for n in 1.. {
        if !candidate.exists() {
            break;
        }
        let mut next = name.clone();
        next.push(format!("-{n}"));
        candidate = PathBuf::from(next);
    }
    candidate
}

/// The component that lends its verbosity when `c` has none of its own.
fn parent(c: Component) -> Component {
    match c.path().rsplit_once('.') {
        Some((up, _)) => {
            Component::ALL.iter().copied().find(|p| p.path() == up).unwrap_or(Component::Default)
        }
        None => Component::Default,
    }
}

impl LogSink for JsonLog {
    fn enabled(&self, component: Component, severity: Severity) -> bool {
        match severity {
            Severity::Debug(level) => self.verbosity(component) >= level,
            _ => true,
        }
    }
    fn write(&self, r: &Record<'_>) {
        let now = self.clock.wall_ms();
        let mut out = self.lock();
        let mut line = std::mem::take(&mut out.line);
        line.clear();
        push_line(&mut line, now, r);
        if r.severity == Severity::Warning && self.starting.load(Relaxed) {
            out.startup_warnings.push(line.clone());
        }
        if out.ring.len() >= limits::LOG_RING_LINES {
            out.ring.pop_front();
        }
        out.ring.push_back(line.clone());
        out.written += 1;
        line.push('\n');
        // A full disk or a closed pipe must not stop the server; the ring still has the line.
        let _ = match (&mut out.file, &self.destination) {
            (Some(file), _) => file.write_all(line.as_bytes()),
            (None, Destination::Stdout) => io::stdout().lock().write_all(line.as_bytes()),
            (None, _) => Ok(()),
        };
        out.line = line;
    }
    fn verbosity(&self, component: Component) -> u8 {
        let mut at = component;
        loop {
            let level = self.verbosity[at as usize].load(Relaxed);
            if level >= 0 {
                return level as u8;
            }
            if at == Component::Default {
                return 0;
            }
            at = parent(at);
        }
    }
    fn own_verbosity(&self, component: Component) -> Option<u8> {
        u8::try_from(self.verbosity[component as usize].load(Relaxed)).ok()
    }
    fn set_verbosity(&self, component: Component, level: Option<u8>) {
        let level = level.map_or(-1, |l| l.min(5) as i8);
        let level = if component == Component::Default { level.max(0) } else { level };
        self.verbosity[component as usize].store(level, Relaxed);
    }
    fn recent(&self) -> (Vec<String>, u64) {
        let out = self.lock();
        (out.ring.iter().cloned().collect(), out.written)
    }
    fn startup_warnings(&self) -> Vec<String> {
        self.lock().startup_warnings.clone()
    }
    fn rotate(&self) -> io::Result<()> {
        let Destination::File { path, reopen, .. } = &self.destination else { return Ok(()) };
        let mut out = self.lock();
        if !reopen {
            std::fs::rename(path, rotated_name(path, self.clock.wall_ms()))?;
        }
        out.file = Some(open_append(path)?);
        Ok(())
    }
    fn redacts(&self) -> bool {
        self.redacts.load(Relaxed)
    }
    fn set_redaction(&self, on: bool) {
        self.redacts.store(on, Relaxed);
    }
    fn clear(&self) {
        let mut out = self.lock();
        out.ring.clear();
        out.startup_warnings.clear();
    }
}

/// One line, without the newline.
pub fn push_line(out: &mut String, wall_ms: i64, r: &Record<'_>) {
    out.push_str("{\"t\":{\"$date\":\"");
    out.push_str(&pando_base::calendar::iso(wall_ms));
    out.push_str("+00:00\"},\"s\":\"");
    let severity = r.severity.text();
    let _ = write!(out, "{severity}\",{:1$}\"c\":\"", "", 3 - severity.len());
    let component = r.component.text();
    let _ = write!(out, "{component}\",{:1$}\"id\":", "", 9usize.saturating_sub(component.len()));
    let _ = write!(out, "{},", r.id);
    let digits = r.id.max(1).ilog10() as usize + 1;
    let _ = write!(out, "{:1$}\"ctx\":", "", 8usize.saturating_sub(digits));
    push_json_string(out, r.ctx);
    out.push_str(",\"msg\":");
    push_json_string(out, r.msg);
    if !r.attr.is_empty() {
        out.push_str(",\"attr\":");
        out.push_str(r.attr);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_env::{BoxFuture, Log};
    use std::time::Duration;

    struct At(i64);
    impl Clock for At {
        fn mono(&self) -> Duration {
            Duration::ZERO
        }
        fn wall_ms(&self) -> i64 {
            self.0
        }
        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(async {})
        }
    }
    fn memory() -> (Arc<JsonLog>, Log) {
        let sink = JsonLog::open(Arc::new(At(1_795_258_504_778)), Destination::Memory).unwrap();
        (sink.clone(), Log::new(sink, "listener"))
    }

    #[test]
    fn a_line_looks_like_mongods() {
        let (sink, log) = memory();
        log.info(Component::Network, 23016, "Waiting for connections", |a| {
            a.i64("port", 29555).str("ssl", "off");
        });
        assert_eq!(
            sink.recent().0,
            [
                "{\"t\":{\"$date\":\"2026-11-21T10:55:04.778+00:00\"},\"s\":\"I\",  \"c\":\"NETWORK\",  \"id\":23016,   \
              \"ctx\":\"listener\",\"msg\":\"Waiting for connections\",\"attr\":{\"port\":29555,\"ssl\":\"off\"}}"
            ]
        );
    }

    #[test]
    fn verbosity_is_inherited_and_debug_lines_need_it() {
        let (sink, log) = memory();
        log.debug(1, Component::Recovery, 1, "hidden", |_| {});
        sink.set_verbosity(Component::Storage, Some(2));
        log.debug(1, Component::Recovery, 2, "shown", |_| {});
        sink.set_verbosity(Component::Recovery, Some(0));
        log.debug(1, Component::Recovery, 3, "hidden", |_| {});
        let lines = sink.recent().0;
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].contains("\"s\":\"D1\", \"c\":\"RECOVERY\", \"id\":2,       \"ctx\""),
            "{}",
            lines[0]
        );
    }

    #[test]
    fn rotation_renames_or_reopens() {
        let dir = std::env::temp_dir().join(format!("pando-log-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("m.log");
        let open = |append| {
            let d = Destination::File { path: path.clone(), append, reopen: false };
            JsonLog::open(Arc::new(At(1_795_258_504_778)), d).unwrap()
        };
        let names = || {
            let mut v: Vec<_> = std::fs::read_dir(&dir)
                .unwrap()
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect();
            v.sort();
            v
        };
        let sink = open(true);
        Log::new(sink.clone(), "x").info(Component::Control, 1, "one", |_| {});
        sink.rotate().unwrap();
        Log::new(sink.clone(), "x").info(Component::Control, 2, "two", |_| {});
        assert_eq!(names(), ["m.log", "m.log.2026-11-21T10-55-04"]);
        open(false);
        assert_eq!(names(), ["m.log", "m.log.2026-11-21T10-55-04", "m.log.2026-11-21T10-55-04-1"]);
        assert!(std::fs::read_to_string(dir.join("m.log.2026-11-21T10-55-04-1")).unwrap().contains("two"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
