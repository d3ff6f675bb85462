//! `pando backup` and `pando restore`, with real servers and real folders.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use common::{Dir, Server, pando};
use pando_bson::{Bson, doc};
use pando_encryption::disk::SealedDisk;
use pando_encryption::{KeyFiles, MasterKey, store};
use pando_env::Log;
use pando_env_tokio::RealNet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn text(p: &Path) -> &str {
    p.to_str().unwrap()
}

fn text_of(p: PathBuf) -> String {
    text(&p).to_owned()
}

#[test]
fn a_backup_of_a_running_server_is_restored_as_of_its_end_or_of_any_later_moment() {
    let dir = Dir::new("pitr");
    let server = Server::set(&dir.path("data"));
    let host = server.host();
    let mut c = server.connect();
    c.insert("app", "c", 0..3000);
    let index = doc! { "key": { "a": 1 }, "name": "a" };
    c.ok("app", doc! { "createIndexes": "c", "indexes": [index] });
    // Writes go on while the backup is taken.
    let (done, mut busy) = (Arc::new(AtomicBool::new(false)), server.connect());
    let until = done.clone();
    let writer = std::thread::spawn(move || {
        let mut n = 0;
        while !until.load(Ordering::Relaxed) {
            busy.insert("busy", "b", n..n + 10);
            n += 10;
        }
        n
    });
    let (backup, restored) = (dir.path("backup"), dir.path("restored"));
    let (code, said) = pando(&["backup", "--out", text(&backup), "--host", &host]);
    done.store(true, Ordering::Relaxed);
    let written = i64::from(writer.join().unwrap());
    assert_eq!(code, 0, "{said}");

    let (code, said) = pando(&["restore", text(&backup), "--dbpath", text(&restored), "--check"]);
    assert_eq!(code, 0, "{said}");
    let copy = Server::start(&restored, &[]);
    let mut r = copy.connect();
    assert_eq!(r.hash("app"), c.hash("app"));
    let caught = r.count("busy", "b");
    assert!(caught % 10 == 0 && caught <= written, "whole writes only: {caught} of {written}");
    let valid = r.ok("app", doc! { "validate": "c", "full": true });
    assert_eq!(valid.get("valid"), Some(&Bson::Boolean(true)), "{valid:?}");
    copy.stop();

    // A good write, then one that should not have been.
    let good = c.insert("app", "c", 3000..3010);
    let Some(Bson::Timestamp(then)) = good.get("operationTime").cloned() else { panic!("{good:?}") };
    let hash = c.hash("app");
    c.ok("app", doc! { "drop": "c" });
    let (until, earlier) = (format!("{}:{}", then.secs(), then.inc()), dir.path("earlier"));
    let to = ["restore", text(&backup), "--dbpath", text(&earlier), "--until", &until];
    let (code, said) = pando(&[&to[..], &["--oplog-from", &host]].concat());
    assert_eq!(code, 0, "{said}");
    let copy = Server::set(&earlier);
    let mut r = copy.connect();
    assert_eq!((r.hash("app"), r.count("app", "c")), (hash, 3010));
    r.insert("app", "c", 4000..4001);
    copy.stop();

    let (code, said) =
        pando(&["restore", text(&backup), "--dbpath", text(&dir.path("x")), "--until", "1000"]);
    assert!(code == 1 && said.contains("the backup begins at"), "{said}");
    let (_, said) =
        pando(&["restore", text(&backup), "--dbpath", text(&dir.path("x")), "--until", "4000000000"]);
    assert!(said.contains("the backup ends at") && said.contains("--oplog-from"), "{said}");
    server.stop();
}

