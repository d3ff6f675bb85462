//! Initial sync by copying a source's files (R-IS-9).
//!
//! ```text
//!   source: checkpoint pinned ──────────────── goes on ───────────────────────────►
//!   here:      chunks of files, several under way, each with its checksum ─► staged, synced ─► start again ─► follow
//! ```
//! The files are what a crash of the source would have left: opening them replays its log up to where it was pinned, and
//! from there this node follows like any other. Until the last file lies there this node is as empty as before, so
//! nothing has to be undone. A cut connection costs the chunk that was on its way.

use crate::data::background_sync::probe;
use crate::data::patience::{Patience, stopped};
use crate::data::sync_status::SyncStatus;
use crate::data::{Deps, Stop};
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_bson::{DocBuf, RawDoc, Value, doc};
use pando_rpc::{Failure, Retry};
use pando_storage::staging::Staging;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(limits::CLONER_CALL_SECS_MAX);

pub(crate) fn method(by_files: bool) -> &'static str {
    if by_files { "fileCopyBased" } else { "logical" }
}
/// What `initialSyncMethod` asks for.
pub(crate) fn is_wanted(deps: &Deps) -> Result<bool> {
    let params = &deps.instance.params;
    let value = params.find("initialSyncMethod").map(|row| params.get(&row));
    match value.as_ref().and_then(|v| v.as_str()) {
        // The files of another member have its indexes.
        Some("fileCopyBased") => Ok(deps.catalog.makes_indexes()),
        Some("logical") | None => Ok(false),
        Some(other) => {
            Err(Error::new(ErrorCode::InvalidOptions, format!("unknown initialSyncMethod '{other}'")))
        }
    }
}

pub(crate) struct FileCopy<'a> {
    pub(crate) deps: &'a Deps,
    pub(crate) stop: &'a Stop,
    pub(crate) source: &'a str,
    pub(crate) status: &'a SyncStatus,
}

/// A file of the source, by its number there.
struct File {
    number: i32,
    path: String,
    bytes: u64,
    left: AtomicU64,
}

/// What the workers of a copy share.
struct Work {
    deps: Deps,
    stop: Stop,
    source: String,
    status: SyncStatus,
    pin: i64,
    files: Vec<File>,
    staging: Staging,
    /// (index of the file, offset), to be copied.
    todo: Mutex<VecDeque<(usize, u64)>>,
    failed: Mutex<Option<Error>>,
}

fn unusable(text: String) -> Error {
    Error::new(ErrorCode::InvalidSyncSource, text)
}

impl FileCopy<'_> {
    pub(crate) async fn run(&self) -> Result<()> {
        let pinned = self.pin().await?;
        let id = pinned.get("backup").and_then(|v| v.as_i64()).unwrap_or(0);
        let done = self.copy(&pinned, id).await;
        let unpin = doc! { "_closeBackup": id, "$db": "admin" }.to_raw();
        // If it does not hear, the pin ends by itself.
        let _ = self.deps.pool.call(self.source, &unpin, Retry::Idempotent, LIMIT).await;
        done
    }

    async fn pin(&self) -> Result<DocBuf> {
        let ask = doc! { "_openBackup": 1, "$db": "admin" }.to_raw();
        // Another pin would hold the files for nobody.
        let call = self.deps.pool.call(self.source, &ask, Retry::NotIdempotent, LIMIT);
        let reply = self.stop.unless_asked(call).await.ok_or_else(stopped)?;
        reply.map_err(|f| match f.code() {
            ErrorCode::CommandNotFound
            | ErrorCode::NotPrimaryOrSecondary
            | ErrorCode::ConflictingOperationInProgress => {
                unusable(format!("{} cannot be copied from by files: {}", self.source, f.error.message))
            }
            _ => f.error,
        })
    }

    async fn copy(&self, pinned: &RawDoc, pin: i64) -> Result<()> {
        // Each member has keys of its own, and a folder is encrypted as a whole or not at all.
        let theirs = pinned.get("encrypted").is_some_and(|v| v.is_truthy());
        if theirs || self.deps.catalog.storage().is_encrypted() {
            return Err(unusable("files are not copied where data is encrypted".to_owned()));
        }
        let files = files_of(pinned)?;
        self.status.files(files.iter().map(|f| f.bytes).sum());
        let disk = self.deps.env.disk.clone();
        let staging = Staging::begin(disk, files.iter().map(|f| f.path.as_str()))?;
        // What an attempt before this one had completed lies there no more.
        self.deps.upper.own_goes_on();
        let mut todo = VecDeque::new();
        for (i, f) in files.iter().enumerate() {
            todo.extend((0..f.bytes.max(1)).step_by(limits::BACKUP_READ_BYTES).map(|offset| (i, offset)));
        }
        let work = Arc::new(Work {
            deps: self.deps.clone(),
            stop: self.stop.clone(),
            source: self.source.to_owned(),
            status: self.status.clone(),
            pin,
            files,
            staging,
            todo: Mutex::new(todo),
            failed: Mutex::default(),
        });
        let workers = Stop::default();
        for _ in 0..limits::FILE_COPY_STREAMS {
            let work = work.clone();
            workers.spawn(&self.deps.env, "file copy", async move { work.run().await });
        }
        workers.wait_ended().await;
        let Some(work) = Arc::into_inner(work) else { return Err(Error::internal("a file copy goes on")) };
        if let Some(e) = work.failed.into_inner().unwrap_or_else(poisoned) {
            return Err(e);
        }
        self.check_source(pinned).await?;
        // As late as can be: a vote given in the hours of a copy must outlive it. From here to the next start there is none.
        let identity = self.deps.upper.local_identity()?;
        self.deps.hold("initialSyncHangAfterKeepingOwnState", self.stop).await;
        let done = self
            .deps
            .env
            .offload(move || {
                work.staging.keep(identity.as_bytes())?;
                work.staging.complete()
            })
            .await;
        done.unwrap_or_else(|| Err(Error::internal("the end of a file copy panicked")))
    }

    /// What was written meanwhile must still be in its log, or this node would be too stale from the start.
    async fn check_source(&self, pinned: &RawDoc) -> Result<()> {
        let end = match pinned.get("oplogEnd") {
            Some(Value::Timestamp(ts)) => ts,
            _ => Timestamp::ZERO,
        };
        let oldest = probe(self.deps, self.source).await?.oldest.ts;
        if oldest > end {
            return Err(Error::new(
                ErrorCode::OplogStartMissing,
                format!("the sync source's oplog begins at {oldest} by now, the copied one ends at {end}"),
            ));
        }
        Ok(())
    }
}

