//! Reads the file of the key that members share.

use crate::secret_file;
use pando_auth::{ClusterKeys, Keyfile};
use pando_base::Error;
use pando_base::limits::KEYFILE_BYTES_MAX;
use pando_env::{Component, Log};
use std::path::Path;

/// The keys of the file that was given, if one was; the log tells why it cannot be used.
pub(crate) fn read_given(path: Option<&Path>, log: &Log) -> Result<Option<ClusterKeys>, Error> {
    let Some(path) = path.map(Path::to_owned) else { return Ok(None) };
    let log = log.clone();
    let reads = move || {
        read(&path).inspect_err(|e| {
            log.info(Component::Access, 20254, "Read security file failed", |a| {
                a.data("error", &e);
            });
        })
    };
    ClusterKeys::read(Box::new(reads)).map(Some)
}

fn read(path: &Path) -> Result<Keyfile, Error> {
    let text = secret_file::read(path, KEYFILE_BYTES_MAX)?;
    Keyfile::parse(&path.display().to_string(), &text)
}
