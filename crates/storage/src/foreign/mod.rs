//! Another set's checkpoint, copied file by file, to take tables out of it.
//!
//! ```text
//!   pinned there ─► files staged, each with its sum ─► complete │ opened beside our own tables ─► read in key order ─► gone
//! ```
//! Its files cannot become ours: they hold rows of all of that node's collections side by side, each key begins with a number
//! of that node, each value with a time of that set. So they are read once ([`crate::Storage::load_tables`]) and removed.
//! What is staged here never takes the place of anything, and nothing of it outlives a start ([`discard_foreign`]).

mod folder;
pub(crate) mod load;

use crate::bytes::Bytes;
use crate::damage;
use crate::history;
use crate::ident::Ident;
use crate::kv::{Kv, KvIter, Tree};
use crate::meta::Meta;
use crate::options::Options;
use crate::row;
use crate::snapshot::Snapshot;
use crate::staging::{self, Staging};
use crate::storage::{Storage, open_tables};
use folder::Folder;
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_env::Disk;
use std::ops::Bound;
use std::sync::Arc;

const ROOT: &str = "foreign";
const SUMS: &str = "foreign/sums";

fn unusable(text: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::InvalidSyncSource, format!("another set's files cannot be taken in: {text}"))
}
/// The same of an error that speaks of this node's own folder.
fn of_theirs(e: Error) -> Error {
    unusable(damage::without_way_out(&e.message))
}

/// Whether a pinned file belongs to what is read: tables and the checkpoint file, no log.
pub fn is_foreign_wanted(path: &str) -> bool {
    path.starts_with("tables/") || path == crate::meta::PATH
}

impl Staging {
    /// Makes room for another set's files; those of an attempt before this one go.
    pub fn begin_foreign<'a>(disk: Arc<dyn Disk>, paths: impl Iterator<Item = &'a str>) -> Result<Staging> {
        discard_foreign(&*disk)?;
        Staging::begin_in(ROOT, disk, paths)
    }
    /// All files are whole; `files` are their names and lengths. What is read later must be what lies there now.
    pub fn complete_foreign(self, files: &[(String, u64)]) -> Result<()> {
        let mut sums = String::new();
        for (path, bytes) in files {
            let (len, sum) = sum_of(&*self.disk, &self.path_of(path)?)?;
            if len != *bytes {
                return Err(unusable(format_args!("{path} has {len} bytes instead of {bytes}")));
            }
            sums.push_str(&format!("{sum:08x} {bytes} {path}\n"));
        }
        staging::put(&*self.disk, SUMS, sums.as_bytes())?;
        self.complete()
    }
}

fn sum_of(disk: &dyn Disk, path: &str) -> Result<(u64, u32)> {
    let file = disk.open(path, false)?;
    let (mut sum, mut at, mut part) = (0, 0, vec![0; limits::PINNED_READ_BYTES]);
    loop {
        let got = file.read_at(at, &mut part)?;
        if got == 0 {
            return Ok((at, sum));
        }
        sum = crc32c::crc32c_append(sum, &part[..got]);
        at += got as u64;
    }
}

/// Whether files of another set lie here, or an attempt to copy some.
pub fn has_foreign(disk: &dyn Disk) -> bool {
    staging::is_begun(disk, ROOT)
}

/// Removes what was staged. Nobody reads it any more.
pub fn discard_foreign(disk: &dyn Disk) -> Result<()> {
    if has_foreign(disk) {
        staging::remove(disk, SUMS)?;
        staging::discard_whole(disk, ROOT)?;
    }
    Ok(())
}

/// See the module text.
pub struct ForeignCheckpoint {
    /// Its rows are those of this time of their own set.
    pub at: Timestamp,
    kv: Box<dyn Kv>,
    snap: Snapshot,
}

/// Rows of one record store or index, in key order.
pub struct ForeignRows<'a> {
    from: &'a ForeignCheckpoint,
    ident: u32,
    rows: KvIter,
}

