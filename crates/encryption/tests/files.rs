//! Files through the encrypting disk behave as files do, and hold nothing that can be read.

#![allow(clippy::unwrap_used)]

use pando_encryption::disk::SealedDisk;
use pando_encryption::store::{self, Wanted};
use pando_encryption::{KeyFiles, MasterKey};
use pando_env::{Disk, Rng};
use pando_storage::testing::FaultyDisk;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

struct Drawn(AtomicU64);

impl Rng for Drawn {
    fn next_u64(&self) -> u64 {
        let n = self.0.fetch_add(1, Relaxed).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

fn disks(seed: u64) -> (Arc<FaultyDisk>, SealedDisk) {
    let inner = Arc::new(FaultyDisk::new(seed));
    let masters = KeyFiles { path: "k".into(), key: MasterKey::new([1; 32]), replaced: None };
    let rng: Arc<dyn Rng> = Arc::new(Drawn(AtomicU64::new(seed << 32)));
    let keys = store::open(&*inner, &masters, rng, Wanted::default()).expect("keys").keys;
    (inner.clone(), SealedDisk::new(inner, keys))
}

fn read(disk: &dyn Disk, path: &str) -> Vec<u8> {
    let file = disk.open(path, false).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize + 10];
    let got = file.read_at(0, &mut bytes).unwrap();
    bytes.truncate(got);
    bytes
}

#[test]
fn a_file_is_what_was_written_at_every_step() {
    for seed in 0..40 {
        let draw = Drawn(AtomicU64::new(seed << 20));
        let (_, disk) = disks(seed);
        let mut model: Vec<u8> = Vec::new();
        let mut file = disk.open("_tmp/a", true).unwrap();
        for step in 0..60 {
            let at = draw.next_u64() % (model.len() as u64 + 20_000);
            let len = (draw.next_u64() % [3, 200, 70_000][step % 3]) as usize;
            match draw.next_u64() % 6 {
                0 => {
                    file.truncate(at).unwrap();
                    model.resize(at as usize, 0);
                }
                1 => file = disk.open("_tmp/a", false).unwrap(),
                2 => {
                    let mut buf = vec![0; len];
                    let got = file.read_at(at, &mut buf).unwrap();
                    let from = (at as usize).min(model.len());
                    assert_eq!(&buf[..got], &model[from..(from + len).min(model.len())], "seed {seed}");
                }
                kind => {
                    let at = if kind < 5 { model.len() } else { at as usize };
                    let bytes: Vec<u8> = (0..len).map(|i| (step + i) as u8).collect();
                    file.write_at(at as u64, &bytes).unwrap();
                    if len > 0 || at > model.len() {
                        model.resize(model.len().max(at + len), 0);
                    }
                    model[at..at + len].copy_from_slice(&bytes);
                }
            }
            assert_eq!(file.len().unwrap(), model.len() as u64, "seed {seed} step {step}");
        }
        assert_eq!(read(&disk, "_tmp/a"), model, "seed {seed}");
    }
}

#[test]
fn nothing_of_it_can_be_read_on_the_inner_disk_and_no_flipped_bit_passes() {
    let (inner, disk) = disks(1);
    let marker = b"a word that nobody else writes";
    let file = disk.open("rollback/removed.bson", true).unwrap();
    let content = marker.repeat(2000);
    file.write_at(0, &content).unwrap();
    let sealed = inner.bytes("rollback/removed.bson");
    assert!(sealed.len() > content.len() && !sealed.windows(8).any(|w| w == &marker[..8]));
    assert_eq!(read(&disk, "rollback/removed.bson"), content);
    for at in [8, 23, 24, 31, 40, 60, 16_000, 17_000, sealed.len() - 1] {
        let mut bad = sealed.clone();
        bad[at] ^= 0x10;
        inner.open("rollback/bad", true).unwrap().write_at(0, &bad).unwrap();
        let file = disk.open("rollback/bad", false).unwrap();
        let e = file.read_at(0, &mut vec![0; content.len()]).expect_err("damage");
        assert_eq!(e.kind(), ErrorKind::InvalidData);
        assert!(e.to_string().contains("rollback/bad"), "{e}");
    }
    let mut plain = sealed.clone();
    plain[0] ^= 1;
    inner.open("rollback/plain", true).unwrap().write_at(0, &plain).unwrap();
    assert!(disk.open("rollback/plain", false).is_err_and(|e| e.to_string().contains("not encrypted")));
}

#[test]
fn pages_do_not_open_in_another_place_or_another_file() {
    let (inner, disk) = disks(1);
    for path in ["_tmp/a", "_tmp/b"] {
        disk.open(path, true).unwrap().write_at(0, &[7; 60_000]).unwrap();
    }
    let (a, b) = (inner.bytes("_tmp/a"), inner.bytes("_tmp/b"));
    let page = |n: usize| 24 + n * (16 << 10)..24 + (n + 1) * (16 << 10);
    let mut swapped = a.clone();
    swapped[page(0)].copy_from_slice(&a[page(1)]);
    let mut foreign = a.clone();
    foreign[page(0)].copy_from_slice(&b[page(0)]);
    for bytes in [swapped, foreign] {
        inner.open("_tmp/a", false).unwrap().write_at(0, &bytes).unwrap();
        assert!(disk.open("_tmp/a", false).unwrap().read_at(0, &mut [0; 10]).is_err());
    }
}

#[test]
fn journal_and_tables_pass_as_they_are() {
    let (inner, disk) = disks(1);
    disk.open("journal/log.1", true).unwrap().write_at(0, b"as it is").unwrap();
    assert_eq!(inner.bytes("journal/log.1"), b"as it is");
}
