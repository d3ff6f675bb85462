//! The list of a backup's files, written last: a folder without it is not a backup.

use pando_base::Timestamp;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_storage::staging::checked_path;
use std::path::Path;

pub(crate) const NAME: &str = "backup.bson";
/// Below the backup's folder: the files as they lie in a data folder.
pub(crate) const FILES: &str = "files";
const FORMAT: i64 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) crc32c: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) host: String,
    pub(crate) version: String,
    /// Milliseconds since 1970.
    pub(crate) made: i64,
    /// The tables stand here; the log goes on to `oplog_end`.
    pub(crate) checkpoint: Timestamp,
    pub(crate) oplog_end: Timestamp,
    pub(crate) files: Vec<File>,
}

impl Manifest {
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }
    fn to_doc(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.i64("format", FORMAT);
        b.str("host", &self.host);
        b.str("version", &self.version);
        b.date("made", self.made);
        b.timestamp("checkpoint", self.checkpoint);
        b.timestamp("oplogEnd", self.oplog_end);
        b.array("files", |a| {
            for f in &self.files {
                a.doc(|d| {
                    d.str("path", &f.path);
                    d.i64("bytes", f.bytes as i64);
                    d.i64("crc32c", i64::from(f.crc32c));
                });
            }
        });
        b.finish()
    }
    fn from_doc(doc: &RawDoc) -> Option<Manifest> {
        let timestamp = |name| match doc.get(name)? {
            Value::Timestamp(ts) => Some(ts),
            _ => None,
        };
        let mut files = Vec::new();
        for e in doc.get("files")?.as_array()? {
            let f = e.value().as_doc()?;
            let path = checked_path(f.get("path")?.as_str()?).ok()?.to_owned();
            files.push(File {
                path,
                bytes: u64::try_from(f.get("bytes")?.as_i64()?).ok()?,
                crc32c: u32::try_from(f.get("crc32c")?.as_i64()?).ok()?,
            });
        }
        Some(Manifest {
            host: doc.get("host")?.as_str()?.to_owned(),
            version: doc.get("version")?.as_str()?.to_owned(),
            made: match doc.get("made")? {
                Value::DateTime(ms) => ms,
                _ => return None,
            },
            checkpoint: timestamp("checkpoint")?,
            oplog_end: timestamp("oplogEnd")?,
            files,
        })
    }

    /// Makes the folder a backup.
    pub(crate) fn save(&self, folder: &Path) -> std::io::Result<()> {
        let (new, path) = (folder.join("backup.bson.new"), folder.join(NAME));
        let mut file = std::fs::File::create(&new)?;
        std::io::Write::write_all(&mut file, self.to_doc().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &path)?;
        std::fs::File::open(folder)?.sync_all()
    }
    pub(crate) fn load(folder: &Path) -> Result<Manifest, String> {
        let path = folder.join(NAME);
        let bytes = std::fs::read(&path).map_err(|e| {
            format!(
                "{} is not a finished backup ({NAME}: {}): take the backup again",
                folder.display(),
                pando_env_tokio::process::words(&e)
            )
        })?;
        let damaged = || format!("{} is damaged: use another backup", path.display());
        let doc = RawDoc::validate(&bytes).map_err(|_| damaged())?;
        match doc.get("format").and_then(|v| v.as_i64()) {
            Some(FORMAT) => Manifest::from_doc(doc).ok_or_else(damaged),
            Some(n) if n > FORMAT => Err(later(&path, n)),
            _ => Err(damaged()),
        }
    }
}

fn later(path: &Path, format: i64) -> String {
    format!(
        "{} was made by a later version (its format is {format}, this version reads {FORMAT}): restore it with the \
         'pando' of the version that made it",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_of_a_later_version_is_refused_with_what_to_do() {
        let dir = std::env::temp_dir().join(format!("pando-manifest-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        let mut b = DocBuilder::new();
        b.i64("format", FORMAT + 1);
        std::fs::write(dir.join(NAME), b.finish().as_bytes()).expect("written");
        let refused = Manifest::load(&dir).expect_err("a later format");
        std::fs::remove_dir_all(&dir).expect("an end");
        assert!(refused.contains("later version") && refused.contains("restore it with"), "{refused}");
    }

    #[test]
    fn a_manifest_reads_back_and_none_leads_out_of_the_folder() {
        let file = |path: &str| File { path: path.to_owned(), bytes: 5, crc32c: 7 };
        let m = Manifest {
            host: "h:1".to_owned(),
            version: "7.0.0".to_owned(),
            made: 5,
            checkpoint: Timestamp::new(1, 2),
            oplog_end: Timestamp::new(3, 4),
            files: vec![file("journal/log.0000000001"), file("tables/records/0")],
        };
        assert_eq!(Manifest::from_doc(&m.to_doc()), Some(m.clone()));
        for bad in ["../x", "/etc/passwd", "a/../../b"] {
            let bad = Manifest { files: vec![file(bad)], ..m.clone() };
            assert_eq!(Manifest::from_doc(&bad.to_doc()), None);
        }
    }
}
