//! A folder's tables are encrypted as a whole or not at all, whatever somebody puts into it.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, checkpoint, lsm, open_on, put, record_tables};
use pando_base::ErrorCode;
use pando_storage::testing::{env_on, keys_of};
use pando_storage::{Ident, IdentKind, Options, ReadAt, Storage};
use std::fs;
use std::path::Path;

fn options(folder: &Folder, encrypted: bool) -> Options {
    Options { keys: encrypted.then(|| keys_of(&*folder.0).unwrap()), ..lsm() }
}

fn filled(folder: &Folder, encrypted: bool) -> Ident {
    let (s, _) = open_on(folder.0.clone(), options(folder, encrypted));
    let i = s.create_ident(IdentKind::Records).unwrap();
    for n in 0..200u32 {
        put(&s, i, &n.to_be_bytes(), Some(&[7; 300]));
    }
    checkpoint(&s);
    i
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            drop(fs::copy(entry.path(), target))
        }
    }
}

#[test]
fn tables_of_the_other_kind_are_refused() {
    let (plain, sealed) = (Folder::new("kind-plain"), Folder::new("kind-sealed"));
    filled(&plain, false);
    filled(&sealed, true);
    for (of, from, encrypted) in [(&plain, &sealed, false), (&sealed, &plain, true)] {
        let mixed = Folder::new(&format!("kind-mixed-{encrypted}"));
        copy(of.0.root(), mixed.0.root());
        fs::remove_dir_all(mixed.0.root().join("tables")).unwrap();
        copy(&from.0.root().join("tables"), &mixed.0.root().join("tables"));
        let e = Storage::open(env_on(mixed.0.clone(), 1).0, options(&mixed, encrypted)).err().unwrap();
        let told = if encrypted {
            "not encrypted, and the folder is encrypted"
        } else {
            "is encrypted, and the folder is not"
        };
        assert!(e.code == ErrorCode::InvalidOptions && e.message.contains(told), "{e}");
    }
}

/// Checksums are no secret: somebody replaces a block by one of his own.
#[test]
fn a_block_that_is_not_encrypted_is_not_believed_in_an_encrypted_table() {
    const HEAD: usize = 4 + 1 + 16 + 4 + 4;
    let folder = Folder::new("forged");
    let i = filled(&folder, true);
    let tables = record_tables(&folder);
    assert!(!tables.is_empty());
    for path in tables {
        let mut bytes = fs::read(&path).unwrap();
        assert_eq!((&bytes[..3], bytes[4]), (&b"LSM"[..], 0x80), "a sealed block of data");
        bytes[4] = 0;
        let crc = xxhash_rust::xxh3::xxh3_128(&bytes[..HEAD]) as u32;
        bytes[HEAD..HEAD + 4].copy_from_slice(&crc.to_le_bytes());
        fs::write(&path, bytes).unwrap();
    }
    let (s, _) = open_on(folder.0.clone(), options(&folder, true));
    let t = s.begin(ReadAt::Latest).unwrap();
    let e = t.get(i, &0u32.to_be_bytes()).expect_err("a forged block");
    assert!(e.message.contains("not encrypted, its table is") && e.message.contains("tables/records"), "{e}");
}
