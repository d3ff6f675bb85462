//! Encryption at rest: the master keys are read and the folder's key store is opened before anything else looks at the folder.

use pando_base::limits::ENCRYPTION_KEYFILE_BYTES_MAX;
use pando_base::{Error, Result};
use pando_encryption::store::{self, Wanted};
use pando_encryption::{KeyFiles, Keys, MasterKey};
use pando_env::{Component, Env, Log};
use pando_process::secret_file;
use pando_shell::options::encryption::Encryption;
use std::path::Path;
use std::sync::Arc;

/// The master keys of the files that were given.
pub(crate) fn read_given(given: Option<&Encryption>, log: &Log) -> Result<Option<KeyFiles>> {
    let Some(given) = given else { return Ok(None) };
    let keys = || {
        let replaced = given.replaced_key_file.as_deref().map(read_key).transpose()?;
        let path = given.key_file.display().to_string();
        Ok(KeyFiles { path, key: read_key(&given.key_file)?, replaced })
    };
    let told = |e: &Error| {
        log.info(Component::Storage, 9100081, "An encryption key file cannot be used", |a| {
            a.data("error", e);
        });
    };
    keys().inspect_err(told).map(Some)
}

/// The master key of a file. `BadValue` when it cannot be read, holds something else, or others may read it.
pub fn read_key(path: &Path) -> Result<MasterKey> {
    let text = secret_file::read(path, ENCRYPTION_KEYFILE_BYTES_MAX)?;
    MasterKey::parse(&path.display().to_string(), &text)
}

/// The data keys of the folder; a folder of the other kind is refused.
pub(crate) fn open(env: &Env, masters: Option<&KeyFiles>, new_data_key: bool) -> Result<Option<Arc<Keys>>> {
    let Some(masters) = masters else {
        store::refuse_encrypted(&*env.disk)?;
        return Ok(None);
    };
    let wanted = Wanted { new_data_key, now_ms: env.clock.wall_ms().unsigned_abs() };
    let opened = store::open(&*env.disk, masters, env.rng.clone(), wanted)?;
    let status = opened.keys.status();
    env.log.info(Component::Storage, 9100082, "The data folder is encrypted", |a| {
        a.str("cipher", status.cipher)
            .str("masterKey", &status.master_key_id)
            .u64("dataKeys", status.data_keys as u64)
            .bool("new", opened.is_new);
    });
    if let Some(replaced) = &opened.replaced {
        env.log.info(Component::Storage, 9100083, "The master key was replaced", |a| {
            a.str("old", replaced).str("new", &status.master_key_id);
        });
    }
    Ok(Some(opened.keys))
}
