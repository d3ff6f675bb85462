//! A real folder whose writes and syncs can fail, and of which it is known what a loss of power would leave.
//!
//! The table crate calls the file system itself, so faults are put below it: this test program defines `write`,
//! `pwrite64`, `fsync` and `fdatasync`, and everything linked into it, the standard library too, uses these. A file's
//! bytes are durable as of its last sync; a folder's names as of the folder's. From a chosen call on, calls fail.
#![allow(unsafe_code, unreachable_pub)]

use pando_storage::testing::SeededRng;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the faulty call does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It and all later ones fail: the process is as good as dead. A write gets half its bytes down.
    Dead,
    /// It fails, and what a failed sync should have kept is lost; later calls succeed.
    Once,
    /// Writes fail for want of room from here on; syncs succeed.
    Full,
    /// Syncs keep nothing and say that they did: such a disk must be found out.
    Lies,
}

#[derive(Default)]
struct Folder {
    root: PathBuf,
    calls: u64,
    fault: Option<(u64, Fault)>,
    hit: bool,
    /// By inode.
    bytes: BTreeMap<u64, Vec<u8>>,
    /// Names that are durable, each with its inode.
    names: BTreeMap<PathBuf, u64>,
    /// Held open, so that no other file gets the inode of one that is removed.
    held: BTreeMap<u64, std::fs::File>,
}

static FOLDER: Mutex<Option<Folder>> = Mutex::new(None);

fn folder() -> MutexGuard<'static, Option<Folder>> {
    FOLDER.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" {
    fn __errno_location() -> *mut i32;
}

fn answer(r: Result<usize, Errno>) -> isize {
    match r {
        Ok(n) => n as isize,
        Err(e) => {
            // SAFETY: the thread's own errno.
            unsafe { *__errno_location() = e.raw_os_error() };
            -1
        }
    }
}

enum Call {
    Write,
    Sync,
}

/// Where `fd` points, when that is within the watched folder.
fn watched(folder: &Option<Folder>, fd: i32) -> Option<PathBuf> {
    let root = &folder.as_ref()?.root;
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    path.starts_with(root).then_some(path)
}

impl Folder {
    /// Counts a call; the error it is to have.
    fn count(&mut self, call: &Call) -> Option<(Errno, Fault)> {
        self.calls += 1;
        let (at, fault) = self.fault?;
        let fails = match fault {
            Fault::Dead => self.calls >= at,
            Fault::Once => self.calls >= at && !self.hit,
            Fault::Full => self.calls >= at && matches!(call, Call::Write),
            Fault::Lies => false,
        };
        self.hit |= fails;
        let errno = if fault == Fault::Full { Errno::NOSPC } else { Errno::IO };
        fails.then_some((errno, fault))
    }
    fn keep(&mut self, path: &Path) {
        let Ok(meta) = std::fs::metadata(path) else { return };
        if meta.is_dir() {
            self.names.retain(|name, _| name.parent() != Some(path));
            for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
                if let Ok(meta) = entry.metadata() {
                    self.names.insert(entry.path(), meta.ino());
                    self.hold(&entry.path(), meta.ino());
                }
            }
        } else if let Ok(bytes) = std::fs::read(path) {
            self.bytes.insert(meta.ino(), bytes);
            self.hold(path, meta.ino());
        }
    }
    fn hold(&mut self, path: &Path, inode: u64) {
        if !path.is_dir()
            && let Ok(file) = std::fs::File::open(path)
        {
            self.held.insert(inode, file);
        }
    }
}

