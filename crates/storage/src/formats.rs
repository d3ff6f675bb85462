//! Versions of what lies on disk, and what is said of those that this version cannot read.
//!
//! | what | where its version is | now |
//! |---|---|---|
//! | log and local log | the head of each file, `PANDOLG<n>` | 1; 2 where records are encrypted |
//! | encrypted bytes, files and key store | the crate `encryption` | 1 |
//! | checkpoint file | its head, `PANDOCP<n>` | 3; 4 once keys lie in parts (`kv::long`) |
//! | rows in tables | the checkpoint file | 1 |
//! | keys of indexes | the checkpoint file | 1 |
//! | keys of one index | its part of the catalog row, `keysVersion` | 2 |
//!
//! Whoever changes one raises its number, brings older ones up to date when a folder is opened, and keeps the folders of
//! `bins/pandod/tests/data` opening. Backups and dumps have versions of their own (`bins/pando`).

use pando_base::{Error, ErrorCode};

/// Header, key and value of rows in the trees, and which tree a row lies in.
pub const TABLES: u32 = 1;
/// Keys that documents have in indexes, of every kind.
pub const INDEX_KEYS: u32 = 1;

/// `magic` ends in one digit: is this a later one of the same family?
pub(crate) fn is_newer(magic: &[u8; 8], bytes: &[u8]) -> bool {
    let ((family, version), theirs) = (magic.split_at(7), bytes.get(7));
    bytes.starts_with(family) && theirs.is_some_and(|v| v.is_ascii_digit() && *v > version[0])
}

pub(crate) fn newer(what: &str) -> Error {
    let text = format!(
        "{what}: written by a later version, which this one cannot read. Start the version that wrote it, or a later \
         one; to go back to this version, restore a backup that it made, or load a dump"
    );
    Error::new(ErrorCode::CannotUpgrade, text)
}
