//! The checkpoint file: where the tables stand, in a few dozen bytes that are replaced atomically.

use crate::damage::damaged;
use crate::formats;
use crate::log::files::DIR;
use pando_base::Result;
use pando_env::Disk;
use pando_env::disk::make_folder;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const PATH: &str = "journal/checkpoint";
const NEW_PATH: &str = "journal/checkpoint.new";
const MAGIC: &[u8; 8] = b"PANDOCP3";
/// Some keys lie in parts, of which earlier versions know nothing.
const MAGIC_LONG_KEYS: &[u8; 8] = b"PANDOCP4";
/// All records lay in one tree.
const MAGIC_ONE_TREE: &[u8; 8] = b"PANDOCP2";

/// What must survive besides rows and logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    /// The tables hold exactly the rows up to this timestamp (an interrupted checkpoint may have added some).
    pub(crate) recovery: u64,
    /// A checkpoint to this timestamp had begun and not ended; 0 = none. Tables may hold some of its rows.
    pub(crate) flushing: u64,
    /// The stable timestamp when the file was written.
    pub(crate) stable: u64,
    /// The tables are being brought back to this timestamp; 0 = they are not.
    pub(crate) undo_to: u64,
    /// Untimestamped rows up to this number of the local log are in the tables.
    pub(crate) local_seq: u64,
    /// Idents below this may be in use.
    pub(crate) ident_limit: u32,
    /// Dropped, still readable below the timestamp.
    pub(crate) dropped: BTreeMap<u32, u64>,
    /// Dropped for good; rows may still lie in tables.
    pub(crate) dead: BTreeSet<u32>,
    /// How often this file was written.
    pub(crate) epoch: u64,
    /// The logs reached at least this far when the file was written (a timestamp, and a number of the local log): a
    /// shorter one has lost synced records.
    pub(crate) log_end: u64,
    pub(crate) local_end: u64,
    /// Of the rows in tables and of the keys of indexes.
    pub(crate) tables: u32,
    pub(crate) index_keys: u32,
    /// Read from a file of when all records lay in one tree.
    pub(crate) one_tree: bool,
    /// There are, or were, keys that lie in parts.
    pub(crate) long_keys: bool,
}

