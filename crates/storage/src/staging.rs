//! Files of another node's checkpoint on their way to becoming this node's.
//!
//! ```text
//!   list written ─► files written, synced ─► state "complete" │ start: old files go ─► state "moving" ─► renamed ─► state gone
//! ```
//! They are taken over at a start, before anything is opened: a running store cannot exchange its files. Up to
//! "complete" a crash leaves the node's own files, and what was staged is thrown away; from then on a start goes on
//! where the last one was.

use crate::log::files::DIR as JOURNAL;
use pando_base::{Error, ErrorCode, Result};
use pando_env::Disk;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

const DIR: &str = "filecopy";
/// What the copying node wants to keep of itself ([`Staging::keep`]).
const KEPT: &str = "adopted";
const COMPLETE: &[u8] = b"complete";
const MOVING: &[u8] = b"moving";

pub struct Staging {
    pub(crate) disk: Arc<dyn Disk>,
    root: &'static str,
    dirs: BTreeSet<String>,
}

impl Staging {
    /// Makes room for files of these paths (as [`crate::PinnedFile::path`] names them); what an earlier copy left goes.
    pub fn begin<'a>(disk: Arc<dyn Disk>, paths: impl Iterator<Item = &'a str>) -> Result<Staging> {
        Staging::begin_in(DIR, disk, paths)
    }
    pub(crate) fn begin_in<'a>(
        root: &'static str,
        disk: Arc<dyn Disk>,
        paths: impl Iterator<Item = &'a str>,
    ) -> Result<Staging> {
        discard(&*disk, root)?;
        let mut list = String::new();
        let mut dirs = BTreeSet::new();
        for path in paths {
            list.push_str(checked_path(path)?);
            list.push('\n');
            dirs.extend(with_those_above(&format!("{root}/{}", dir_of(path))));
        }
        dirs.extend(with_those_above(root));
        for dir in dirs.iter().filter(|dir| !dir.is_empty()) {
            disk.create_dir_all(dir)?;
        }
        put(&*disk, &list_of(root), list.as_bytes())?;
        disk.sync_dir(root)?;
        Ok(Staging { disk, root, dirs })
    }
    pub(crate) fn path_of(&self, path: &str) -> Result<String> {
        Ok(format!("{}/{}", self.root, checked_path(path)?))
    }
    pub fn write(&self, path: &str, offset: u64, bytes: &[u8]) -> Result<()> {
        let file = self.disk.open(&self.path_of(path)?, true)?;
        Ok(file.write_at(offset, bytes)?)
    }
    /// The file is whole: its bytes reach the disk.
    pub fn end_file(&self, path: &str, bytes: u64) -> Result<()> {
        let file = self.disk.open(&self.path_of(path)?, true)?;
        file.truncate(bytes)?;
        file.sync()?;
        file.forget_cached(0, bytes);
        Ok(())
    }
    /// Bytes that [`take_kept`] gives back after the files were taken over.
    pub fn keep(&self, bytes: &[u8]) -> Result<()> {
        put(&*self.disk, &format!("{}/{KEPT}", self.root), bytes)
    }
    /// All files are whole: the next start takes them over.
    pub fn complete(self) -> Result<()> {
        // Each folder's name lies in the one above it.
        for dir in self.dirs.iter().rev() {
            self.disk.sync_dir(dir)?;
        }
        put_state(&*self.disk, self.root, COMPLETE)
    }
}

/// A folder and all that it lies in, up to the data folder itself.
fn with_those_above(dir: &str) -> Vec<String> {
    let mut all = vec![dir.to_owned()];
    while let Some(last) = all.last().filter(|d| !d.is_empty()) {
        all.push(dir_of(last).to_owned());
    }
    all
}
fn dir_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// A path that a checkpoint's file can have, from another node or a list that anyone may have written: it leads nowhere
/// else. `InvalidSyncSource` for any other.
pub fn checked_path(path: &str) -> Result<&str> {
    let ours = path.starts_with("tables/") || path.strip_prefix(JOURNAL).is_some_and(|p| p.starts_with('/'));
    let plain = |part: &str| {
        !part.is_empty()
            && part != ".."
            && part != "."
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_')
    };
    if ours && path.split('/').all(plain) {
        return Ok(path);
    }
    Err(Error::new(ErrorCode::InvalidSyncSource, format!("{path:?} is no file of a checkpoint")))
}

fn list_of(root: &str) -> String {
    format!("{root}/list")
}
fn state_of(root: &str) -> String {
    format!("{root}/state")
}
fn new_state_of(root: &str) -> String {
    format!("{root}/state.new")
}

