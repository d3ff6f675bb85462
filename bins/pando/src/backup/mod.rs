//! `pando backup`: a copy of all data as of one moment, while work goes on.
//!
//! ```text
//!   checkpoint held still ─► every file copied, summed up ─► list of files, written last
//! ```
//! The copy holds the tables as of a checkpoint and the log behind it; `pando restore` replays the log.

pub(crate) mod manifest;
mod source;

use crate::Command;
use crate::args::Args;
use crate::encryption::KEY_FILE;
use crate::progress::{Progress, size};
use crate::{login, tls};
use manifest::{FILES, File, Manifest};
use pando_base::limits;
use pando_env::{Env, Log};
use pando_env_tokio::{RealNet, process};
use pando_storage::checksum_more;
use source::Source;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) const COMMAND: Command =
    Command { name: "backup", help: "copy all data of a server, while it runs", run };

const HELP: &str = "\
Usage: pando backup --out DIR [--host HOST:PORT | --dbpath DIR]

Copies the files of one checkpoint and the oplog behind it into a new folder. Reads and writes go on meanwhile.
'pando restore' makes a data folder of it, also as of an earlier moment.

  --out DIR         the backup: a folder that does not exist yet, or is empty
  --host HOST:PORT  a running server, any member of a set (127.0.0.1:27017)
  --tls, --tlsCAFile ... it speaks TLS; the options of mongosh and of MongoDB's tools
  -u, -p, --authenticationDatabase ...  as whom to log in (who may read everything: the role backup, or root); without -p it is asked for
  --dbpath DIR      the data folder of a server that does not run
  --encryptionKeyFile KEY  with --dbpath: the master key of an encrypted folder

A backup of encrypted data is encrypted as well: keep the master key, 'pando restore' needs it.
";

fn run(args: &[String]) -> u8 {
    let wanted = || Args::parse(args, &["out|o", "host", "dbpath", KEY_FILE], &[]).and_then(checked);
    crate::carry_out("backup", HELP, args, wanted, backup)
}

fn checked(args: Args) -> Result<Args, String> {
    match () {
        () if !args.has("out") => Err("--out names the folder for the backup".to_owned()),
        () if args.has("host") && args.has("dbpath") => {
            Err("either --host (a running server) or --dbpath (a stopped one)".to_owned())
        }
        () if args.has(KEY_FILE) && !args.has("dbpath") => {
            Err(format!("--{KEY_FILE} goes together with --dbpath: a running server knows its key"))
        }
        () if !args.rest.is_empty() => Err(format!("'{}' is not an option", args.rest[0])),
        () => Ok(args),
    }
}

async fn backup(args: Args) -> Result<(), String> {
    let out = PathBuf::from(args.get("out").unwrap_or_default());
    empty_folder(&out)?;
    let env = pando_env_tokio::env(&out, Log::none(), RealNet::default()).map_err(|e| words(&out, &e))?;
    let env = tls::dialing(env, &args)?;
    let mut source = match args.get("dbpath") {
        Some(dbpath) => Source::folder(Path::new(dbpath), &args)?,
        None => {
            Source::server(&env, args.get("host").unwrap_or("127.0.0.1:27017"), login::given(&args)?).await?
        }
    };
    let copied = copy(&env, &mut source, &out).await;
    let (host, version) = (source.host.clone(), source.version.clone());
    let (checkpoint, oplog_end) = (source.checkpoint, source.oplog_end);
    source.close().await;
    let made = env.clock.wall_ms();
    let manifest = Manifest { host, version, made, checkpoint, oplog_end, files: copied? };
    let paths: Vec<PathBuf> = manifest.files.iter().map(|f| out.join(FILES).join(&f.path)).collect();
    sync_folders(&out, paths.iter().map(|p| &**p))?;
    manifest.save(&out).map_err(|e| words(&out, &e))?;
    println!(
        "Backed up {} in {} files to {}: everything up to {}.",
        size(manifest.bytes()),
        manifest.files.len(),
        out.display(),
        crate::restore::moment::shown(oplog_end)
    );
    Ok(())
}

/// Error unless there is nothing at `path`, or an empty folder.
pub(crate) fn empty_folder(path: &Path) -> Result<(), String> {
    match std::fs::read_dir(path) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(format!("{} is not empty: name a new folder", path.display())),
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(words(path, &e)),
    }
}

/// Error unless `bytes` fit on the disk of `env`'s folder.
pub(crate) fn enough_space(env: &Env, path: &Path, bytes: u64) -> Result<(), String> {
    let free = env.disk.free_bytes().map_err(|e| words(path, &e))?;
    if free >= bytes + limits::BACKUP_SPARE_BYTES {
        return Ok(());
    }
    let (wanted, free) = (size(bytes + limits::BACKUP_SPARE_BYTES), size(free));
    Err(format!(
        "{} has {free} left, and {wanted} are needed: make room or name another disk",
        path.display()
    ))
}

pub(crate) fn words(path: &Path, e: &std::io::Error) -> String {
    format!("{}: {}", path.display(), process::words(e))
}

async fn copy(env: &Env, source: &mut Source, out: &Path) -> Result<Vec<File>, String> {
    let total = source.files.iter().map(|(_, bytes)| bytes).sum();
    enough_space(env, out, total)?;
    let mut progress = Progress::new(env, "backup", total);
    let mut files = Vec::new();
    for i in 0..source.files.len() {
        let (path, bytes) = source.files[i].clone();
        let to = out.join(FILES).join(&path);
        let mut file = create(&to)?;
        let (mut crc32c, mut offset) = (0, 0);
        while offset < bytes {
            let piece = source.read(i, offset).await?;
            if piece.is_empty() {
                return Err(format!("{path} ends at {offset} instead of {bytes} bytes"));
            }
            file.write_all(&piece).map_err(|e| words(&to, &e))?;
            crc32c = checksum_more(crc32c, &piece);
            offset += piece.len() as u64;
            progress.add(piece.len() as u64);
        }
        file.sync_all().map_err(|e| words(&to, &e))?;
        files.push(File { path, bytes, crc32c });
    }
    progress.finish();
    Ok(files)
}

/// Makes the names of files below `root` durable, and its own: a synced file whose folder's name is lost is lost too.
pub(crate) fn sync_folders<'a>(root: &Path, files: impl Iterator<Item = &'a Path>) -> Result<(), String> {
    let mut folders = BTreeSet::from([root.to_owned()]);
    for file in files {
        let above = file.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
        folders.extend(above.map(Path::to_owned));
    }
    // What lies in a folder before its own name.
    for folder in folders.iter().rev() {
        sync_folder(folder)?;
    }
    sync_folder(&parent(root))
}
pub(crate) fn sync_folder(folder: &Path) -> Result<(), String> {
    std::fs::File::open(folder).and_then(|f| f.sync_all()).map_err(|e| words(folder, &e))
}
pub(crate) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A new file with the folders above it.
pub(crate) fn create(path: &Path) -> Result<std::fs::File, String> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::File::create_new(path)).map_err(|e| words(path, &e))
}
