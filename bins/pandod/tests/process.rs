//! The binary as launchers and service managers see it: exit codes, files, first lines.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use common::Server;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
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
    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn pandod(dir: &Dir, args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_pandod"));
    c.arg0("mongod").current_dir(&dir.0).args(args).stdin(Stdio::null());
    c
}

fn run(dir: &Dir, args: &[&str]) -> (i32, Output) {
    let out = pandod(dir, args).output().unwrap();
    (out.status.code().unwrap_or(-1), out)
}

fn start(dir: &Dir, args: &[&str]) -> Server {
    let base = ["--dbpath", "data", "--port", "0", "--nounixsocket"];
    Server::listening(&mut pandod(dir, &[&base, args].concat()))
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

fn wait(child: &mut Child) -> i32 {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        assert!(Instant::now() < until, "the server does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn lock_len(dir: &Dir) -> u64 {
    std::fs::metadata(dir.file("data/mongod.lock")).unwrap().len()
}

#[test]
fn version_and_help_answer_launchers() {
    let dir = Dir::new("version");
    let (code, out) = run(&dir, &["--version"]);
    assert_eq!(code, 0);
    assert!(String::from_utf8(out.stdout).unwrap().starts_with("db version v7.0.0\n"));
    let (code, out) = run(&dir, &["--help"]);
    assert_eq!(code, 0);
    let help = String::from_utf8(out.stdout).unwrap();
    for option in ["--port", "--dbpath", "--replSet", "--logpath", "--fork", "--wiredTigerCacheSizeGB"] {
        assert!(help.lines().any(|l| l.trim_start().starts_with(option)), "{option}");
    }
}

#[test]
fn what_cannot_work_is_refused_with_code_2() {
    let dir = Dir::new("refused");
    for (args, words) in [
        (&["--foo"][..], "unrecognised option '--foo'"),
        (&["--transitionToAuth"], "--transitionToAuth must be used with keyFile"),
        (&["--tlsMode", "requireTLS"], "BadValue: need tlsCertificateKeyFile"),
        (&["--shardsvr"], "Cannot start a shardsvr as a standalone server"),
        (&["--config", "/nonexistent"], "No such file or directory"),
        (&["--setParameter", "nosuch=1"], "Unknown --setParameter 'nosuch'"),
        (&["--fork"], "--fork has to be used with --logpath"),
    ] {
        let (code, out) = run(&dir, args);
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!(code, 2, "{args:?}");
        assert!(err.contains(words), "{args:?}: {err}");
    }
}

#[test]
fn failed_starts_have_mongods_exit_codes_and_leave_no_trace() {
    let dir = Dir::new("failed");
    let (code, out) = run(&dir, &["--dbpath", "nowhere", "--port", "0", "--nounixsocket"]);
    assert_eq!(code, 100);
    assert!(String::from_utf8(out.stdout).unwrap().contains("NonExistentPath"));

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, out) = run(&dir, &["--dbpath", "data", "--port", &port, "--nounixsocket"]);
    assert_eq!(code, 48);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("\"id\":20568,") && text.contains("Address already in use"), "{text}");
    assert_eq!(lock_len(&dir), 0);

    let mut server = start(&dir, &[]);
    let (code, out) = run(&dir, &["--dbpath", "data", "--port", "0", "--nounixsocket"]);
    assert_eq!(code, 100);
    assert!(String::from_utf8(out.stdout).unwrap().contains("DBPathInUse"));
    signal(server.child.id(), "-TERM");
    assert_eq!(wait(&mut server.child), 0);
}

#[test]
fn signals_stop_cleanly_and_empty_the_lock_file() {
    let dir = Dir::new("signals");
    for name in ["-TERM", "-INT"] {
        let mut server = start(&dir, &["--pidfilepath", "pid"]);
        TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        assert!(server.lines.iter().all(|l| l.starts_with('{')), "launchers stop at other lines");
        assert!(!server.lines.iter().any(|l| l.contains("unclean")));
        assert_eq!(dir.text("pid").trim(), server.child.id().to_string());
        assert!(lock_len(&dir) > 0);
        signal(server.child.id(), name);
        assert_eq!(wait(&mut server.child), 0);
        assert_eq!(lock_len(&dir), 0);
    }
    let mut server = start(&dir, &[]);
    signal(server.child.id(), "-KILL");
    wait(&mut server.child);
    let mut server = start(&dir, &[]);
    assert!(server.lines.iter().any(|l| l.contains("Detected unclean shutdown")));
    signal(server.child.id(), "-TERM");
    assert_eq!(wait(&mut server.child), 0);
}

