//! Reads the file of the key that members share. It must be nobody else's to read.

use pando_auth::{ClusterKeys, Keyfile};
use pando_base::limits::KEYFILE_BYTES_MAX;
use pando_base::{Error, ErrorCode};
use pando_env::{Component, Log};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Permissions of the group and of others; whoever has root's files by its group may read them.
const OTHERS: u32 = 0o077;

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
    let name = path.display();
    let wrong = |text: String| Error::new(ErrorCode::BadValue, text);
    let unreadable = |e: std::io::Error| wrong(format!("Error reading file {name}: {e}"));
    let file = File::open(path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    let roots_group = meta.uid() == 0 && meta.permissions().mode() & (OTHERS & !0o040) == 0;
    if meta.permissions().mode() & OTHERS != 0 && !roots_group {
        return Err(wrong(format!("permissions on {name} are too open: chmod 600 it")));
    }
    let mut text = String::new();
    file.take(KEYFILE_BYTES_MAX as u64 + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() > KEYFILE_BYTES_MAX {
        return Err(wrong(format!("{name} has more than {KEYFILE_BYTES_MAX} bytes, which is no keyfile")));
    }
    let parsed = Keyfile::parse(&name.to_string(), &text);
    zeroize::Zeroize::zeroize(&mut text);
    parsed
}
