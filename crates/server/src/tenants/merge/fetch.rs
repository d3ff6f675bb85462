//! A donor's files are copied to this member, piece by piece, each with its sum.

use super::Taken;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_env::Env;
use pando_rpc::{Pool, Retry};
use pando_storage::is_foreign_wanted;
use pando_storage::staging::Staging;
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(limits::CLONER_CALL_SECS_MAX);

/// A member of another set that holds a checkpoint still.
pub(crate) struct Donor<'a> {
    pub(crate) env: &'a Env,
    /// Its connections log in as members do: the two sets have a keyfile, or an authority, in common.
    pub(crate) pool: &'a Pool,
    pub(crate) host: &'a str,
    /// What `_openBackup` answered.
    pub(crate) backup: i64,
}

/// A file, by its number there.
struct File {
    number: i32,
    path: String,
    bytes: u64,
}

fn unusable(text: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::InvalidSyncSource, format!("the donor's files cannot be copied: {text}"))
}

/// Copies tables and checkpoint of the donor, of its log nothing. What an earlier attempt left goes, and so does what this one has copied
/// when it fails. Whoever gives up waiting leaves it for the next attempt, or the next start, to remove.
pub(crate) async fn fetch(donor: &Donor<'_>, taken: &Taken) -> Result<()> {
    let done = copy_all(donor, taken).await;
    if done.is_err() {
        let disk = donor.env.disk.clone();
        donor.offload(taken, move || pando_storage::discard_foreign(&*disk)).await?;
    }
    done
}

async fn copy_all(donor: &Donor<'_>, taken: &Taken) -> Result<()> {
    let mut list = donor.question();
    list.bool("files", true);
    let list = donor.ask(&list.finish()).await?;
    if list.get("encrypted").is_some_and(|v| v.is_truthy()) {
        return Err(Error::new(ErrorCode::InvalidOptions, "files are not copied where data is encrypted"));
    }
    let files = Arc::new(files_of(&list)?);
    check_room(donor.env, files.iter().map(|f| f.bytes).sum())?;
    let (disk, names) = (donor.env.disk.clone(), files.clone());
    let staging =
        donor.offload(taken, move || Staging::begin_foreign(disk, names.iter().map(|f| f.path.as_str())));
    let staging = Arc::new(staging.await?);
    for file in &*files {
        donor.copy(taken, &staging, file).await?;
    }
    let Some(staging) = Arc::into_inner(staging) else {
        return Err(Error::internal("a copy of another set's files goes on"));
    };
    let whole: Vec<(String, u64)> = files.iter().map(|f| (f.path.clone(), f.bytes)).collect();
    donor.offload(taken, move || staging.complete_foreign(&whole)).await
}

/// The files, and tables of ours with the same rows; a disk that is full would end this member.
fn check_room(env: &Env, bytes: u64) -> Result<()> {
    let (free, needed) =
        (env.disk.free_bytes()?, bytes.saturating_mul(2).saturating_add(limits::FOREIGN_DISK_RESERVE_BYTES));
    if free >= needed {
        return Ok(());
    }
    let text = format!("taking the donor's tables in needs {needed} bytes of the disk, and {free} are free");
    Err(Error::new(ErrorCode::OutOfDiskSpace, text))
}

fn files_of(list: &RawDoc) -> Result<Vec<File>> {
    let bad = || unusable("its list of files cannot be read");
    let files = list.get("files").and_then(|v| v.as_array()).ok_or_else(bad)?;
    let mut wanted = Vec::new();
    for (number, e) in files.iter().enumerate() {
        let f = e.value().as_doc().ok_or_else(bad)?;
        let path = f.get("path").and_then(|v| v.as_str()).ok_or_else(bad)?;
        let bytes = f.get("bytes").and_then(|v| v.as_i64()).filter(|n| *n >= 0).ok_or_else(bad)?;
        if is_foreign_wanted(path) {
            wanted.push(File { number: number as i32, path: path.to_owned(), bytes: bytes as u64 });
        }
    }
    Ok(wanted)
}

impl Donor<'_> {
    fn question(&self) -> DocBuilder {
        let mut b = DocBuilder::new();
        b.i64("_readBackup", self.backup).str("$db", "admin");
        b
    }
    /// Again after a while where the donor cannot be reached: much may have been copied.
    async fn ask(&self, question: &RawDoc) -> Result<DocBuf> {
        let mut tries = 1;
        loop {
            let failure = match self.pool.call(self.host, question, Retry::Idempotent, LIMIT).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            // Started again, or it has let the files go: nothing brings them back.
            if failure.code() == ErrorCode::CursorNotFound || tries == limits::FOREIGN_READ_TRIES {
                return Err(failure.error.context(format_args!("{} does not give its files", self.host)));
            }
            tries += 1;
            self.env.clock.sleep(Duration::from_millis(limits::FOREIGN_READ_PAUSE_MS)).await;
        }
    }
    /// Work on the disk; it ends by itself when nobody waits for it any more, and keeps others from beginning meanwhile.
    async fn offload<T: Send + 'static>(
        &self,
        taken: &Taken,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let taken = taken.clone();
        let done = self.env.offload(move || {
            let _taken = taken;
            work()
        });
        done.await.unwrap_or_else(|| Err(Error::internal("copying another set's files panicked")))
    }

    async fn copy(&self, taken: &Taken, staging: &Arc<Staging>, file: &File) -> Result<()> {
        let mut offset = 0;
        while offset < file.bytes {
            let mut question = self.question();
            question.i32("file", file.number).i64("offset", offset as i64);
            let piece = self.ask(&question.finish()).await?;
            let wanted = (file.bytes - offset).min(limits::BACKUP_READ_BYTES as u64);
            let (staging, path) = (staging.clone(), file.path.clone());
            self.offload(taken, move || store(&staging, &path, offset, wanted, &piece)).await?;
            offset += wanted;
        }
        let (staging, path, bytes) = (staging.clone(), file.path.clone(), file.bytes);
        self.offload(taken, move || staging.end_file(&path, bytes)).await
    }
}

fn store(staging: &Staging, path: &str, offset: u64, wanted: u64, reply: &RawDoc) -> Result<()> {
    let Some(Value::Binary { bytes, .. }) = reply.get("data") else {
        return Err(unusable(format_args!("nothing was sent of {path}")));
    };
    let sum = reply.get("crc32c").and_then(|v| v.as_i64());
    if bytes.len() as u64 != wanted || sum != Some(i64::from(pando_storage::checksum(bytes))) {
        return Err(unusable(format_args!(
            "bytes of {path} from {offset} on did not arrive as they were sent"
        )));
    }
    staging.write(path, offset, bytes)
}
