//! Files that hold secrets: nobody else's to read, and not read further than a secret is long.

use pando_base::{Error, ErrorCode, Result};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// Permissions of the group and of others; whoever has root's files by its group may read them.
const OTHERS: u32 = 0o077;

/// The text of a file of at most `bytes_max`. `BadValue` when it cannot be read, is larger, or others may read it.
pub fn read(path: &Path, bytes_max: usize) -> Result<Zeroizing<String>> {
    let name = path.display();
    let wrong = |text: String| Error::new(ErrorCode::BadValue, text);
    let unreadable = |e: std::io::Error| wrong(format!("Error reading file {name}: {e}"));
    let file = File::open(path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    let roots_group = meta.uid() == 0 && meta.permissions().mode() & (OTHERS & !0o040) == 0;
    if meta.permissions().mode() & OTHERS != 0 && !roots_group {
        return Err(wrong(format!("permissions on {name} are too open: chmod 600 it")));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(bytes_max as u64 + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() > bytes_max {
        return Err(wrong(format!("{name} has more than {bytes_max} bytes, which is no keyfile")));
    }
    Ok(text)
}