#[test]
fn a_backup_of_a_stopped_server_is_checked_before_it_is_used() {
    let dir = Dir::new("stopped");
    let data = dir.path("data");
    let server = Server::set(&data);
    let mut c = server.connect();
    c.insert("app", "c", 0..500);
    let hash = c.hash("app");
    let (code, said) = pando(&["backup", "--out", text(&dir.path("b")), "--dbpath", text(&data)]);
    assert!(code == 1 && said.contains("Another mongod instance is already running"), "{said}");
    server.stop();
    let backup = dir.path("backup");
    let (code, said) = pando(&["backup", "--out", text(&backup), "--dbpath", text(&data)]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = pando(&["backup", "--out", text(&backup), "--dbpath", text(&data)]);
    assert!(code == 1 && said.contains("is not empty"), "{said}");
    let restore = |to: &str| pando(&["restore", text(&backup), "--dbpath", text(&dir.path(to))]);
    assert_eq!(restore("restored").0, 0);
    let copy = Server::start(&dir.path("restored"), &[]);
    assert_eq!(copy.connect().hash("app"), hash);
    copy.stop();
    let (code, said) = restore("restored");
    assert!(code == 1 && said.contains("is not empty"), "{said}");

    // One bit of one table.
    let trees = std::fs::read_dir(backup.join("files/tables")).unwrap().map(|t| t.unwrap().path());
    let records = trees.filter(|t| t.file_name().is_some_and(|n| n.to_string_lossy().starts_with("records")));
    let mut tables = records.filter_map(|t| std::fs::read_dir(t.join("tables")).ok()).flatten();
    let table = tables.next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let (code, said) = restore("damaged");
    assert!(code == 1 && said.contains(text(&table)) && said.contains("is damaged"), "{said}");
    assert!(!dir.path("damaged").exists() && !dir.path("damaged.restoring").exists());
    std::fs::remove_file(backup.join("backup.bson")).unwrap();
    let (code, said) = restore("unfinished");
    assert!(code == 1 && said.contains("is not a finished backup"), "{said}");
}

#[test]
fn a_backup_of_encrypted_data_stays_encrypted_and_is_restored_with_its_key() {
    let dir = Dir::new("sealed");
    let key = |name: &str, text: &str| {
        let path = dir.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        text_of(path)
    };
    let (good, bad) = (
        key("good", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
        key("bad", "//////////////////////////////////////////8="),
    );
    let data = dir.path("data");
    let with = ["--enableEncryption", "--encryptionKeyFile", &good];
    let server = Server::start(&data, &with);
    let mut c = server.connect();
    c.insert("app", "marker", 0..2000);
    let (online, offline) = (dir.path("online"), dir.path("offline"));
    let (code, said) = pando(&["backup", "--out", text(&online), "--host", &server.host()]);
    assert_eq!(code, 0, "{said}");
    server.stop();
    let stopped = ["backup", "--dbpath", text(&data), "--out", text(&offline)];
    let (code, said) = pando(&stopped);
    assert!(code == 1 && said.contains("name its master key"), "{said}");
    let (code, said) = pando(&[&stopped[..], &["--encryptionKeyFile", &good]].concat());
    assert_eq!(code, 0, "{said}");

    for (n, backup) in [online, offline].iter().enumerate() {
        let restored = dir.path(&format!("restored{n}"));
        let restore = ["restore", text(backup), "--dbpath", text(&restored), "--check"];
        let (code, said) = pando(&restore);
        assert!(code == 1 && said.contains("name its master key"), "{said}");
        let (code, said) = pando(&[&restore[..], &["--encryptionKeyFile", &bad]].concat());
        assert!(code == 1 && said.contains("encrypted with the master key"), "{said}");
        assert!(!restored.exists());
        let (code, said) = pando(&[&restore[..], &["--encryptionKeyFile", &good]].concat());
        assert_eq!(code, 0, "{said}");
        let copy = Server::start(&restored, &with);
        assert_eq!(copy.connect().count("app", "marker"), 2000);
        copy.stop();
    }
}

#[test]
fn a_rollback_file_of_an_encrypted_folder_is_read_with_its_key() {
    let dir = Dir::new("decrypt");
    let key = dir.path("key");
    std::fs::write(&key, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let data = dir.path("data");
    Server::start(&data, &["--enableEncryption", "--encryptionKeyFile", text(&key)]).stop();

    // As a server on this folder writes one.
    let env = pando_env_tokio::env(&data, Log::none(), RealNet::default()).unwrap();
    let masters = KeyFiles {
        path: text_of(key.clone()),
        key: MasterKey::new(std::array::from_fn(|i| i as u8)),
        replaced: None,
    };
    let keys = store::look(&*env.disk, &masters, env.rng.clone()).unwrap();
    let env = SealedDisk::around(env, keys);
    env.disk.create_dir_all("rollback/x").unwrap();
    let content = "somebody's document ".repeat(5000);
    env.disk.open("rollback/x/removed.bson", true).unwrap().write_at(0, content.as_bytes()).unwrap();
    let sealed = std::fs::read(data.join("rollback/x/removed.bson")).unwrap();
    assert!(!String::from_utf8_lossy(&sealed).contains("somebody"));

    let out = dir.path("out.bson");
    let file = text_of(data.join("rollback/x/removed.bson"));
    let decrypt = ["decrypt", &file, "--dbpath", text(&data), "--out", text(&out)];
    let (code, said) = pando(&decrypt);
    assert!(code == 1 && said.contains("name its master key"), "{said}");
    let (code, said) = pando(&[&decrypt[..], &["--encryptionKeyFile", text(&key)]].concat());
    assert_eq!(code, 0, "{said}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), content);
    assert_eq!(std::fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
}
