//! Data folders and backups that are encrypted: opened with the key file that was named.

use crate::args::Args;
use pando_encryption::disk::SealedDisk;
use pando_encryption::{KeyFiles, Keys, store};
use pando_env::Env;
use pandod::encryption::read_key;
use std::path::Path;
use std::sync::Arc;

/// The option that names the master key.
pub(crate) const KEY_FILE: &str = "encryptionKeyFile";

/// The world with the folder's disk, and the keys of what lies there; neither changes where nothing is encrypted.
pub(crate) fn opened(env: Env, args: &Args) -> Result<(Env, Option<Arc<Keys>>), String> {
    let (given, encrypted) = (args.get(KEY_FILE), env.disk.exists(store::PATH));
    let path = match (given, encrypted) {
        (None, false) => return Ok((env, None)),
        (Some(_), false) => return Err(format!("the data is not encrypted: leave --{KEY_FILE} away")),
        (None, true) => {
            return Err(format!("the data is encrypted: name its master key (--{KEY_FILE} FILE)"));
        }
        (Some(path), true) => path,
    };
    let key = read_key(Path::new(path)).map_err(|e| e.message.to_string())?;
    let masters = KeyFiles { path: path.to_owned(), key, replaced: None };
    let keys = store::look(&*env.disk, &masters, env.rng.clone()).map_err(|e| e.message.to_string())?;
    Ok((SealedDisk::around(env, keys.clone()), Some(keys)))
}
