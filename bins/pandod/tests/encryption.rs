//! Encryption at rest with real processes: nothing that users wrote can be read in the data folder, which keys a start takes,
//! and that a changed byte is told.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use common::{Client, PATIENCE, Server};
use pando_bson::{Bson, DocBuf, Value, doc};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

const MARKER: &str = "MarkerThatNobodyElseWrites";

/// A folder with key files `a` and `b`, removed at the end.
struct Ground(PathBuf);

impl Ground {
    fn new(name: &str) -> Ground {
        let dir = std::env::temp_dir().join(format!("pando-encryption-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(dir.join("data")).unwrap();
        let ground = Ground(dir);
        ground.key("a", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n");
        ground.key("b", "//////////////////////////////////////////8=");
        ground
    }
    fn key(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    fn data(&self) -> PathBuf {
        self.0.join("data")
    }
    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pandod"));
        let port: &[&str] = if options.contains(&"--port") { &[] } else { &["--port", "0"] };
        command.args(port).args(["--nounixsocket", "--dbpath", "data"]).args(options);
        command.current_dir(&self.0).stdin(Stdio::null());
        command
    }
    fn start(&self, options: &[&str]) -> Server {
        Server::listening(&mut self.command(options))
    }
    /// Starts a server that is to end by itself: its exit code and what it says.
    fn refused(&self, options: &[&str]) -> (i32, String) {
        let Output { status, stdout, .. } = self.command(options).output().unwrap();
        (status.code().unwrap_or(-1), String::from_utf8_lossy(&stdout).into_owned())
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const WITH_A: [&str; 3] = ["--enableEncryption", "--encryptionKeyFile", "a"];
const WITH_B: [&str; 3] = ["--enableEncryption", "--encryptionKeyFile", "b"];

fn stop(mut server: Server) {
    let mut c = server.connect().unwrap();
    let _ = c.run("admin", doc! { "shutdown": 1, "force": true });
    let until = Instant::now() + PATIENCE;
    while server.child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "the server does not end");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Every file below `dir`, by its path from there.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                found.insert(path.strip_prefix(dir).unwrap().to_string_lossy().into_owned(), bytes);
            }
        }
    }
    found
}

fn holds_marker(bytes: &[u8]) -> bool {
    bytes.windows(MARKER.len()).any(|w| w.eq_ignore_ascii_case(MARKER.as_bytes()))
}

/// Brings the marker to everything that writes: documents, names, index keys, the oplog, the `local` database, files of
/// sorts, old versions. The cursor of the sort stays open.
fn plant(c: &mut Client) {
    c.ok("admin", doc! { "setParameter": 1, "internalQueryMaxBlockingSortMemoryUsageBytes": 100_000 });
    for round in 0..3 {
        for n in 0..40 {
            let text = format!("{MARKER} {n}");
            let pad = format!("{MARKER} ").repeat(40);
            let updates: Vec<Bson> = (0..50)
                .map(|i| {
                    doc! {
                        "q": { "_id": n * 50 + i },
                        "u": { "$set": { "text": text.clone(), "pad": pad.clone(), "round": round } },
                        "upsert": true
                    }
                    .into()
                })
                .collect();
            c.ok("test", doc! { "update": MARKER, "updates": updates });
        }
        if round == 0 {
            let index = doc! { "key": { "text": 1 }, "name": format!("index {MARKER}") };
            c.ok("test", doc! { "createIndexes": MARKER, "indexes": [index] });
        }
        c.ok("local", doc! { "insert": "own", "documents": [{ "text": MARKER }] });
        c.ok("admin", doc! { "fsync": 1 });
    }
    let sort = doc! { "aggregate": MARKER, "pipeline": [{ "$sort": { "pad": 1, "round": -1, "_id": -1 } }], "allowDiskUse": true, "cursor": { "batchSize": 1 } };
    c.ok("test", sort);
}

/// The pieces that a backup would take.
fn backup(c: &mut Client) -> BTreeMap<String, Vec<u8>> {
    let opened = c.ok("admin", doc! { "_openBackup": 1 });
    let id = opened.get("backup").and_then(|v| v.as_i64()).unwrap();
    let mut found = BTreeMap::new();
    let files = opened.get("files").and_then(|v| v.as_array()).unwrap();
    for (n, file) in files.into_iter().enumerate() {
        let path = file.value().as_doc().and_then(|f| f.get("path")?.as_str().map(str::to_owned)).unwrap();
        let piece = c.ok("admin", doc! { "_readBackup": id, "file": n as i64, "offset": 0i64 });
        let Some(Value::Binary { bytes, .. }) = piece.get("data") else { panic!("no data") };
        found.insert(path, bytes.to_vec());
    }
    c.ok("admin", doc! { "_closeBackup": id });
    found
}

fn count(c: &mut Client, filter: pando_bson::Document) -> i64 {
    let reply: DocBuf = c.ok("test", doc! { "count": MARKER, "query": filter });
    reply.get("n").and_then(|v| v.as_i64()).unwrap()
}

/// Where the marker can be read while a server runs and after it stopped, with these options.
fn places(name: &str, options: &[&str]) -> Vec<String> {
    let ground = Ground::new(name);
    let server = ground.start(options);
    let mut c = server.connect().unwrap();
    plant(&mut c);
    let mut all = files(&ground.data());
    all.extend(backup(&mut c).into_iter().map(|(path, bytes)| (format!("backup/{path}"), bytes)));
    assert!(all.keys().any(|path| path.starts_with("_tmp/")), "no spill: {:?}", all.keys());
    stop(server);
    let server = ground.start(options);
    let mut c = server.connect().unwrap();
    assert_eq!(count(&mut c, doc! {}), 2000);
    assert_eq!(count(&mut c, doc! { "text": format!("{MARKER} 7") }), 50);
    c.ok("test", doc! { "compact": MARKER });
    assert_eq!(count(&mut c, doc! { "round": 2 }), 2000);
    all.extend(files(&ground.data()).into_iter().map(|(path, bytes)| (format!("later/{path}"), bytes)));
    stop(server);
    assert!(all.len() > 10 && all.values().map(Vec::len).sum::<usize>() > 1 << 20);
    all.into_iter().filter(|(_, bytes)| holds_marker(bytes)).map(|(path, _)| path).collect()
}

#[test]
fn nothing_that_users_wrote_can_be_read_in_the_folder() {
    assert_eq!(places("sealed", &WITH_A), [""; 0]);
    // The same of a plain server is read everywhere, so that the test would notice.
    let plain = places("plain", &[]);
    for place in [
        "journal/oplog",
        "journal/local",
        "tables/indexes",
        "tables/records",
        "tables/history",
        "_tmp/",
        "backup/",
    ] {
        assert!(plain.iter().any(|path| path.contains(place)), "{place} is not among {plain:?}");
    }
}

#[test]
fn a_start_takes_the_right_key_and_tells_what_is_wrong_with_another() {
    let ground = Ground::new("keys");
    let server = ground.start(&WITH_A);
    let mut c = server.connect().unwrap();
    c.ok("test", doc! { "insert": MARKER, "documents": [{ "_id": 1 }], "writeConcern": { "j": true } });
    stop(server);
    let before = files(&ground.data());
    let (code, log) = ground.refused(&WITH_B);
    assert!(code == 100 && log.contains("encrypted with the master key"), "{code} {log}");
    let (code, log) = ground.refused(&[]);
    assert!(code == 100 && log.contains("start with --enableEncryption"), "{code} {log}");
    ground.key("short", "AAEC");
    let (code, log) = ground.refused(&["--enableEncryption", "--encryptionKeyFile", "short"]);
    assert!(code == 1 && log.contains("32 bytes in base64"), "{code} {log}");
    std::fs::set_permissions(ground.0.join("a"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let (code, log) = ground.refused(&WITH_A);
    assert!(code == 1 && log.contains("are too open"), "{code} {log}");
    std::fs::set_permissions(ground.0.join("a"), std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(files(&ground.data()), before, "nothing was touched");

    // Without its key store it is not taken for a plain folder, and no new key store is made.
    let (store, aside) = (ground.data().join("journal/keystore"), ground.0.join("aside"));
    std::fs::rename(&store, &aside).unwrap();
    let (code, log) = ground.refused(&WITH_A);
    assert!(code == 100 && log.contains("key store is missing"), "{code} {log}");
    let (code, log) = ground.refused(&[]);
    assert!(code == 100 && log.contains("key store (journal/keystore) is missing"), "{code} {log}");
    assert!(!store.exists());
    let mut bytes = std::fs::read(&aside).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&store, &bytes).unwrap();
    let (code, log) = ground.refused(&WITH_A);
    assert!(code == 100 && log.contains("keystore is damaged"), "{code} {log}");
    std::fs::rename(&aside, &store).unwrap();

    let server = ground.start(&WITH_A);
    assert_eq!(count(&mut server.connect().unwrap(), doc! {}), 1);
    stop(server);
}

#[test]
fn a_plain_folder_is_not_encrypted_later() {
    let ground = Ground::new("later");
    let server = ground.start(&[]);
    let mut c = server.connect().unwrap();
    c.ok("test", doc! { "insert": MARKER, "documents": [{ "_id": 1 }] });
    stop(server);
    let (code, log) = ground.refused(&WITH_A);
    assert!(code == 100 && log.contains("encryption cannot be switched on for it"), "{code} {log}");
    let server = ground.start(&[]);
    assert_eq!(count(&mut server.connect().unwrap(), doc! {}), 1);
    stop(server);
}

#[test]
fn master_key_and_data_key_change_and_all_data_stays_readable() {
    let ground = Ground::new("rotate");
    let server = ground.start(&WITH_A);
    let mut c = server.connect().unwrap();
    for n in 0..3 {
        c.ok("test", doc! { "insert": MARKER, "documents": [{ "_id": n }] });
        c.ok("admin", doc! { "fsync": 1 });
    }
    stop(server);
    let both = [&WITH_B[..], &["--encryptionReplacedKeyFile", "a", "--encryptionNewDataKey"]].concat();
    // Killed at once, started the same way again, then with the new key alone.
    for (n, options) in [(3, &both[..]), (4, &both[..]), (5, &WITH_B[..])] {
        let mut server = ground.start(options);
        let mut c = server.connect().unwrap();
        assert_eq!(count(&mut c, doc! {}), n);
        c.ok("test", doc! { "insert": MARKER, "documents": [{ "_id": n }], "writeConcern": { "j": true } });
        server.kill();
    }
    let (code, log) = ground.refused(&WITH_A);
    assert!(code == 100 && log.contains("encrypted with the master key"), "{code} {log}");
    let server = ground.start(&WITH_B);
    let mut c = server.connect().unwrap();
    assert_eq!(count(&mut c, doc! {}), 6);
    let status = c.ok("admin", doc! { "serverStatus": 1 });
    assert_eq!(status.get_path("encryptionAtRest.encryptionEnabled").and_then(|v| v.as_bool()), Some(true));
    assert_eq!(status.get_path("encryptionAtRest.dataKeys").and_then(|v| v.as_i64()), Some(3));
    stop(server);
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn is(c: &mut Client, what: &str) -> bool {
    c.ok("admin", doc! { "hello": 1 }).get(what).and_then(|v| v.as_bool()) == Some(true)
}

/// A member whose first options are `first` gets another one with `second`, which copies its data.
fn copied(name: &str, first: &[&str], second: &[&str]) {
    let (one, two) = (Ground::new(&format!("{name}-1")), Ground::new(&format!("{name}-2")));
    let set = ["--replSet", "rs"];
    let source = one.start(&[first, &set].concat());
    let host = |server: &Server| format!("127.0.0.1:{}", server.port);
    let mut c = source.connect().unwrap();
    let members: Bson = doc! { "_id": 0, "host": host(&source) }.into();
    c.ok("admin", doc! { "replSetInitiate": { "_id": "rs", "members": [members.clone()] } });
    until("a primary", || is(&mut c, "isWritablePrimary"));
    for n in 0..100 {
        c.ok("test", doc! { "insert": MARKER, "documents": [{ "_id": n, "text": format!("{MARKER} {n}") }] });
    }
    // Copying files is asked for, and given up where anything is encrypted.
    let by_files = ["--setParameter", "initialSyncMethod=fileCopyBased"];
    let target = two.start(&[second, &set, &by_files].concat());
    let added = doc! { "_id": 1, "host": host(&target), "priority": 0, "votes": 0 };
    let config = doc! { "_id": "rs", "version": 2, "members": [members, added] };
    c.ok("admin", doc! { "replSetReconfig": config });
    let mut t = target.connect().unwrap();
    until("a secondary", || is(&mut t, "secondary"));
    c.ok("test", doc! { "insert": MARKER, "documents": [{ "_id": 100 }] });
    let preference = doc! { "mode": "secondaryPreferred" };
    let count = doc! { "count": MARKER, "query": {}, "$readPreference": preference };
    until("all documents", || t.ok("test", count.clone()).get("n").and_then(|v| v.as_i64()) == Some(101));
    let port = target.port.to_string();
    stop(target);
    let target = two.start(&[second, &set, &by_files, &["--port", &port]].concat());
    let mut t = target.connect().unwrap();
    until("a secondary again", || is(&mut t, "secondary"));
    assert_eq!(t.ok("test", count.clone()).get("n").and_then(|v| v.as_i64()), Some(101));
    for (ground, options) in [(&one, first), (&two, second)] {
        let read = files(&ground.data()).values().any(|bytes| holds_marker(bytes));
        assert_eq!(read, options.is_empty(), "{name}: {options:?}");
    }
}

#[test]
fn encrypted_and_plain_members_copy_from_each_other() {
    copied("out", &WITH_A, &[]);
    copied("in", &[], &WITH_A);
    copied("both", &WITH_A, &WITH_B);
}