impl Meta {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::from(if self.long_keys { &MAGIC_LONG_KEYS[..] } else { &MAGIC[..] });
        let limit = u64::from(self.ident_limit);
        for n in [self.epoch, self.recovery, self.flushing, self.stable, self.undo_to, self.local_seq, limit]
        {
            out.extend_from_slice(&n.to_le_bytes());
        }
        out.extend_from_slice(&(self.dropped.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.dead.len() as u32).to_le_bytes());
        for (ident, at) in &self.dropped {
            out.extend_from_slice(&ident.to_le_bytes());
            out.extend_from_slice(&at.to_le_bytes());
        }
        for ident in &self.dead {
            out.extend_from_slice(&ident.to_le_bytes());
        }
        out.extend_from_slice(&self.log_end.to_le_bytes());
        out.extend_from_slice(&self.local_end.to_le_bytes());
        // Whoever writes the file has brought all that it covers to its own formats.
        out.extend_from_slice(&formats::TABLES.to_le_bytes());
        out.extend_from_slice(&formats::INDEX_KEYS.to_le_bytes());
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }
    fn decode(b: &[u8]) -> Option<Meta> {
        let (body, crc) = b.split_last_chunk::<4>()?;
        let (one_tree, long_keys) = match body.first_chunk::<8>()? {
            MAGIC => (false, false),
            MAGIC_LONG_KEYS => (false, true),
            MAGIC_ONE_TREE => (true, false),
            _ => return None,
        };
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return None;
        }
        let mut at = 8;
        let mut take = |n: usize| {
            let part = body.get(at..at + n);
            at += n;
            part
        };
        let mut word = |n: usize| {
            let mut wide = [0u8; 8];
            wide[..n].copy_from_slice(take(n)?);
            Some(u64::from_le_bytes(wide))
        };
        let mut meta = Meta {
            epoch: word(8)?,
            recovery: word(8)?,
            flushing: word(8)?,
            stable: word(8)?,
            undo_to: word(8)?,
            local_seq: word(8)?,
            ident_limit: word(8)? as u32,
            one_tree,
            long_keys,
            ..Meta::default()
        };
        let (dropped, dead) = (word(4)?, word(4)?);
        for _ in 0..dropped {
            let ident = word(4)? as u32;
            meta.dropped.insert(ident, word(8)?);
        }
        for _ in 0..dead {
            meta.dead.insert(word(4)? as u32);
        }
        // Files of earlier versions end here.
        meta.log_end = word(8).unwrap_or(0);
        meta.local_end = word(8).unwrap_or(0);
        meta.tables = word(4).map_or(1, |n| n as u32);
        meta.index_keys = word(4).map_or(1, |n| n as u32);
        Some(meta)
    }

    /// `None` in a new directory.
    pub(crate) fn load(disk: &dyn Disk) -> Result<Option<Meta>> {
        let Some(bytes) = pando_env::disk::read_whole(disk, PATH)? else { return Ok(None) };
        if formats::is_newer(MAGIC_LONG_KEYS, &bytes) {
            return Err(formats::newer(PATH));
        }
        let meta = Meta::decode(&bytes).ok_or_else(|| damaged(format!("checkpoint file {PATH}")))?;
        if meta.tables > formats::TABLES {
            return Err(formats::newer("the folder tables"));
        }
        if meta.index_keys > formats::INDEX_KEYS {
            return Err(formats::newer("the keys of indexes in the folder tables"));
        }
        Ok(Some(meta))
    }
    /// Replaces the file; durable on return.
    pub(crate) fn save(&mut self, disk: &dyn Disk) -> Result<()> {
        self.epoch += 1;
        if self.epoch == 1 {
            make_folder(disk, DIR)?;
        }
        let bytes = self.encode();
        let file = disk.open(NEW_PATH, true)?;
        file.truncate(0)?;
        file.write_at(0, &bytes)?;
        file.sync()?;
        disk.rename(NEW_PATH, PATH)?;
        disk.sync_dir(DIR)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_reads_back_and_damage_is_found() {
        let meta = Meta {
            recovery: 7,
            flushing: 8,
            stable: 6,
            undo_to: 4,
            local_seq: 9,
            ident_limit: 4096,
            dropped: BTreeMap::from([(34, 6), (36, 7)]),
            dead: BTreeSet::from([32]),
            epoch: 3,
            log_end: 7,
            local_end: 9,
            tables: formats::TABLES,
            index_keys: formats::INDEX_KEYS,
            one_tree: false,
            long_keys: false,
        };
        let mut bytes = meta.encode();
        assert!(bytes.starts_with(MAGIC));
        assert_eq!(Meta::decode(&bytes), Some(meta.clone()));
        let long = Meta { long_keys: true, ..meta };
        assert_eq!(Meta::decode(&long.encode()), Some(long.clone()));
        let newer = |bytes: &[u8]| formats::is_newer(MAGIC_LONG_KEYS, bytes);
        assert!(!newer(&bytes) && !newer(MAGIC_ONE_TREE) && !newer(&long.encode()) && newer(b"PANDOCP5"));
        bytes[12] ^= 1;
        assert_eq!(Meta::decode(&bytes), None);
    }

    #[test]
    fn formats_of_a_later_version_are_refused_with_what_to_do() {
        let disk = crate::testing::FaultyDisk::new(1);
        let mut meta = Meta::default();
        meta.save(&disk).expect("a file");
        assert!(Meta::load(&disk).expect("its own").is_some());
        let at = disk.bytes(PATH).len() - 4 - 8;
        for (field, what) in [(0, "tables"), (4, "keys of indexes")] {
            let mut bytes = disk.bytes(PATH);
            bytes[at + field] += 1;
            let body = bytes.len() - 4;
            let crc = crc32c::crc32c(&bytes[..body]);
            bytes[body..].copy_from_slice(&crc.to_le_bytes());
            disk.open(PATH, false).and_then(|f| f.write_at(0, &bytes)).expect("written");
            let e = Meta::load(&disk).expect_err("a later format");
            assert_eq!(e.code, pando_base::ErrorCode::CannotUpgrade);
            assert!(e.message.contains(what) && e.message.contains("Start the version"), "{e}");
            meta.save(&disk).expect("a file");
        }
    }
}
