//! Where the files come from: a server that runs, over the wire, or the data folder of one that does not.

use crate::args::Args;
use crate::encryption;
use pando_base::{Timestamp, limits};
use pando_bson::{Document, RawDoc, Value, doc};
use pando_env::{Env, Log};
use pando_env_tokio::RealNet;
use pando_env_tokio::lock::DataLock;
use pando_rpc::{Connection, LoginAs, Options};
use pando_storage::staging::checked_path;
use pando_storage::{PinnedCheckpoint, Storage, checksum};
use std::path::Path;
use std::time::Duration;

const CALL: Duration = Duration::from_millis(limits::BACKUP_CALL_MS);

enum Origin {
    Server { connection: Connection, backup: i64 },
    Folder { pin: PinnedCheckpoint, lock: DataLock },
}

pub(crate) struct Source {
    origin: Origin,
    pub(crate) host: String,
    pub(crate) version: String,
    pub(crate) checkpoint: Timestamp,
    pub(crate) oplog_end: Timestamp,
    /// Path and length.
    pub(crate) files: Vec<(String, u64)>,
}

impl Source {
    pub(crate) async fn server(env: &Env, host: &str, login: LoginAs) -> Result<Source, String> {
        let options = Options { name: "pando backup", login, ..Options::default() };
        let connecting = Connection::connect(env, host, &options).await;
        let mut connection = connecting.map_err(|f| format!("{host} cannot be reached: {f}"))?;
        let command = doc! { "_openBackup": 1, "$db": "admin" }.to_raw();
        let reply = connection.call(&command, CALL).await;
        let reply = reply.map_err(|f| format!("{host} does not give a backup: {f}"))?;
        let malformed = || format!("{host} answers with something else than a backup");
        let text = |name| reply.get(name).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        let at = |name| match reply.get(name) {
            Some(Value::Timestamp(ts)) => Ok(ts),
            _ => Err(malformed()),
        };
        let mut files = Vec::new();
        for e in reply.get("files").and_then(|v| v.as_array()).ok_or_else(malformed)? {
            let f = e.value().as_doc().ok_or_else(malformed)?;
            let path = f.get("path").and_then(|v| v.as_str()).ok_or_else(malformed)?;
            let path = checked_path(path).map_err(|_| malformed())?.to_owned();
            files.push((path, f.get("bytes").and_then(|v| v.as_i64()).ok_or_else(malformed)? as u64));
        }
        let backup = reply.get("backup").and_then(|v| v.as_i64()).ok_or_else(malformed)?;
        let (checkpoint, oplog_end) = (at("checkpoint")?, at("oplogEnd")?);
        let (host, version) = (text("host"), text("version"));
        Ok(Source {
            origin: Origin::Server { connection, backup },
            host,
            version,
            checkpoint,
            oplog_end,
            files,
        })
    }

    /// The folder is locked meanwhile: no server starts on it.
    pub(crate) fn folder(dbpath: &Path, args: &Args) -> Result<Source, String> {
        if !dbpath.join("journal").is_dir() {
            return Err(format!("{} is not a data folder", dbpath.display()));
        }
        let lock = DataLock::acquire(dbpath)
            .map_err(|e| format!("{}: name the running server instead (--host HOST:PORT)", e.0))?;
        let pinned = pando_env_tokio::env(dbpath, Log::none(), RealNet::default())
            .map_err(|e| e.to_string())
            .and_then(|env| encryption::opened(env, args))
            .and_then(|(env, keys)| {
                let options = pando_storage::Options { keys, ..Default::default() };
                Storage::open(env, options).map_err(|e| e.to_string())
            })
            .and_then(|storage| storage.pin_checkpoint().map_err(|e| e.to_string()));
        match pinned {
            Ok(pin) => Ok(Source {
                host: dbpath.display().to_string(),
                version: pando_server_version(),
                checkpoint: pin.at,
                oplog_end: pin.log_end,
                files: pin.files().iter().map(|f| (f.path.clone(), f.bytes)).collect(),
                origin: Origin::Folder { pin, lock },
            }),
            Err(e) => {
                lock.give_back();
                Err(format!("{} cannot be opened: {e}", dbpath.display()))
            }
        }
    }

    /// A piece of a file from `offset` on, as it left the other side.
    pub(crate) async fn read(&mut self, file: usize, offset: u64) -> Result<Vec<u8>, String> {
        let path = &self.files[file].0;
        match &mut self.origin {
            Origin::Folder { pin, .. } => {
                pin.read(file, offset, limits::BACKUP_READ_BYTES).map_err(|e| format!("{path}: {e}"))
            }
            Origin::Server { connection, backup } => {
                let command = doc! {
                    "_readBackup": *backup, "file": file as i64, "offset": offset as i64, "$db": "admin"
                };
                let reply = connection.call(&command.to_raw(), CALL).await;
                piece(reply.map_err(|f| format!("{path} cannot be read: {f}"))?)
                    .ok_or_else(|| format!("{path} was damaged on its way"))
            }
        }
    }

    pub(crate) async fn close(self) {
        match self.origin {
            Origin::Folder { pin, lock } => {
                drop(pin);
                lock.give_back();
            }
            Origin::Server { mut connection, backup } => {
                let command: Document = doc! { "_closeBackup": backup, "$db": "admin" };
                // The server gives it up by itself after a while.
                let _ = connection.call(&command.to_raw(), CALL).await;
            }
        }
    }
}

fn piece(reply: &RawDoc) -> Option<Vec<u8>> {
    let Value::Binary { bytes, .. } = reply.get("data")? else { return None };
    let crc = reply.get("crc32c")?.as_i64()?;
    (i64::from(checksum(bytes)) == crc).then(|| bytes.to_vec())
}

fn pando_server_version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
