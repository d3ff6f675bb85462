//! `pando decrypt`: a file of an encrypted data folder, as it would be without encryption. For rollback files, which people read.

use crate::Command;
use crate::args::Args;
use crate::backup::words;
use crate::encryption::{self, KEY_FILE};
use pando_base::limits;
use pando_env::{Env, Log};
use pando_env_tokio::RealNet;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(crate) const COMMAND: Command =
    Command { name: "decrypt", help: "read a rollback file of an encrypted data folder", run };

const HELP: &str = "\
Usage: pando decrypt FILE --dbpath DIR --encryptionKeyFile KEY --out OUT

Writes a file of an encrypted data folder as it would be without encryption, readable by you alone. The server may run.

  FILE                     its path within the data folder, as rollback/<uuid>/removed.<time>.bson
  --dbpath DIR             the data folder
  --encryptionKeyFile KEY  its master key
  --out OUT                the new file
";

struct Wanted {
    file: String,
    dbpath: PathBuf,
    out: PathBuf,
    args: Args,
}

fn run(args: &[String]) -> u8 {
    let wanted = || Args::parse(args, &["dbpath", "out|o", KEY_FILE], &[]).and_then(wanted);
    crate::carry_out("decrypt", HELP, args, wanted, decrypt)
}

fn wanted(args: Args) -> Result<Wanted, String> {
    let [file] = &args.rest[..] else { return Err("name one file".to_owned()) };
    let dbpath = PathBuf::from(args.get("dbpath").ok_or("--dbpath names the data folder")?);
    let out = PathBuf::from(args.get("out").ok_or("--out names the new file")?);
    let file =
        Path::new(file).strip_prefix(&dbpath).unwrap_or(Path::new(file)).to_string_lossy().into_owned();
    Ok(Wanted { file, dbpath, out, args })
}

async fn decrypt(w: Wanted) -> Result<(), String> {
    if !w.dbpath.is_dir() {
        return Err(format!("{} is not a data folder", w.dbpath.display()));
    }
    let env: Env =
        pando_env_tokio::env(&w.dbpath, Log::none(), RealNet::default()).map_err(|e| words(&w.dbpath, &e))?;
    let (env, keys) = encryption::opened(env, &w.args)?;
    if keys.is_none() {
        return Err("the data is not encrypted: read the file as it is".to_owned());
    }
    let of = w.dbpath.join(&w.file);
    let file = env.disk.open(&w.file, false).map_err(|e| words(&of, &e))?;
    let mut out = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&w.out);
    let out = out.as_mut().map_err(|e| words(&w.out, e))?;
    let (mut offset, mut piece) = (0, vec![0; limits::BACKUP_READ_BYTES]);
    loop {
        let got = file.read_at(offset, &mut piece).map_err(|e| words(&of, &e))?;
        if got == 0 {
            return out.sync_all().map_err(|e| words(&w.out, &e));
        }
        out.write_all(&piece[..got]).map_err(|e| words(&w.out, &e))?;
        offset += got as u64;
    }
}
