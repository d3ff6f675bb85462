//! A file that only grows, until it is rotated.
//!
//! A record is one write of the operating system's, so that it outlives the process and stands in one piece. The file is its owner's alone
//! to read.

use crate::log::rotated_name;
use pando_audit::{Sink, Sync};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// `--auditDestination file`.
pub struct AuditFile {
    path: PathBuf,
    /// A rotation opens the name again, from which somebody else has moved the file away.
    reopen: bool,
    file: File,
}

impl AuditFile {
    /// What is there already is kept.
    pub fn open(path: &Path, reopen: bool) -> io::Result<AuditFile> {
        Ok(AuditFile { file: open_append(path)?, path: path.to_owned(), reopen })
    }
}

impl Sink for AuditFile {
    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.write_all(record)
    }
    fn sync(&self) -> io::Result<Option<Sync>> {
        let file = self.file.try_clone()?;
        Ok(Some(Box::new(move || file.sync_data())))
    }
    fn rotate(&mut self, wall_ms: i64) -> io::Result<Option<PathBuf>> {
        // Nobody asks for it any more once there is another one.
        self.file.sync_data()?;
        if self.reopen {
            self.file = open_append(&self.path)?;
            return Ok(None);
        }
        let old = rotated_name(&self.path, wall_ms);
        std::fs::rename(&self.path, &old)?;
        // Whoever cannot open a new one writes on into the old one.
        self.file = open_append(&self.path).inspect_err(|_| drop(std::fs::rename(&old, &self.path)))?;
        Ok(Some(old))
    }
    fn rotates(&self) -> bool {
        true
    }
}

fn open_append(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn old_records_stay_where_the_file_went() {
        let dir = std::env::temp_dir().join(format!("pando-audit-file-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("audit.json");
        let mut sink = AuditFile::open(&path, false).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        sink.write(b"one\n").unwrap();
        let old = sink.rotate(0).unwrap().unwrap();
        sink.write(b"two\n").unwrap();
        drop(sink);
        let mut sink = AuditFile::open(&path, true).unwrap();
        std::fs::rename(&path, dir.join("moved")).unwrap();
        assert_eq!(sink.rotate(0).unwrap(), None);
        sink.write(b"three\n").unwrap();
        let text = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!([text(&old), text(&dir.join("moved")), text(&path)], ["one\n", "two\n", "three\n"]);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_moved_is_written_on() {
        let dir = std::env::temp_dir().join(format!("pando-audit-kept-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("audit.json");
        let mut sink = AuditFile::open(&path, false).unwrap();
        let moved = dir.join("moved");
        std::fs::rename(&path, &moved).unwrap();
        assert!(sink.rotate(0).is_err());
        sink.write(b"one\n").unwrap();
        assert_eq!(std::fs::read_to_string(&moved).unwrap(), "one\n");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
