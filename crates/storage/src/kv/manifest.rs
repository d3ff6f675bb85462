//! The small files that say which tables make up a tree, checked before the `lsm-tree` crate believes them.
//!
//! ```text
//!   current   version u64 │ xxh3-128 of the file v<version> │ 0
//!   v<n>      the tables of each level
//! ```
//! The crate writes that checksum and does not look at it.

use crate::damage::damaged;
use pando_base::{Error, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// `fresh`: there need not be a tree yet.
pub(super) fn check(tree: &Path, fresh: bool) -> Result<()> {
    let current = tree.join("current");
    let bytes = match fs::read(&current) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let tables = fs::read_dir(tree.join("tables")).is_ok_and(|mut d| d.next().is_some());
            return if fresh && !tables {
                Ok(())
            } else {
                Err(damaged(format!("{} is missing", current.display())))
            };
        }
        Err(e) => return Err(Error::from(e).context(current.display())),
    };
    let (version, checksum) =
        decode(&bytes).ok_or_else(|| damaged(format!("{} is not what was written", current.display())))?;
    let path = tree.join(format!("v{version}"));
    let listed = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(damaged(format!("{} is missing", path.display())));
        }
        Err(e) => return Err(Error::from(e).context(path.display())),
    };
    if xxhash_rust::xxh3::xxh3_128(&listed) != checksum {
        return Err(damaged(format!("{} does not match its checksum", path.display())));
    }
    Ok(())
}

fn decode(bytes: &[u8]) -> Option<(u64, u128)> {
    let (version, rest) = bytes.split_first_chunk::<8>()?;
    let (checksum, kind) = rest.split_first_chunk::<16>()?;
    (kind == [0]).then(|| (u64::from_le_bytes(*version), u128::from_le_bytes(*checksum)))
}
