//! `pando restore`: a data folder from a backup, as of its end or of an earlier or later moment.
//!
//! ```text
//!   files copied and checked ─► log cut, or added to from a running server ─► log replayed ─► folder gets its name
//! ```
//! The work is done in `<dbpath>.restoring`; what is there in the end is whole.

pub(crate) mod moment;
mod oplog;

use crate::Command;
use crate::args::Args;
use crate::backup::manifest::{FILES, Manifest, NAME};
use crate::backup::{create, empty_folder, enough_space, parent, sync_folder, sync_folders, words};
use crate::encryption::{self, KEY_FILE};
use crate::progress::{Progress, size};
use crate::{login, tls};
use moment::shown;
use pando_base::{Namespace, Timestamp, limits};
use pando_catalog::{Catalog, OpenOptions, Uninterrupted};
use pando_encryption::Keys;
use pando_env::{Env, Log};
use pando_env_tokio::RealNet;
use pando_storage::{Storage, checksum_more};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) const COMMAND: Command =
    Command { name: "restore", help: "make a data folder from a backup, as of any moment", run };

const HELP: &str = "\
Usage: pando restore BACKUP --dbpath DIR [--until MOMENT] [--oplog-from HOST:PORT] [--keep-set] [--check]

Makes a data folder from what 'pando backup' wrote. Start a server on it as on any other.

  --dbpath DIR            the new data folder: it must not exist yet, or be empty
  --until MOMENT          as of the end of this moment: seconds, seconds:increment (a place in the oplog), or a date as
                          2026-11-22T02:03:04Z (the end of the backup)
  --oplog-from HOST:PORT  a running member that still has the oplog from the backup's end to MOMENT (without --until: to
                          its own end)
  --tls, --tlsCAFile ...  the member speaks TLS; the options of mongosh and of MongoDB's tools
  -u, -p, --authenticationDatabase ...  as whom to log in there; without -p it is asked for
  --keep-set              the folder stays a member of its replica set; otherwise it belongs to none. It follows at once,
                          and votes and can be elected when it holds what the set does (or after a forced reconfig)
  --encryptionKeyFile KEY the master key of an encrypted backup; the folder stays encrypted with it
  --check                 look at every document and index entry, too
";

fn run(args: &[String]) -> u8 {
    let wanted = || {
        Args::parse(args, &["dbpath", "until", "oplog-from", KEY_FILE], &["keep-set", "check"])
            .and_then(wanted)
    };
    crate::carry_out("restore", HELP, args, wanted, restore)
}

struct Wanted {
    backup: PathBuf,
    dbpath: PathBuf,
    until: Option<Timestamp>,
    oplog_from: Option<String>,
    keep_set: bool,
    check: bool,
    /// All of it: how the member is dialed.
    args: Args,
}

fn wanted(args: Args) -> Result<Wanted, String> {
    let [backup] = &args.rest[..] else { return Err("name one backup".to_owned()) };
    let backup = PathBuf::from(backup);
    let dbpath = args.get("dbpath").ok_or("--dbpath names the new data folder")?;
    let until = args.get("until").map(moment::parse).transpose()?;
    let keep_set = args.has("keep-set");
    if keep_set && until.is_some() {
        return Err(
            "a member cannot go back behind its set: --keep-set and --until do not go together".to_owned()
        );
    }
    Ok(Wanted {
        backup,
        dbpath: PathBuf::from(dbpath),
        until,
        oplog_from: args.get("oplog-from").map(str::to_owned),
        keep_set,
        check: args.has("check"),
        args,
    })
}

async fn restore(w: Wanted) -> Result<(), String> {
    if w.backup.is_file() || is_dump(&w.backup) {
        return Err(format!(
            "{} is a dump, not a backup: 'pando load' reads it into a server",
            w.backup.display()
        ));
    }
    let manifest = Manifest::load(&w.backup)?;
    reachable(&w, &manifest)?;
    empty_folder(&w.dbpath)?;
    let name = w.dbpath.file_name().ok_or("--dbpath names no folder")?.to_string_lossy();
    let partial = w.dbpath.with_file_name(format!("{name}.restoring"));
    // Left by an earlier attempt.
    if partial.exists() {
        std::fs::remove_dir_all(&partial).map_err(|e| words(&partial, &e))?;
    }
    let env =
        pando_env_tokio::env(&partial, Log::none(), RealNet::default()).map_err(|e| words(&partial, &e))?;
    let done = async {
        copy(&env, &manifest, &w.backup, &partial)?;
        let (env, keys) = encryption::opened(env.clone(), &w.args)?;
        fit_oplog(&tls::dialing(env.clone(), &w.args)?, keys.clone(), &w, &manifest).await?;
        open(&env, keys, &w).await
    };
    let done = done.await;
    drop(env);
    let end = match done {
        Ok(end) => end,
        Err(e) => {
            // The next attempt clears it away as well.
            let _ = std::fs::remove_dir_all(&partial);
            return Err(e);
        }
    };
    if w.dbpath.exists() {
        std::fs::remove_dir(&w.dbpath).map_err(|e| words(&w.dbpath, &e))?;
    }
    std::fs::rename(&partial, &w.dbpath).map_err(|e| words(&w.dbpath, &e))?;
    sync_folder(&parent(&w.dbpath))?;
    println!(
        "Restored {} to {}: everything up to {}.",
        size(manifest.bytes()),
        w.dbpath.display(),
        shown(end)
    );
    Ok(())
}

