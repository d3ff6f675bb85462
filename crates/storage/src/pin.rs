//! A checkpoint held still, to be copied while work goes on: by a backup, or by a member that copies files.
//!
//! The files are those that a crash at this moment would leave: tables, the checkpoint file, and the logs as far as
//! they are synced. Held open, they can be read though compactions and checkpoints remove them meanwhile; nothing on
//! disk bears witness of the pin, so a crash needs no cleaning. Opening a copy is a start after a crash: the tables
//! stand at [`PinnedCheckpoint::at`], the log is replayed from there.

use crate::log::files::LogFiles;
use crate::meta;
use crate::storage::Storage;
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_env::DiskFile;
use std::sync::Arc;

/// What a file is for; a copy that brings a log or local rows of its own leaves some out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PinnedKind {
    /// The checkpoint file. A copy is one once it has this file, so it comes last.
    Checkpoint,
    Table,
    /// The keys of encrypted files, sealed with the master key of the folder that they come from.
    Keys,
    /// A part of the oplog; every part from some point on makes a log.
    Oplog {
        first: Timestamp,
        last: Timestamp,
    },
    /// Writes without an oplog entry: the `local` database and markers.
    LocalLog,
}

/// One file of a [`PinnedCheckpoint`].
pub struct PinnedFile {
    /// Below the data directory.
    pub path: String,
    /// How much of the file belongs to the checkpoint: a log may have grown since.
    pub bytes: u64,
    pub kind: PinnedKind,
    from: Source,
}

enum Source {
    File(Arc<dyn DiskFile>),
    Bytes(Vec<u8>),
}

/// See the module text. Dropping it lets the files go.
pub struct PinnedCheckpoint {
    /// The tables hold exactly the rows up to here.
    pub at: Timestamp,
    /// The pinned log ends here.
    pub log_end: Timestamp,
    files: Vec<PinnedFile>,
    storage: Storage,
    cuts: u64,
}

impl Storage {
    /// Takes a checkpoint and holds it. Writes nothing else and blocks nobody but checkpoints and compactions, for as
    /// long as it takes to open the files.
    pub fn pin_checkpoint(&self) -> Result<PinnedCheckpoint> {
        self.checkpoint()?;
        let store = &self.store;
        let _no_checkpoint = store.checkpointing();
        let disk = &store.env.disk;
        let mut files = Vec::new();
        store.kv.pin(&mut |path| {
            let file = disk.open(&path, false)?;
            let (bytes, kind) = (file.len()?, PinnedKind::Table);
            files.push(PinnedFile { path, bytes, kind, from: Source::File(file) });
            Ok(())
        })?;
        // After the tables: a log may be ahead of them, never behind.
        let (log, local) = (&store.log.0.files, store.local_log.files());
        let cuts = cuts(log, local);
        for (path, file, bytes, first, last) in local.pin()? {
            let kind = PinnedKind::LocalLog;
            debug_assert!(first <= last);
            files.push(PinnedFile { path, bytes, kind, from: Source::File(file) });
        }
        let mut log_end = 0;
        for (path, file, bytes, first, last) in log.pin()? {
            let kind = PinnedKind::Oplog { first: Timestamp(first), last: Timestamp(last) };
            files.push(PinnedFile { path, bytes, kind, from: Source::File(file) });
            log_end = log_end.max(last);
        }
        if store.opts.keys.is_some() {
            let path = pando_encryption::store::PATH;
            let file = disk.open(path, false)?;
            let mut keys = vec![0; file.len()? as usize];
            file.read_at(0, &mut keys)?;
            let bytes = keys.len() as u64;
            files.push(PinnedFile {
                path: path.to_owned(),
                bytes,
                kind: PinnedKind::Keys,
                from: Source::Bytes(keys),
            });
        }
        let mut meta = store.meta().clone();
        // Who restores to a point in time cuts the log.
        meta.log_end = meta.log_end.min(meta.recovery);
        let from = meta.encode();
        files.push(PinnedFile {
            path: meta::PATH.to_owned(),
            bytes: from.len() as u64,
            kind: PinnedKind::Checkpoint,
            from: Source::Bytes(from),
        });
        let (at, log_end) = (Timestamp(meta.recovery), Timestamp(log_end));
        Ok(PinnedCheckpoint { at, log_end, files, storage: self.clone(), cuts })
    }
}

fn cuts(log: &LogFiles, local: &LogFiles) -> u64 {
    log.cuts() + local.cuts()
}

impl PinnedCheckpoint {
    /// In the order in which a copy should be made.
    pub fn files(&self) -> &[PinnedFile] {
        &self.files
    }
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }
    /// Up to `max` bytes of a file from `offset` on; empty at its end. May wait for the disk.
    pub fn read(&self, file: usize, offset: u64, max: usize) -> Result<Vec<u8>> {
        let Some(f) = self.files.get(file) else {
            return Err(Error::new(ErrorCode::BadValue, format!("the checkpoint has no file number {file}")));
        };
        let len = f.bytes.saturating_sub(offset).min(max as u64) as usize;
        let mut out = vec![0; len];
        match &f.from {
            Source::Bytes(bytes) => {
                let from = offset.min(f.bytes) as usize;
                out.copy_from_slice(&bytes[from..from + len]);
            }
            Source::File(file) => {
                if file.read_at(offset, &mut out)? != len {
                    return Err(self.spoilt(&f.path));
                }
            }
        }
        // Looked at afterwards: a cut during the read counts too.
        if cuts(&self.storage.store.log.0.files, self.storage.store.local_log.files()) != self.cuts {
            return Err(self.spoilt(&f.path));
        }
        Ok(out)
    }
    /// crc32c of a file as far as it is pinned. Reads all of it.
    pub fn checksum(&self, file: usize) -> Result<u32> {
        let (mut crc, mut offset) = (0, 0);
        loop {
            let part = self.read(file, offset, limits::PINNED_READ_BYTES)?;
            if part.is_empty() {
                return Ok(crc);
            }
            crc = crc32c::crc32c_append(crc, &part);
            offset += part.len() as u64;
        }
    }
    fn spoilt(&self, path: &str) -> Error {
        let text =
            format!("{path} is no longer what it was when the checkpoint was pinned: the log was cut back");
        Error::new(ErrorCode::InvalidSyncSource, text)
    }
}