impl Storage {
    /// Opens what [`Staging::complete_foreign`] has completed. Everything is read once to see that it is what was staged; blocks
    /// of tables have sums of their own besides. Reads the disk for as long as that takes.
    pub fn open_foreign(&self) -> Result<ForeignCheckpoint> {
        ForeignCheckpoint::open(&self.store.env.disk, &self.store.opts)
    }
}

impl ForeignCheckpoint {
    /// See [`Storage::open_foreign`]; `own` are the options of this node's storage.
    pub fn open(disk: &Arc<dyn Disk>, own: &Options) -> Result<ForeignCheckpoint> {
        if own.keys.is_some() {
            let text = "tables are not taken in by their files where data is encrypted";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        if !staging::is_complete(&**disk, ROOT)? {
            return Err(unusable("the copy is not complete"));
        }
        check_sums(&**disk)?;
        let folder: Arc<dyn Disk> = Arc::new(Folder::new(disk.clone(), ROOT));
        let meta = Meta::load(&*folder).map_err(of_theirs)?;
        let meta = meta.ok_or_else(|| unusable("there is no checkpoint file"))?;
        if meta.flushing != 0 || meta.undo_to != 0 || meta.one_tree {
            return Err(unusable("the checkpoint is not whole, or of an earlier version"));
        }
        if meta.recovery > meta.stable {
            // Its memory was full: a rollback there may take rows back that we would have for good.
            return Err(unusable("the checkpoint holds what may be rolled back"));
        }
        let opts = Options { cache_bytes: limits::FOREIGN_TABLES_CACHE_BYTES, ..own.clone() };
        let kv = open_tables(&folder, &opts, |_| false).map_err(of_theirs)?;
        let snap = Snapshot { read: meta.recovery, ..Snapshot::default() };
        Ok(ForeignCheckpoint { at: Timestamp(meta.recovery), kv, snap })
    }

    pub fn rows(&self, ident: Ident) -> ForeignRows<'_> {
        let (low, high) = (ident.0.to_be_bytes(), row::ident_end(ident.0));
        let high = high.as_ref().map_or(Bound::Unbounded, |h| Bound::Excluded(&h[..]));
        let rows = self.kv.range(Tree::of(ident.0), Bound::Included(&low), high, false);
        ForeignRows { from: self, ident: ident.0, rows }
    }

    /// What a row is as of the checkpoint: an index that was completed just then has put rows of later times into the tables.
    fn resolve(&self, ident: u32, key: &[u8], value: lsm_tree::Slice) -> Result<Option<Bytes>> {
        let (ts, deleted) = row::header(&value)?;
        if ts <= self.snap.read {
            return Ok((!deleted).then(|| row::payload(value)));
        }
        history::find(&*self.kv, &self.snap, ident, key, ts)
    }
}

impl ForeignRows<'_> {
    /// The next key and value.
    pub fn next(&mut self) -> Result<Option<(Vec<u8>, Bytes)>> {
        loop {
            if !self.rows.step().map_err(of_theirs)? {
                return Ok(None);
            }
            let key = self.rows.key()[4..].to_vec();
            let found = self.from.resolve(self.ident, &key, self.rows.share()).map_err(of_theirs)?;
            if let Some(value) = found {
                return Ok(Some((key, value)));
            }
        }
    }
}

fn check_sums(disk: &dyn Disk) -> Result<()> {
    let sums = staging::get(disk, SUMS)?.and_then(|b| String::from_utf8(b).ok());
    let sums = sums.ok_or_else(|| unusable("the list of their sums is missing"))?;
    for line in sums.lines() {
        let mut parts = line.splitn(3, ' ');
        let sum = parts.next().and_then(|s| u32::from_str_radix(s, 16).ok());
        let bytes = parts.next().and_then(|s| s.parse::<u64>().ok());
        let (Some(sum), Some(bytes), Some(path)) = (sum, bytes, parts.next()) else {
            return Err(unusable("the list of their sums is damaged"));
        };
        let whole = format!("{ROOT}/{}", staging::checked_path(path)?);
        if !disk.exists(&whole) {
            return Err(unusable(format_args!("{path} is missing")));
        }
        if sum_of(disk, &whole)? != (bytes, sum) {
            return Err(unusable(format_args!("{path} is not what was copied")));
        }
    }
    Ok(())
}