/// What 'pando dump' and mongodump write: folders of BSON files, no list of files.
fn is_dump(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let has_bson = |p: &Path| {
        let names = std::fs::read_dir(p).into_iter().flatten().filter_map(Result::ok).map(|e| e.file_name());
        names
            .map(|n| n.to_string_lossy().into_owned())
            .any(|n| n.ends_with(".bson") || n.ends_with(".bson.gz"))
    };
    !folder.join(NAME).exists() && entries.filter_map(Result::ok).any(|e| has_bson(&e.path()))
}

/// Can the moment be reached from this backup?
fn reachable(w: &Wanted, m: &Manifest) -> Result<(), String> {
    let Some(until) = w.until else { return Ok(()) };
    if until < m.checkpoint {
        return Err(format!(
            "the backup begins at {}, after {}: use an earlier one",
            shown(m.checkpoint),
            shown(until)
        ));
    }
    if until.secs() > m.oplog_end.secs() && w.oplog_from.is_none() {
        return Err(format!(
            "the backup ends at {}, before {}: name a member that has the oplog from there on (--oplog-from), or use a \
             later backup",
            shown(m.oplog_end),
            shown(until)
        ));
    }
    Ok(())
}

fn copy(env: &Env, m: &Manifest, backup: &Path, to: &Path) -> Result<(), String> {
    enough_space(env, to, m.bytes())?;
    let mut progress = Progress::new(env, "restore", m.bytes());
    let mut piece = vec![0; limits::BACKUP_READ_BYTES];
    for f in &m.files {
        let (from, to) = (backup.join(FILES).join(&f.path), to.join(&f.path));
        let mut source = std::fs::File::open(&from).map_err(|e| words(&from, &e))?;
        let mut copy = create(&to)?;
        let (mut crc32c, mut bytes) = (0, 0);
        loop {
            let n = source.read(&mut piece).map_err(|e| words(&from, &e))?;
            if n == 0 {
                break;
            }
            copy.write_all(&piece[..n]).map_err(|e| words(&to, &e))?;
            crc32c = checksum_more(crc32c, &piece[..n]);
            bytes += n as u64;
            progress.add(n as u64);
        }
        copy.sync_all().map_err(|e| words(&to, &e))?;
        if (bytes, crc32c) != (f.bytes, f.crc32c) {
            return Err(format!(
                "{} is damaged: it is not what {NAME} says it was when the backup was taken. Use another backup",
                from.display()
            ));
        }
    }
    let paths: Vec<PathBuf> = m.files.iter().map(|f| to.join(&f.path)).collect();
    sync_folders(to, paths.iter().map(|p| &**p))?;
    progress.finish();
    Ok(())
}

/// Makes the log end where it is wanted.
async fn fit_oplog(env: &Env, keys: Option<Arc<Keys>>, w: &Wanted, m: &Manifest) -> Result<(), String> {
    let storage = storage(env, keys)?;
    let log = storage.log();
    if let Some(until) = w.until.filter(|until| *until < log.last()) {
        return storage.cut_log(until).map_err(|e| e.to_string());
    }
    match &w.oplog_from {
        Some(host) => {
            oplog::add(env, log, (host, login::given(&w.args)?), w.until.unwrap_or(Timestamp::MAX)).await
        }
        None if log.last() < m.oplog_end => Err("the backup's oplog is shorter than it says".to_owned()),
        None => Ok(()),
    }
}

fn storage(env: &Env, keys: Option<Arc<Keys>>) -> Result<Storage, String> {
    let options = pando_storage::Options { replicated: true, keys, ..Default::default() };
    Storage::open(env.clone(), options).map_err(|e| format!("the backup cannot be opened: {e}"))
}

/// Replays the log and leaves a checkpoint. Returns where the data stand.
async fn open(env: &Env, keys: Option<Arc<Keys>>, w: &Wanted) -> Result<Timestamp, String> {
    let storage = storage(env, keys)?;
    eprintln!("replaying the oplog");
    let opened = Catalog::open(env.clone(), storage.clone(), OpenOptions { replset: true });
    let catalog = opened.map_err(|e| format!("the oplog cannot be replayed: {e}"))?;
    let end = storage.log().last();
    if w.check {
        for (ns, report) in catalog.validate_all(&Uninterrupted).await.map_err(|e| e.to_string())? {
            if let Some(error) = report.errors.first() {
                return Err(format!("{ns} is damaged: {error}. Use another backup"));
            }
        }
    }
    let done = if w.keep_set { catalog.note_restored() } else { forget_set(&catalog).await };
    done.map_err(|e| e.to_string())?;
    storage.set_stable(storage.last_committed());
    let done = catalog.checkpoint().and_then(|_| storage.log().flush_once());
    done.map_err(|e| format!("the data cannot be written: {e}"))?;
    Ok(end)
}

/// What makes a folder a member of a set. Its log stays: a new set goes on from there.
async fn forget_set(catalog: &Catalog) -> pando_base::Result<()> {
    for name in ["system.replset", "replset.election", "replset.initialSyncId", "system.rollback.id"] {
        catalog.delete_all(&Namespace::unchecked("local", name)).await?;
    }
    Ok(())
}