/// All that a start needs: of the log, what the checkpoint has not, what the sessions that it keeps do not know (without
/// them, as much of the past as retries may ask for), and what a majority had not.
fn files_of(pinned: &RawDoc) -> Result<Vec<File>> {
    let bad = || unusable("the sync source's list of files cannot be read".to_owned());
    let Some(Value::Timestamp(at)) = pinned.get("checkpoint") else { return Err(bad()) };
    let from = match (pinned.get("sessionsUpto"), pinned.get("committed")) {
        (Some(Value::Timestamp(upto)), Some(Value::Timestamp(committed))) => at.min(upto).min(committed),
        _ => Timestamp::new(at.secs().saturating_sub(limits::INITIAL_SYNC_HISTORY_SECS), 0),
    };
    let list = pinned.get("files").and_then(|v| v.as_array()).ok_or_else(bad)?;
    let mut files = Vec::new();
    for (number, e) in list.iter().enumerate() {
        let f = e.value().as_doc().ok_or_else(bad)?;
        let path = f.get("path").and_then(|v| v.as_str()).ok_or_else(bad)?.to_owned();
        let bytes = f.get("bytes").and_then(|v| v.as_i64()).ok_or_else(bad)? as u64;
        if matches!(f.get("oplogUpTo"), Some(Value::Timestamp(last)) if last < from) {
            continue;
        }
        let left = AtomicU64::new(bytes.div_ceil(limits::BACKUP_READ_BYTES as u64).max(1));
        files.push(File { number: number as i32, path, bytes, left });
    }
    Ok(files)
}

impl Work {
    async fn run(self: &Arc<Self>) {
        while let Some((file, offset)) = self.next() {
            if let Err(e) = self.chunk(file, offset).await {
                self.failed.lock().unwrap_or_else(poisoned).get_or_insert(e);
                return;
            }
        }
    }
    fn next(&self) -> Option<(usize, u64)> {
        if self.failed.lock().unwrap_or_else(poisoned).is_some() {
            return None;
        }
        self.todo.lock().unwrap_or_else(poisoned).pop_front()
    }

    async fn chunk(self: &Arc<Self>, file: usize, offset: u64) -> Result<()> {
        let patience =
            Patience { deps: &self.deps, stop: &self.stop, source: &self.source, status: &self.status };
        let reply = patience.trying(|| self.read(file, offset)).await?;
        let this = self.clone();
        let stored = self.deps.env.offload(move || this.store(file, offset, &reply)).await;
        stored.unwrap_or_else(|| Err(Error::internal("storing a copied file panicked")))
    }
    async fn read(&self, file: usize, offset: u64) -> Result<DocBuf, Failure> {
        self.deps.hold("initialSyncHangCopyingFiles", &self.stop).await;
        let ask = doc! {
            "_readBackup": self.pin, "file": self.files[file].number, "offset": offset as i64, "$db": "admin"
        };
        let (ask, pool) = (ask.to_raw(), &self.deps.pool);
        pool.call(&self.source, &ask, Retry::Idempotent, LIMIT).await.map_err(|f| match f.code() {
            // The source was started again, or let the files go: asking once more brings them back as little as waiting.
            ErrorCode::CursorNotFound => {
                let text = format!("{} holds the files no more: {}", self.source, f.error.message);
                Failure { error: Error::new(ErrorCode::InitialSyncFailure, text), ..f }
            }
            _ => f,
        })
    }
    /// Checks a chunk and writes it; the last one of a file brings the file to the disk.
    fn store(&self, file: usize, offset: u64, reply: &RawDoc) -> Result<()> {
        let f = &self.files[file];
        let Some(Value::Binary { bytes, .. }) = reply.get("data") else {
            return Err(unusable(format!("the sync source sent nothing of {}", f.path)));
        };
        let wanted = (f.bytes - offset).min(limits::BACKUP_READ_BYTES as u64);
        let crc = reply.get("crc32c").and_then(|v| v.as_i64());
        if bytes.len() as u64 != wanted || crc != Some(i64::from(pando_storage::checksum(bytes))) {
            return Err(Error::new(
                ErrorCode::InitialSyncFailure,
                format!("bytes of {} from {offset} on did not arrive as they were sent", f.path),
            ));
        }
        self.staging.write(&f.path, offset, bytes)?;
        self.status.file_bytes(wanted);
        if f.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.staging.end_file(&f.path, f.bytes)?;
        }
        Ok(())
    }
}
