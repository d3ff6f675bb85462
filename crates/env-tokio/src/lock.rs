//! One server per data folder: `mongod.lock`, held with `flock` and carrying the process id.
//!
//! The kernel drops the lock with the process, however it ends; a clean stop also empties the file, which is
//! how launchers tell a crash from a stop.

use crate::process::words;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const NAME: &str = "mongod.lock";

/// A held lock.
pub struct DataLock {
    file: File,
    /// The file was not empty: the last server did not stop cleanly.
    pub after_crash: bool,
}

/// Why a folder cannot be used; the text is what MongoDB prints.
#[derive(Debug)]
pub struct LockError(pub String);

impl DataLock {
    pub fn acquire(dir: &Path) -> Result<DataLock, LockError> {
        let path = dir.join(NAME);
        let shown = path.display();
        let io = |what: &str, e: io::Error| {
            LockError(format!("DBPathInUse: Unable to {what} the lock file: {shown} ({}).", words(&e)))
        };
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|e| io("create/open", e))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|e| {
            LockError(format!(
                "DBPathInUse: Unable to lock the lock file: {shown} ({}). Another mongod instance is already running \
                 on the {} directory",
                words(&e.into()),
                dir.display()
            ))
        })?;
        let after_crash = file.metadata().map_err(|e| io("read", e))?.len() > 0;
        let pid = format!("{}\n", std::process::id());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(pid.as_bytes()))
            .and_then(|()| file.sync_all())
            .map_err(|e| io("write to", e))?;
        Ok(DataLock { file, after_crash })
    }
    /// A start that failed before data was touched: leaves the file as it was found.
    pub fn give_back(self) {
        if !self.after_crash {
            // If this fails the next start merely warns.
            let _ = self.file.set_len(0);
        }
    }
    /// The clean end: the file stays, empty.
    pub fn release(self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.sync_all()
    }
}

/// The process id of the server that runs on `dir`, if one does.
pub fn running_pid(dir: &Path) -> Option<i32> {
    let path: PathBuf = dir.join(NAME);
    let mut file = File::options().read(true).write(true).open(path).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_server_and_a_clean_stop_empties_the_file() {
        let dir = std::env::temp_dir().join(format!("pando-lock-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert_eq!(running_pid(&dir), None);
        let lock = DataLock::acquire(&dir).unwrap();
        assert!(!lock.after_crash);
        assert_eq!(running_pid(&dir), Some(std::process::id() as i32));
        let text = DataLock::acquire(&dir).err().map(|e| e.0).unwrap_or_default();
        assert!(text.contains("(Resource temporarily unavailable). Another mongod instance"), "{text}");
        drop(lock);
        let lock = DataLock::acquire(&dir).unwrap();
        assert!(lock.after_crash, "dropped without release, as a crash would");
        lock.release().unwrap();
        assert!(!DataLock::acquire(&dir).unwrap().after_crash);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
