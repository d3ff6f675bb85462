//! The key store: what a start accepts, what it refuses and in which words, and that a crash leaves the old keys or the new ones.

#![allow(clippy::unwrap_used)]

use pando_base::{ErrorCode, Result};
use pando_encryption::store::{self, PATH, Wanted};
use pando_encryption::{KeyFiles, Keys, MasterKey, Purpose};
use pando_env::{Disk, Rng};
use pando_storage::testing::FaultyDisk;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

struct Drawn(AtomicU64);

impl Rng for Drawn {
    fn next_u64(&self) -> u64 {
        let n = self.0.fetch_add(1, Relaxed).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

fn rng(seed: u64) -> Arc<dyn Rng> {
    Arc::new(Drawn(AtomicU64::new(seed << 32)))
}
fn key(n: u8) -> MasterKey {
    MasterKey::new([n; 32])
}
fn files(n: u8) -> KeyFiles {
    KeyFiles { path: format!("/etc/key{n}"), key: key(n), replaced: None }
}
fn replacing(old: u8, new: u8) -> KeyFiles {
    KeyFiles { replaced: Some(key(old)), ..files(new) }
}
fn open(disk: &FaultyDisk, masters: &KeyFiles, seed: u64) -> Result<Arc<Keys>> {
    store::open(disk, masters, rng(seed), Wanted::default()).map(|o| o.keys)
}
fn sealed(keys: &Keys) -> Vec<u8> {
    let mut out = Vec::new();
    keys.seal(Purpose::File, b"", b"data", &mut out);
    out
}
fn opens(keys: &Keys, sealed: &[u8]) -> bool {
    keys.opened(Purpose::File, b"", sealed).as_deref() == Some(b"data")
}

#[test]
fn what_one_start_seals_the_next_one_opens() {
    let disk = FaultyDisk::new(1);
    let first = open(&disk, &files(1), 1).expect("a new folder");
    let bytes = sealed(&first);
    let again = open(&disk, &files(1), 2).expect("the same key");
    assert!(opens(&again, &bytes));
    assert!(opens(&first, &sealed(&again)));
}

#[test]
fn another_key_is_refused_and_the_store_stays_as_it_was() {
    let disk = FaultyDisk::new(1);
    open(&disk, &files(1), 1).expect("a new folder");
    let before = disk.bytes(PATH);
    let e = open(&disk, &files(2), 2).expect_err("another key");
    assert_eq!(e.code, ErrorCode::InvalidOptions);
    for part in
        [key(1).fingerprint(), key(2).fingerprint(), "/etc/key2".into(), "--encryptionReplacedKeyFile".into()]
    {
        assert!(e.message.contains(&part), "{part} is not in: {e}");
    }
    assert_eq!(disk.bytes(PATH), before);
}

#[test]
fn an_encrypted_folder_is_refused_without_a_key_and_a_plain_one_with_a_key() {
    let disk = FaultyDisk::new(1);
    store::refuse_encrypted(&disk).expect("an empty folder");
    open(&disk, &files(1), 1).expect("a new folder");
    let e = store::refuse_encrypted(&disk).expect_err("an encrypted folder");
    assert!(e.message.contains("--enableEncryption"), "{e}");

    let plain = FaultyDisk::new(2);
    plain.create_dir_all("journal").unwrap();
    plain.open("journal/log.0000000001", true).unwrap();
    let e = open(&plain, &files(1), 1).expect_err("a plain folder");
    assert!(e.message.contains("without encryption") && e.message.contains("journal/log.0000000001"), "{e}");
    assert!(!plain.exists(PATH));
}

#[test]
fn a_missing_key_store_is_never_made_anew_beside_data() {
    let disk = FaultyDisk::new(1);
    open(&disk, &files(1), 1).expect("a new folder");
    disk.open("journal/checkpoint", true).unwrap();
    disk.remove(PATH).unwrap();
    let e = open(&disk, &files(1), 2).expect_err("no key store");
    assert!(e.message.contains("its key store is missing"), "{e}");
}

#[test]
fn no_flipped_bit_and_no_truncation_of_the_store_passes() {
    let disk = FaultyDisk::new(1);
    open(&disk, &files(1), 1).expect("a new folder");
    let good = disk.bytes(PATH);
    let put = |bytes: &[u8]| {
        let file = disk.open(PATH, false).unwrap();
        file.truncate(0).unwrap();
        file.write_at(0, bytes).unwrap();
    };
    let refused = |bytes: &[u8]| {
        put(bytes);
        let e = open(&disk, &files(1), 2).expect_err("damage");
        assert!(e.message.contains(PATH), "{e}");
        assert_eq!(disk.bytes(PATH), bytes, "nothing is written over it");
    };
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        refused(&bad);
        // Somebody who knows the format mends the checksum: the seal does not open.
        let body = bad.len() - 4;
        if at < body && at >= 8 {
            let crc = pando_storage::checksum(&bad[..body]).to_le_bytes();
            bad[body..].copy_from_slice(&crc);
            put(&bad);
            assert!(open(&disk, &files(1), 2).is_err(), "byte {at}");
        }
        refused(&good[..at]);
    }
    put(&good);
    open(&disk, &files(1), 3).expect("as it was");
}

#[test]
fn a_replaced_master_key_leaves_the_data_keys_as_they_are() {
    let disk = FaultyDisk::new(1);
    let bytes = sealed(&open(&disk, &files(1), 1).unwrap());
    let opened = store::open(&disk, &replacing(1, 2), rng(2), Wanted::default()).expect("both keys");
    assert_eq!(opened.replaced, Some(key(1).fingerprint()));
    assert!(opens(&opened.keys, &bytes));
    // The same start again, then one with the new key alone.
    let again = store::open(&disk, &replacing(1, 2), rng(3), Wanted::default()).expect("both keys");
    assert_eq!(again.replaced, None);
    assert!(opens(&open(&disk, &files(2), 4).expect("the new key"), &bytes));
    assert!(open(&disk, &files(1), 5).is_err(), "the old key opens nothing any more");
}

#[test]
fn a_new_data_key_seals_and_the_old_one_still_opens() {
    let disk = FaultyDisk::new(1);
    let old = open(&disk, &files(1), 1).unwrap();
    let wanted = Wanted { new_data_key: true, now_ms: 9 };
    let new = store::open(&disk, &files(1), rng(2), wanted).unwrap().keys;
    assert_eq!(new.status().data_keys, 2);
    assert_eq!(new.status().newest_ms, 9);
    assert!(opens(&new, &sealed(&old)));
    assert!(!opens(&old, &sealed(&new)), "it is another key");
    let later = open(&disk, &files(1), 3).unwrap();
    assert_eq!(later.ids()[0], new.ids()[0], "the newest one goes on sealing");
}

/// A start fails at each of its steps, then the power fails: the keys of before open, or those of after, and all data does.
#[test]
fn a_rotation_that_is_cut_off_anywhere_loses_no_key() {
    let mut replaced = [0, 0];
    for seed in 0..60 {
        let disk = FaultyDisk::new(seed);
        let bytes = sealed(&open(&disk, &files(1), 1).unwrap());
        match seed % 4 {
            0 => disk.fail_write_once_in(0),
            1 => disk.fail_sync_in(0),
            2 => disk.lose_sync_in(0),
            _ => disk.fail_sync_dir_in(seed / 4 % 3),
        }
        disk.shuffle_names(true);
        let wanted = Wanted { new_data_key: true, now_ms: 9 };
        let rotated = store::open(&disk, &replacing(1, 2), rng(2), wanted);
        disk.crash();
        disk.mend();
        let (old, new) = (open(&disk, &files(1), 3), open(&disk, &files(2), 4));
        replaced[usize::from(new.is_ok())] += 1;
        assert!(old.is_ok() != new.is_ok(), "seed {seed}: one of both");
        let now = old.or(new).unwrap();
        assert!(opens(&now, &bytes), "seed {seed}");
        if let Ok(rotated) = rotated {
            assert!(opens(&now, &sealed(&rotated.keys)), "seed {seed}: what was sealed since");
        }
    }
    assert!(replaced[0] > 0, "{replaced:?}");
}

#[test]
fn a_full_disk_keeps_nobody_from_the_keys_and_changes_none() {
    let disk = FaultyDisk::new(1);
    let bytes = sealed(&open(&disk, &files(1), 1).unwrap());
    disk.set_capacity(Some(disk.used_bytes()));
    assert!(opens(&open(&disk, &files(1), 2).expect("the same keys"), &bytes));
    let e = store::open(&disk, &replacing(1, 2), rng(3), Wanted::default()).err().expect("no room");
    assert_eq!(e.code, ErrorCode::OutOfDiskSpace);
    disk.set_capacity(None);
    assert!(opens(&open(&disk, &files(1), 4).expect("the old key"), &bytes));
}
