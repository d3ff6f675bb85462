//! A machine's disk as one of its processes sees it: calls take time, and the process may be interrupted, or killed, at each.
//!
//! Only work that runs on a stack of its own is interrupted ([`crate::stack`]): what a command does between two awaits is
//! one step. What a call does happens at once, before or after the time that it takes. A process that is dead reaches
//! nothing any more.

use crate::executor::{Core, ProcessId};
use crate::stack;
use pando_env::{Disk, DiskFile};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Of so many reads one takes time worth a mention: the others find their bytes in memory.
const READ_WAITS_ONE_IN: u64 = 16;
/// Of so many calls one takes long, up to this.
const LONG_ONE_IN: u64 = 60;
const LONG_US: u64 = 60_000;

/// How fast a machine's disk is.
#[derive(Default)]
pub struct Pace {
    /// The longest that a sync takes in addition, in microseconds.
    slow_us: AtomicU64,
}

impl Pace {
    pub fn set_slow_ms(&self, ms: u64) {
        self.slow_us.store(ms * 1000, Relaxed);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Sync,
}

#[derive(Clone)]
struct Seat {
    core: Arc<Core>,
    process: ProcessId,
    pace: Arc<Pace>,
}

impl Seat {
    fn alive(&self) -> io::Result<()> {
        if self.core.is_alive(self.process) { Ok(()) } else { Err(io::Error::from_raw_os_error(5)) }
    }
    fn takes(&self, kind: Kind) -> Option<Duration> {
        let below = |n: u64| self.core.rng.below(n);
        if kind == Kind::Read && below(READ_WAITS_ONE_IN) > 0 {
            return None;
        }
        let usual = match kind {
            Kind::Read => 100,
            Kind::Write => 60,
            Kind::Sync => 1500,
        };
        let slow = self.pace.slow_us.load(Relaxed);
        let more = match kind {
            Kind::Sync if slow > 0 => below(slow),
            _ if below(LONG_ONE_IN) == 0 => below(LONG_US),
            _ => 0,
        };
        Some(Duration::from_micros(below(usual) + more))
    }
    /// Does it, at some moment of the time that it takes.
    fn call<T>(&self, kind: Kind, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.alive()?;
        let time = if stack::can_pause() { self.takes(kind) } else { None };
        let Some(time) = time else { return act() };
        if self.core.rng.below(2) == 0 {
            let done = act();
            stack::pause(time);
            self.alive()?;
            return done;
        }
        stack::pause(time);
        self.alive()?;
        act()
    }
}

pub(crate) struct SimDisk {
    seat: Seat,
    below: Arc<dyn Disk>,
}

impl SimDisk {
    pub(crate) fn new(core: Arc<Core>, process: ProcessId, pace: Arc<Pace>, below: Arc<dyn Disk>) -> SimDisk {
        SimDisk { seat: Seat { core, process, pace }, below }
    }
}

struct SimFile {
    seat: Seat,
    below: Arc<dyn DiskFile>,
}

impl Disk for SimDisk {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let below = self.seat.call(Kind::Write, || self.below.open(path, create))?;
        Ok(Arc::new(SimFile { seat: self.seat.clone(), below }))
    }
    fn exists(&self, path: &str) -> bool {
        self.below.exists(path)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.seat.call(Kind::Read, || self.below.list(dir))
    }
    fn create_dir_all(&self, dir: &str) -> io::Result<()> {
        self.seat.call(Kind::Write, || self.below.create_dir_all(dir))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.seat.call(Kind::Write, || self.below.rename(from, to))
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.seat.call(Kind::Write, || self.below.remove(path))
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.seat.call(Kind::Sync, || self.below.sync_dir(dir))
    }
    fn real_path(&self) -> Option<PathBuf> {
        self.below.real_path()
    }
    fn free_bytes(&self) -> io::Result<u64> {
        self.below.free_bytes()
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.seat.call(Kind::Read, || self.below.read_at(offset, buf))
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.seat.call(Kind::Write, || self.below.write_at(offset, buf))
    }
    fn sync(&self) -> io::Result<()> {
        self.seat.call(Kind::Sync, || self.below.sync())
    }
    fn len(&self) -> io::Result<u64> {
        self.seat.alive()?;
        self.below.len()
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.seat.call(Kind::Write, || self.below.truncate(len))
    }
}