pub(crate) fn put(disk: &dyn Disk, path: &str, bytes: &[u8]) -> Result<()> {
    let file = disk.open(path, true)?;
    file.truncate(0)?;
    file.write_at(0, bytes)?;
    Ok(file.sync()?)
}
pub(crate) fn get(disk: &dyn Disk, path: &str) -> Result<Option<Vec<u8>>> {
    if !disk.exists(path) {
        return Ok(None);
    }
    let file = disk.open(path, false)?;
    let mut bytes = vec![0; file.len()? as usize];
    let got = file.read_at(0, &mut bytes)?;
    bytes.truncate(got);
    Ok(Some(bytes))
}
fn put_state(disk: &dyn Disk, root: &str, state: &[u8]) -> Result<()> {
    put(disk, &new_state_of(root), state)?;
    disk.rename(&new_state_of(root), &state_of(root))?;
    Ok(disk.sync_dir(root)?)
}
/// Whether [`Staging::complete`] was reached.
pub(crate) fn is_complete(disk: &dyn Disk, root: &str) -> Result<bool> {
    Ok(get(disk, &state_of(root))?.is_some_and(|state| state == COMPLETE))
}
pub(crate) fn remove(disk: &dyn Disk, path: &str) -> Result<()> {
    match disk.remove(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e.into()),
        _ => Ok(()),
    }
}
pub(crate) fn is_begun(disk: &dyn Disk, root: &str) -> bool {
    disk.exists(&list_of(root))
}
fn listed(disk: &dyn Disk, root: &str) -> Result<Vec<String>> {
    let path = list_of(root);
    let list = get(disk, &path)?.ok_or_else(|| crate::damage::damaged(format!("{path} is missing")))?;
    let list = String::from_utf8(list).map_err(|_| Error::internal(format!("{path} is damaged")))?;
    Ok(list.lines().map(str::to_owned).collect())
}

/// A copy that never came to its end.
fn discard(disk: &dyn Disk, root: &str) -> Result<()> {
    if !is_begun(disk, root) {
        return Ok(());
    }
    for path in listed(disk, root)? {
        remove(disk, &format!("{root}/{path}"))?;
    }
    remove(disk, &format!("{root}/{KEPT}"))?;
    remove(disk, &new_state_of(root))?;
    remove(disk, &list_of(root))?;
    Ok(disk.sync_dir(root)?)
}

/// A copy with all files in its folders, also such as whoever opened them has made.
pub(crate) fn discard_whole(disk: &dyn Disk, root: &str) -> Result<()> {
    remove(disk, &state_of(root))?;
    disk.sync_dir(root)?;
    for dir in own_dirs() {
        remove_files(disk, &format!("{root}/{dir}"))?;
    }
    discard(disk, root)
}

/// At a start, before [`crate::Storage::open`]: a complete copy takes the place of the node's own files. True when
/// there was one.
pub fn adopt_staged(disk: &dyn Disk) -> Result<bool> {
    let state = get(disk, &state_of(DIR))?;
    if state.is_some() {
        // Whoever wrote it may have been killed before its name was durable. What is removed and moved below must not meet
        // the state before at the next start.
        disk.sync_dir(DIR)?;
    }
    match state.as_deref() {
        None => {
            discard(disk, DIR)?;
            return Ok(false);
        }
        Some(_) if !is_begun(disk, DIR) => {
            // The node's own files must not go for a copy that nobody can name.
            return Err(crate::damage::damaged(format!(
                "{DIR}/list is missing, and {DIR}/state says that a copy is complete"
            )));
        }
        Some(s) if s == COMPLETE => {
            for dir in own_dirs() {
                remove_files(disk, &dir)?;
            }
            put_state(disk, DIR, MOVING)?;
        }
        Some(s) if s == MOVING => {}
        Some(_) => return Err(Error::internal(format!("{DIR}/state is damaged"))),
    }
    let paths = listed(disk, DIR)?;
    let mut dirs = BTreeSet::new();
    for path in &paths {
        let staged = format!("{DIR}/{}", checked_path(path)?);
        dirs.extend(with_those_above(dir_of(path)));
        if disk.exists(&staged) {
            disk.create_dir_all(dir_of(path))?;
            disk.rename(&staged, path)?;
        }
    }
    let kept = format!("{DIR}/{KEPT}");
    if disk.exists(&kept) {
        disk.rename(&kept, KEPT)?;
    }
    dirs.insert(String::new());
    for dir in dirs.iter().rev() {
        disk.sync_dir(dir)?;
    }
    remove(disk, &state_of(DIR))?;
    disk.sync_dir(DIR)?;
    discard(disk, DIR)?;
    Ok(true)
}

/// What [`Staging::keep`] was given, until [`forget_kept`].
pub fn take_kept(disk: &dyn Disk) -> Result<Option<Vec<u8>>> {
    get(disk, KEPT)
}
pub fn forget_kept(disk: &dyn Disk) -> Result<()> {
    remove(disk, KEPT)?;
    Ok(disk.sync_dir("")?)
}

/// Every folder that tables and logs lie in.
fn own_dirs() -> Vec<String> {
    let mut dirs = vec![JOURNAL.to_owned(), "tables".to_owned()];
    for tree in crate::kv::Tree::ALL {
        dirs.push(format!("tables/{}", tree.name()));
        dirs.push(format!("tables/{}/tables", tree.name()));
    }
    dirs
}
fn remove_files(disk: &dyn Disk, dir: &str) -> Result<()> {
    let names = match disk.list(dir) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        names => names?,
    };
    if names.is_empty() {
        return Ok(());
    }
    for name in names {
        remove(disk, &format!("{dir}/{name}"))?;
    }
    Ok(disk.sync_dir(dir)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_cannot_name_files_outside_the_checkpoint() {
        for good in ["journal/oplog.0000000001", "tables/records/tables/17", "tables/whole.00000001"] {
            assert!(checked_path(good).is_ok(), "{good}");
        }
        for bad in
            ["/etc/x", "journal", "../journal/x", "tables/../x", "tables//x", "filecopy/state", "tables/a b"]
        {
            assert!(checked_path(bad).is_err(), "{bad}");
        }
    }
}
