//! The audit log of a real process: its file, its end, and what it never holds.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use common::Server;
use pando_bson::{Document, RawDoc, doc};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder of this test's own, removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("pandod-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("data")).unwrap();
        Dir(path)
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
    fn names(&self, prefix: &str) -> Vec<String> {
        let names =
            std::fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|n| n.starts_with(prefix)).collect();
        names.sort();
        names
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const BASE: [&str; 5] = ["--dbpath", "data", "--port", "0", "--nounixsocket"];
const TO_FILE: [&str; 6] =
    ["--auditDestination", "file", "--auditFormat", "JSON", "--auditPath", "audit.json"];

fn pandod(dir: &Dir, args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_pandod"));
    c.current_dir(&dir.0).args(BASE).args(args).stdin(Stdio::null());
    c
}

fn run(dir: &Dir, args: &[&str]) -> (i32, Output) {
    let out = pandod(dir, args).output().unwrap();
    (out.status.code().unwrap_or(-1), out)
}

fn signal(server: &Server, name: &str) {
    let pid = server.child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn user(name: &str) -> Document {
    doc! { "createUser": name, "pwd": "pw", "roles": Vec::<pando_bson::Bson>::new() }
}

#[test]
fn what_was_acknowledged_is_in_the_file_when_the_process_is_killed() {
    let dir = Dir::new("audit-kill");
    for n in 0..3 {
        let mut server = Server::listening(&mut pandod(&dir, &TO_FILE));
        let name = format!("ann{n}");
        server.connect().unwrap().ok("test", user(&name));
        server.kill();
        let text = dir.text("audit.json");
        // What was there before is kept.
        assert_eq!(text.matches("\"atype\":\"startup\"").count(), n + 1);
        for k in 0..=n {
            assert_eq!(text.matches(&format!("\"param\":{{\"user\":\"ann{k}\"")).count(), 1, "{text}");
        }
        assert!(text.ends_with("}\n"));
    }
}

/// The process ends at any moment, with what was not synced: what is there afterwards was told.
#[test]
fn what_survives_has_its_event() {
    let dir = Dir::new("audit-survive");
    let args = [
        &TO_FILE[..],
        &["--setParameter", "enableTestCommands=1", "--setParameter", "unsyncedWritesInMemory=true"],
    ]
    .concat();
    let mut made = 0;
    for round in 0..4 {
        let mut server = Server::listening(&mut pandod(&dir, &args));
        let names = server
            .connect()
            .unwrap()
            .ok("test", doc! { "listCollections": 1, "cursor": { "batchSize": 100_000 } });
        let names = names.get_path("cursor.firstBatch").and_then(|v| v.as_array()).unwrap();
        let text = dir.text("audit.json");
        let created = text.lines().filter(|l| l.contains("\"createCollection\""));
        let ns = created.filter_map(|l| l.split_once("\"ns\":\"")?.1.split('"').next());
        let told: std::collections::BTreeSet<&str> = ns.collect();
        made = 0;
        for name in names.iter().filter_map(|e| e.value().as_doc()?.get("name")?.as_str()) {
            made += 1;
            assert!(told.contains(format!("test.{name}").as_str()), "{name} was made and not told");
        }
        let port = server.port;
        let writers: Vec<_> = (0..3)
            .map(|w| {
                std::thread::spawn(move || {
                    let Some(mut c) = common::Client::connect(port) else { return };
                    // Not all wait for the disk.
                    let concern = doc! { "w": 1, "j": w == 0 };
                    for n in 0.. {
                        let name = format!("c{round}-{w}-{n}");
                        if c.run("test", doc! { "create": name, "writeConcern": concern.clone() }).is_none() {
                            return;
                        }
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300 + 70 * round));
        server.kill();
        writers.into_iter().for_each(|w| w.join().unwrap());
    }
    assert!(made > 10, "{made} collections were made");
}

#[test]
fn a_new_file_begins_with_its_rotation() {
    let dir = Dir::new("audit-rotate");
    let server = Server::listening(&mut pandod(&dir, &TO_FILE));
    let mut c = server.connect().unwrap();
    c.ok("test", user("ann"));
    c.ok("admin", doc! { "logRotate": "audit" });
    signal(&server, "-USR1");
    until("two rotations", || dir.names("audit.json").len() == 3);
    let begins = |name: &str| {
        dir.text(name).lines().next().unwrap_or_default().starts_with("{\"atype\":\"rotateLog\"")
    };
    until("the event of the second", || begins("audit.json"));
    let names = dir.names("audit.json");
    let old: String = names[1..].iter().map(|name| dir.text(name)).collect();
    assert!(old.contains("\"atype\":\"createUser\"") && old.contains("\"atype\":\"rotateLog\""), "{old}");
    // Each names the file that it follows.
    let told = format!("{old}{}", dir.text("audit.json"));
    assert!(names[1..].iter().all(|name| told.contains(&format!("{name}\"}}"))), "{names:?} {told}");
    signal(&server, "-TERM");
    until("the last event", || dir.text("audit.json").contains("\"atype\":\"shutdown\""));
}

#[test]
fn a_file_of_documents_holds_the_same() {
    let dir = Dir::new("audit-bson");
    let args = ["--auditDestination", "file", "--auditFormat", "BSON", "--auditPath", "audit.bson"];
    let server = Server::listening(&mut pandod(&dir, &args));
    server.connect().unwrap().ok("test", user("ann"));
    let bytes = std::fs::read(dir.path("audit.bson")).unwrap();
    let (mut rest, mut actions) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let len = i32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
        let record = RawDoc::validate(&rest[..len]).unwrap();
        actions.push(record.get("atype").unwrap().as_str().unwrap().to_owned());
        rest = &rest[len..];
    }
    assert!(
        actions.contains(&"startup".to_owned()) && actions.contains(&"createUser".to_owned()),
        "{actions:?}"
    );
}

#[test]
fn without_its_audit_log_no_server_runs() {
    let dir = Dir::new("audit-full");
    // The disk is full from the beginning: the event of the start cannot be written.
    let full = ["--auditDestination", "file", "--auditFormat", "JSON", "--auditPath", "/dev/full"];
    let (code, out) = run(&dir, &full);
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(code, 14, "{text}");
    assert!(text.contains("\"id\":9100074,") && text.contains("No space left"), "{text}");
    // Or later: a filter lets the start pass, and what cannot be recorded is not acknowledged.
    let filter = ["--auditFilter", "{atype: 'createUser'}"];
    let mut server = Server::listening(&mut pandod(&dir, &[&full[..], &filter].concat()));
    assert!(server.connect().unwrap().run("test", user("ann")).is_none());
    assert_eq!(server.child.wait().unwrap().code(), Some(14));

    let nowhere = ["--auditDestination", "file", "--auditFormat", "JSON", "--auditPath", "none/audit.json"];
    let (code, out) = run(&dir, &nowhere);
    assert_eq!(code, 1);
    assert!(String::from_utf8(out.stdout).unwrap().contains("The audit log cannot be opened"));
    let (code, out) = run(&dir, &["--auditDestination", "console", "--auditFilter", "{a: {$nope: 1}}"]);
    assert_eq!(code, 2);
    assert!(String::from_utf8(out.stderr).unwrap().contains("Failed to parse the audit filter"));
}

#[test]
fn the_console_shows_events_beside_the_log() {
    let dir = Dir::new("audit-console");
    let server = Server::listening(&mut pandod(&dir, &["--auditDestination", "console"]));
    signal(&server, "-TERM");
    let shown = server.lines.iter().filter(|l| l.starts_with("{\"atype\":\"startup\"")).count();
    assert_eq!(shown, 1, "{:?}", server.lines);
}

#[test]
fn whoever_guesses_fills_the_audit_log_and_not_the_servers() {
    let dir = Dir::new("audit-guess");
    let server = Server::listening(&mut pandod(&dir, &TO_FILE));
    let binary = |text: &str| {
        pando_bson::Bson::Binary(pando_bson::Binary { subtype: 0, bytes: text.as_bytes().to_vec() })
    };
    // All begin before the first fails, as the next ones would have to wait.
    let mut guessers: Vec<_> = (0..30).map(|_| server.connect().unwrap()).collect();
    for c in &mut guessers {
        let first = binary("n,,n=ann,r=abcdefghijkl");
        c.ok("test", doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": first });
    }
    for c in &mut guessers {
        let proof = binary("c=biws,r=wrong,p=AAAA");
        let reply = c.run("test", doc! { "saslContinue": 1, "conversationId": 1, "payload": proof }).unwrap();
        assert_eq!(reply.get("code").and_then(|v| v.as_i64()), Some(18), "{reply}");
    }
    let failures = |text: &str, part: &str| text.lines().filter(|l| l.contains(part)).count();
    let audited = dir.text("audit.json");
    assert_eq!(failures(&audited, "\"atype\":\"authenticate\""), 30);
    assert_eq!(failures(&audited, "\"result\":18}"), 30);
    let mut c = server.connect().unwrap();
    let log = c.ok("admin", doc! { "getLog": "global" });
    let lines = log.get("log").and_then(|v| v.as_array()).unwrap();
    let told = lines.iter().filter(|e| e.value().as_str().unwrap_or_default().contains("\"id\":5286307,"));
    assert_eq!(told.count(), 20);
    let status = c.ok("admin", doc! { "serverStatus": 1 });
    let left_out = status.get_path("security.authentication.failuresNotLogged");
    assert_eq!(left_out.and_then(|v| v.as_i64()), Some(10));
}

/// Files below a folder.
fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    for e in std::fs::read_dir(dir).unwrap() {
        let path = e.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// What stands for a secret, and its forms on the wire.
const CANARY: &str = "c4naryS3cret";

#[test]
fn no_secret_reaches_a_log() {
    let dir = Dir::new("audit-canary");
    let loud =
        ["--setParameter", "logLevel=5", "--setParameter", "auditAuthorizationSuccess=true", "--slowms", "0"];
    let server = Server::listening(&mut pandod(&dir, &[&TO_FILE[..], &loud].concat()));
    let mut c = server.connect().unwrap();
    for db in ["test", "admin"] {
        c.ok(db, doc! { "profile": 2, "slowms": 0 });
    }
    for (db, command) in commands_with_secrets() {
        // Most of them fail, which is the point.
        let reply = c.run(db, command);
        let cursor = reply.as_ref().and_then(|r| r.get_path("cursor.id")).and_then(|v| v.as_i64());
        if let Some(id) = cursor.filter(|id| *id != 0) {
            c.ok(db, doc! { "getMore": id, "collection": "system.users", "batchSize": 1 });
        }
    }
    // A profile is written a little later.
    until("the profiles", || {
        let found = c.ok("test", doc! { "find": "system.profile", "filter": { "command.ping": "the last" } });
        let _ = c.run("test", doc! { "ping": "the last" });
        found.get_path("cursor.firstBatch").and_then(|v| v.as_array()).is_some_and(|b| !b.is_empty())
    });
    let mut shown = vec![("the audit log", dir.text("audit.json"))];
    for db in ["test", "admin"] {
        let profile = c.ok(db, doc! { "find": "system.profile", "batchSize": 10_000 });
        shown.push(("a profile", profile.to_string()));
    }
    shown.push(("the log", c.ok("admin", doc! { "getLog": "global" }).to_string()));
    for command in [
        doc! { "currentOp": 1, "$all": true },
        doc! { "serverStatus": 1 },
        doc! { "getDiagnosticData": 1 },
        doc! { "getCmdLineOpts": 1 },
        doc! { "getParameter": "*" },
        doc! { "usersInfo": 1 },
    ] {
        let reply = c.run("admin", command).unwrap().to_string();
        shown.push(("an answer", reply));
    }
    let base64 = pando_bson::extjson::base64(CANARY.as_bytes());
    // What is read of it does not depend on where the text begins.
    let stem = &base64[..base64.len() - 4];
    for (what, text) in &shown {
        for form in [CANARY, stem] {
            let at = text.find(form);
            let around = at.map(|at| &text[at.saturating_sub(400)..(at + 40).min(text.len())]);
            assert!(at.is_none(), "{what} holds a secret: {}", around.unwrap_or_default());
        }
    }
    // It was asked for and the logs are not empty.
    assert!(shown[0].1.contains("\"command\":\"createUser\""));
    assert!(shown[3].1.contains("Slow query") && shown[3].1.contains("createUser"));
    // Nothing in the data files either, but for what a user keeps.
    let mut all = Vec::new();
    files(&dir.path("data"), &mut all);
    assert!(!all.is_empty());
    for path in all {
        let bytes = std::fs::read(&path).unwrap();
        let held = bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes());
        assert!(!held, "{}", path.display());
    }
}

#[test]
fn keys_of_members_reach_no_log() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new("audit-keys");
    std::fs::write(dir.path("key"), format!("- {CANARY}\n- {}\n", CANARY.repeat(2))).unwrap();
    std::fs::set_permissions(dir.path("key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let member = ["--replSet", "rs", "--keyFile", "key", "--setParameter", "logLevel=5", "--slowms", "0"];
    let server = Server::listening(&mut pandod(&dir, &[&TO_FILE[..], &member].concat()));
    let mut c = server.connect().unwrap();
    let host = format!("127.0.0.1:{}", server.port);
    let config = doc! { "_id": "rs", "members": [{ "_id": 0, "host": host }] };
    c.ok("admin", doc! { "replSetInitiate": config });
    let root = doc! { "createUser": "root", "pwd": CANARY, "roles": ["root"] };
    until("the first user", || {
        c.run("admin", root.clone()).is_some_and(|r| r.get("ok").and_then(|v| v.as_f64()) == Some(1.0))
    });
    // Whoever is refused is told nothing, and so are the logs.
    for command in [doc! { "getCmdLineOpts": 1 }, doc! { "rotateCertificates": 1 }, root] {
        assert!(!c.run("admin", command).unwrap().to_string().contains(CANARY));
    }
    signal(&server, "-TERM");
    until("the end", || dir.text("audit.json").contains("\"atype\":\"shutdown\""));
    assert!(!dir.text("audit.json").contains(CANARY) && !server.lines.iter().any(|l| l.contains(CANARY)));
    assert!(dir.text("audit.json").contains("\"keyFile\":\"key\""), "the options of the start are there");
}

/// Everything that carries a password or a message of a login: right, wrong, and of the wrong type.
fn commands_with_secrets() -> Vec<(&'static str, Document)> {
    let none = Vec::<pando_bson::Bson>::new;
    let binary =
        || pando_bson::Bson::Binary(pando_bson::Binary { subtype: 0, bytes: CANARY.as_bytes().to_vec() });
    let sasl_binary =
        || pando_bson::Bson::Binary(pando_bson::Binary { subtype: 0, bytes: CANARY.repeat(2).into_bytes() });
    vec![
        ("test", doc! { "createUser": "ann", "pwd": CANARY, "roles": none() }),
        // Once more: it is there.
        ("test", doc! { "createUser": "ann", "pwd": CANARY, "roles": none() }),
        ("test", doc! { "createUser": "bob", "pwd": CANARY, "roles": ["nosuch"] }),
        ("test", doc! { "createUser": "bob", "pwd": { "a": CANARY }, "roles": none() }),
        ("test", doc! { "createUser": "bob", "pwd": [CANARY], "roles": none() }),
        ("test", doc! { "createUser": "bob", "pwd": binary(), "roles": none() }),
        ("test", doc! { "createUser": "bob", "password": CANARY, "roles": none() }),
        ("test", doc! { "createUser": "bob", "pwd": CANARY, "digestPassword": false, "roles": none() }),
        ("test", doc! { "createUser": "bob", "pwd": CANARY, "digestPassword": CANARY, "roles": none() }),
        ("test", doc! { "createUser": "bob", "pwd": CANARY, "roles": CANARY.len() as i32 }),
        ("test", doc! { "createUser": { "pwd": CANARY }, "roles": none() }),
        ("test", doc! { "createUser": 7, "pwd": CANARY }),
        ("local", doc! { "createUser": "bob", "pwd": CANARY, "roles": none() }),
        ("$external", doc! { "createUser": "bob", "pwd": CANARY, "roles": none() }),
        ("test", doc! { "updateUser": "ann", "pwd": CANARY }),
        ("test", doc! { "updateUser": "nobody", "pwd": CANARY }),
        ("test", doc! { "updateUser": "ann", "pwd": binary() }),
        ("test", doc! { "updateUser": "ann", "passwd": CANARY }),
        (
            "test",
            doc! { "updateUser": "ann", "pwd": CANARY, "digestPassword": false, "mechanisms": ["SCRAM-SHA-256"] },
        ),
        ("test", doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": sasl_binary() }),
        ("test", doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": CANARY }),
        ("test", doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": { "a": CANARY } }),
        ("test", doc! { "saslStart": 1, "mechanism": "PLAIN", "payload": sasl_binary() }),
        ("test", doc! { "saslStart": 1, "payload": sasl_binary() }),
        (
            "test",
            doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-1", "payload": sasl_binary(), "pwd": CANARY },
        ),
        ("test", doc! { "saslContinue": 1, "conversationId": 1, "payload": sasl_binary() }),
        ("test", doc! { "saslContinue": 1, "conversationId": CANARY, "payload": CANARY }),
        (
            "test",
            doc! { "authenticate": 1, "mechanism": "MONGODB-CR", "user": "ann", "nonce": CANARY, "key": CANARY },
        ),
        ("test", doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "user": "ann", "key": CANARY }),
        ("test", doc! { "getnonce": CANARY }),
        ("admin", doc! { "copydb": 1, "fromhost": "h", "username": "u", "nonce": "n", "key": CANARY }),
        ("admin", doc! { "copydbsaslstart": 1, "payload": CANARY }),
        (
            "test",
            doc! { "hello": 1, "speculativeAuthenticate": { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": sasl_binary(), "db": "test" } },
        ),
        (
            "test",
            doc! { "isMaster": 1, "speculativeAuthenticate": { "authenticate": 1, "key": CANARY, "db": "test" } },
        ),
        ("test", doc! { "hello": 1, "speculativeAuthenticate": { "nosuch": CANARY } }),
        ("test", doc! { "explain": { "createUser": "bob", "pwd": CANARY, "roles": none() } }),
        ("test", doc! { "explain": { "updateUser": "ann", "pwd": CANARY }, "verbosity": "queryPlanner" }),
        ("test", doc! { "explain": { "creatUser": "ann", "pwd": CANARY } }),
        ("test", doc! { "creatUser": "ann", "pwd": CANARY }),
        (
            "admin",
            doc! { "applyOps": [{ "op": "c", "ns": "admin.system.users", "o": { "createUser": CANARY } }] },
        ),
        ("admin", doc! { "setParameter": 1, "nosuchPassword": CANARY }),
    ]
}