fn write_call(fd: i32, buf: &[u8], real: impl Fn(BorrowedFd<'_>, &[u8]) -> Result<usize, Errno>) -> isize {
    // SAFETY: the caller passes an open descriptor.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let mut folder = folder();
    if watched(&folder, fd).is_some()
        && let Some((errno, fault)) = folder.as_mut().and_then(|f| f.count(&Call::Write))
    {
        if fault == Fault::Dead && buf.len() > 1 {
            let _ = real(borrowed, &buf[..buf.len() / 2]);
        }
        return answer(Err(errno));
    }
    drop(folder);
    answer(real(borrowed, buf))
}

fn sync_call(fd: i32) -> i32 {
    let mut folder = folder();
    // Other folders' contents do not matter here.
    let Some(path) = watched(&folder, fd) else { return 0 };
    let Some(f) = folder.as_mut() else { return 0 };
    if let Some((errno, _)) = f.count(&Call::Sync) {
        return answer(Err(errno)) as i32;
    }
    if !matches!(f.fault, Some((_, Fault::Lies))) {
        f.keep(&path);
    }
    0
}

/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: i32, buf: *const c_void, len: usize) -> isize {
    // SAFETY: the caller's promise.
    let buf = unsafe { std::slice::from_raw_parts(buf.cast(), len) };
    write_call(fd, buf, |fd, b| rustix::io::write(fd, b))
}
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(fd: i32, buf: *const c_void, len: usize, at: i64) -> isize {
    // SAFETY: the caller's promise.
    let buf = unsafe { std::slice::from_raw_parts(buf.cast(), len) };
    write_call(fd, buf, |fd, b| rustix::io::pwrite(fd, b, at as u64))
}
#[unsafe(no_mangle)]
pub extern "C" fn fsync(fd: i32) -> i32 {
    sync_call(fd)
}
#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(fd: i32) -> i32 {
    sync_call(fd)
}

/// Watches `root` from now on; everything in it counts as durable. After an end without a loss of power the watch goes on:
/// what the killed process had not synced still is not durable.
pub fn watch(root: &Path) {
    let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    if let Some(f) = folder().as_mut().filter(|f| f.root == root) {
        (f.calls, f.fault, f.hit) = (0, None, false);
        return;
    }
    let mut f = Folder { root: root.clone(), ..Folder::default() };
    let mut dirs = vec![root];
    while let Some(dir) = dirs.pop() {
        f.keep(&dir);
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                dirs.push(entry.path());
            } else {
                f.keep(&entry.path());
            }
        }
    }
    *folder() = Some(f);
}
/// Calls counted since [`watch`].
pub fn calls() -> u64 {
    folder().as_ref().map_or(0, |f| f.calls)
}
/// The call with this number (from 1) is the faulty one.
pub fn fail_at(call: u64, fault: Fault) {
    if let Some(f) = folder().as_mut() {
        f.fault = Some((call, fault));
    }
}
/// Whether a call has failed.
pub fn was_hit() -> bool {
    folder().as_ref().is_some_and(|f| f.hit)
}
/// Ends the watch. With `power_lost` the folder becomes what a loss of power leaves: durable names with durable
/// bytes, and of the rest nothing, or (one time in two) a random part.
pub fn end(power_lost: bool, rng: &SeededRng) {
    if !power_lost {
        return;
    }
    let Some(f) = folder().take() else { return };
    let keep_some = rng.below(2) == 0;
    let mut live: BTreeMap<PathBuf, u64> = BTreeMap::new();
    let mut dirs = vec![f.root.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                dirs.push(entry.path());
            } else {
                live.insert(entry.path(), meta.ino());
            }
        }
    }
    let content: BTreeMap<u64, Vec<u8>> =
        live.iter().filter_map(|(path, ino)| Some((*ino, std::fs::read(path).ok()?))).collect();
    // Names: durable ones come back; others stay, and removed ones are gone, only by chance.
    let mut names = f.names.clone();
    names.retain(|path, _| !path.is_dir());
    if keep_some {
        names.retain(|path, _| live.contains_key(path) || rng.below(2) == 0);
        for (path, ino) in &live {
            if rng.below(2) == 0 {
                names.insert(path.clone(), *ino);
            }
        }
    }
    for path in live.keys() {
        let _ = std::fs::remove_file(path);
    }
    for (path, ino) in names {
        let synced = f.bytes.get(&ino).cloned().unwrap_or_default();
        let bytes = match content.get(&ino) {
            Some(live) if keep_some && live.len() > synced.len() => {
                let extra = rng.below((live.len() - synced.len()) as u64 + 1) as usize;
                live[..synced.len() + extra].to_vec()
            }
            _ => synced,
        };
        if let Some(dir) = path.parent() {
            let _ = std::fs::create_dir_all(dir);
        }
        let _ = std::fs::write(&path, bytes);
    }
}