#[test]
fn fork_returns_when_clients_can_connect_and_shutdown_ends_it() {
    let dir = Dir::new("fork");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = format!(
        "net:\n  port: {port}\n  unixDomainSocket:\n    enabled: true\n    pathPrefix: {}\nstorage:\n  dbPath: \
         data\nsystemLog:\n  destination: file\n  path: log\nprocessManagement:\n  fork: true\n  pidFilePath: pid\n",
        dir.0.display()
    );
    std::fs::write(dir.file("config"), config).unwrap();
    let (code, out) = run(&dir, &["--config", "config"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("forked process: ") && text.contains("child process started successfully"));
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert!(dir.file(&format!("mongodb-{port}.sock")).exists());

    signal(dir.text("pid").trim().parse().unwrap(), "-USR1");
    let until = Instant::now() + Duration::from_secs(10);
    while count(&dir.0, "log.") == 0 {
        assert!(Instant::now() < until, "the log was not rotated");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (code, out) = run(&dir, &["--dbpath", "data", "--shutdown"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(code, 0);
    assert!(text.contains("Killing process with pid: "), "{text}");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(!dir.file(&format!("mongodb-{port}.sock")).exists());
    assert_eq!(run(&dir, &["--dbpath", "data", "--shutdown"]).0, 1, "nobody to stop");
    let mut log = String::new();
    std::fs::File::open(dir.file("log")).unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains("\"exitCode\":0"), "{log}");
}

fn count(dir: &Path, prefix: &str) -> usize {
    let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name());
    names.filter(|n| n.to_string_lossy().starts_with(prefix)).count()
}

/// A server with some documents that has ended cleanly.
fn filled(dir: &Dir) {
    let mut server = start(dir, &[]);
    let mut c = server.connect().unwrap();
    for i in 0..300 {
        let doc = pando_bson::doc! { "_id": i, "a": i, "s": "x".repeat(1000) };
        let mut insert = pando_bson::doc! { "insert": "c" };
        insert.push("documents", vec![pando_bson::Bson::from(doc)]);
        c.ok("test", insert);
    }
    let mut index = pando_bson::doc! { "createIndexes": "c" };
    let spec = pando_bson::doc! { "key": { "a": 1 }, "name": "a" };
    index.push("indexes", vec![pando_bson::Bson::from(spec)]);
    c.ok("test", index);
    signal(server.child.id(), "-TERM");
    assert_eq!(wait(&mut server.child), 0);
}

#[test]
fn repair_checks_all_data_and_names_the_file_that_cannot_be_read() {
    let dir = Dir::new("repair");
    filled(&dir);
    let repair = ["--dbpath", "data", "--port", "0", "--nounixsocket", "--repair"];
    let (code, out) = run(&dir, &repair);
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&out.stdout));
    // The tree of records that holds the collection.
    let trees = std::fs::read_dir(dir.file("data/tables")).unwrap().map(|t| t.unwrap().path());
    let records = trees.filter(|t| t.file_name().is_some_and(|n| n.to_string_lossy().starts_with("records")));
    let tables = records.filter_map(|t| std::fs::read_dir(t.join("tables")).ok()).flatten();
    let size = |t: &PathBuf| std::fs::metadata(t).unwrap().len();
    let table = tables.map(|t| t.unwrap().path()).max_by_key(size).unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[60_000] ^= 4;
    std::fs::write(&table, &bytes).unwrap();
    let (code, out) = run(&dir, &repair);
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains(table.file_name().unwrap().to_str().unwrap()) && said.contains("is damaged"),
        "{said}"
    );
    // A list of tables that is damaged: it does not start at all, and says which file and what to do.
    bytes[60_000] ^= 4;
    std::fs::write(&table, bytes).unwrap();
    let current = table.parent().unwrap().with_file_name("current");
    let mut bytes = std::fs::read(&current).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&current, bytes).unwrap();
    let (code, out) = run(&dir, &repair);
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert_eq!(code, 100, "{said}");
    assert!(said.contains("tables/records") && said.contains("Empty it and let this member copy"), "{said}");
}

/// A key that others may read is no secret.
#[test]
fn a_keyfile_that_cannot_be_used_stops_the_start() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new("keyfile");
    let key = dir.0.join("key");
    let refused = |words: &str| {
        let (code, out) = run(&dir, &["--dbpath", ".", "--port", "0", "--keyFile", "key"]);
        let said = String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap();
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(words), "{said}");
    };
    refused("No such file or directory");
    std::fs::write(&key, "c2VjcmV0IGtleQ==").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    refused("are too open");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&key, "no key!").unwrap();
    refused("key");
}
