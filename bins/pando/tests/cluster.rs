//! `pando up --shards 2` as a user sees it: real processes, a router killed, data that stay, a shard more.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod several;

use pando_auth::Password;
use pando_base::ErrorCode;
use pando_bson::{Bson, DocBuf, Document, RawDoc, doc};
use pando_env::tls::TlsMode;
use pando_env::{Env, Log};
use pando_env_tokio::RealNet;
use pando_rpc::{By, Connection, Failure, LoginAs, Options, UserLogin};
use pando_tls::{ReadFile, Settings, Tls, TlsNet};
use several::{Dir, PATIENCE, Up, free_ports, on_any, pando, pid_in, refused, signal, wait};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

const DOCUMENTS: i32 = 200;

/// As the first router answers it.
fn ask(port: u16, db: &str, command: &Document) -> Document {
    on_any(port, 1, db, command)
}

fn count(port: u16) -> Option<i64> {
    ask(port, "t", &doc! { "count": "c" }).get("n").and_then(Bson::as_i64)
}

fn shards(port: u16) -> usize {
    match ask(port, "admin", &doc! { "listShards": 1 }).get("shards") {
        Some(Bson::Array(shards)) => shards.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cluster_survives_the_loss_of_a_router_and_a_restart_and_takes_a_shard_more() {
    let dir = Dir::new("cluster");
    // Two routers, a config server, three shards in the end.
    let port = free_ports(6);
    let two = ["--shards", "2", "--routers", "2"];
    let mut up = Up::start(&dir.0, port, &two);
    let uri = up.until("connect ");
    assert!(uri.ends_with(&format!("mongodb://127.0.0.1:{port},127.0.0.1:{}/", port + 4)), "{uri}");
    let router = pid_in(&up.until(&format!("routers 127.0.0.1:{port} ")));
    up.until("config 127.0.0.1");
    up.until("shard2 has 0 chunks");
    assert_eq!(shards(port), 2);
    ask(port, "admin", &doc! { "shardCollection": "t.c", "key": { "_id": "hashed" } });
    up.until("shard2 has 2 chunks");
    let documents: Vec<Bson> = (0..DOCUMENTS).map(|id| doc! { "_id": id }.into()).collect();
    ask(port, "t", &doc! { "insert": "c", "documents": documents });
    assert_eq!(count(port), Some(DOCUMENTS.into()));
    for shard in [port + 2, port + 3] {
        let part = on_any(shard, 1, "t", &doc! { "count": "c" }).get("n").and_then(Bson::as_i64);
        assert!(part.is_some_and(|n| n > 0 && n < DOCUMENTS.into()), "{part:?} on {shard}");
    }

    signal("-KILL", router);
    up.until(&format!("127.0.0.1:{port} ended (signal 9)"));
    up.until(&format!("127.0.0.1:{port} is started again"));
    assert_eq!(count(port), Some(DOCUMENTS.into()));
    assert_eq!(up.interrupt(), 0);

    let mut up = Up::start(&dir.0, port, &["--shards=3"]);
    up.until("shard3 has 0 chunks");
    assert_eq!((shards(port), count(port)), (3, Some(DOCUMENTS.into())));
    assert_eq!(up.interrupt(), 0);
    for set in ["config", "shard1", "shard2", "shard3"] {
        let lock = dir.0.join(format!("pando-data/cluster/{set}/member1/mongod.lock"));
        assert_eq!(std::fs::metadata(lock).unwrap().len(), 0, "every server stopped cleanly");
    }

    let (code, text) = refused(&dir.0, &["up", "--shards", "2", "--port", &port.to_string()]);
    assert!(code == 100 && text.contains("holds a cluster of 3 shards: say --shards 3"), "{text}");
}

#[test]
fn a_terminal_that_is_closed_leaves_no_process_behind() {
    let dir = Dir::new("closed");
    let port = free_ports(3);
    let mut up = pando(&dir.0, &["up", "--shards", "1", "--port", &port.to_string()]);
    let mut child = up.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|l| l.contains("shard1 has 0 chunks")));
    drop(lines);
    signal("-HUP", child.id());
    assert_eq!(wait(&mut child), 0);
    assert!((port..port + 3).all(|p| TcpListener::bind(("127.0.0.1", p)).is_ok()), "all have ended");
}

/// A client with the certificate of `pando up --tls`.
fn secured(dir: &Path) -> Env {
    let plain = pando_env_tokio::env(dir, Log::none(), RealNet::default()).unwrap();
    let settings = Settings {
        mode: TlsMode::Require,
        certificate_key_file: Some(dir.join("pando-data/tls/client.pem")),
        ca_file: Some(dir.join("pando-data/tls/ca.pem")),
        ..Settings::default()
    };
    let read: ReadFile = Arc::new(|path| std::fs::read(path));
    let tls = Tls::load(plain.clone(), settings, read).unwrap();
    Env { net: Arc::new(TlsNet::new(plain.net.clone(), tls)), ..plain }
}

async fn log_in(env: &Env, port: u16, name: &str, db: &str, by: By) -> Result<Connection, Failure> {
    let user = UserLogin { name: name.to_owned(), db: db.to_owned(), by };
    let options = Options { internal: false, login: LoginAs::User(Arc::new(user)), ..Options::default() };
    Connection::connect(env, &format!("127.0.0.1:{port}"), &options).await
}

async fn call(c: &mut Connection, db: &str, mut command: Document) -> Result<DocBuf, Failure> {
    command.push("$db", db);
    c.call(&command.to_raw(), PATIENCE).await.map(RawDoc::to_buf)
}

#[test]
fn a_cluster_with_logins_and_certificates_lets_in_whom_its_config_servers_know() {
    let dir = Dir::new("cluster-secured");
    let port = free_ports(3);
    let mut up = Up::start(&dir.0, port, &["--shards", "1", "--auth", "--tls"]);
    let uri = up.until("connect ");
    let password = uri.split("admin:").nth(1).unwrap().split('@').next().unwrap().to_owned();
    assert!(uri.contains(&format!("@127.0.0.1:{port}/?tls=true&tlsCAFile=")), "{uri}");
    up.until("shard1 has 0 chunks");
    pando_env_tokio::runtime().unwrap().block_on(async {
        let env = secured(&dir.0);
        let by_password = |text: &str| By::Password(Password::new(text), None);
        let refused = log_in(&env, port, "admin", "admin", by_password("guess")).await.err().unwrap();
        assert_eq!(refused.error.code, ErrorCode::AuthenticationFailed);
        let mut admin = log_in(&env, port, "admin", "admin", by_password(&password)).await.unwrap();
        let shard = doc! { "shardCollection": "t.c", "key": { "_id": "hashed" } };
        call(&mut admin, "admin", shard).await.unwrap();
        let one = vec![Bson::from(doc! { "_id": 1 })];
        call(&mut admin, "t", doc! { "insert": "c", "documents": one }).await.unwrap();
        // Whose certificate names a user of the config servers.
        let subject = "CN=you,OU=Clients,O=PandoDB";
        assert!(log_in(&env, port, subject, "$external", By::Certificate).await.is_err());
        let role = vec![Bson::from(doc! { "role": "read", "db": "t" })];
        let user = doc! { "createUser": subject, "roles": role };
        call(&mut admin, "$external", user).await.unwrap();
        let mut reader = log_in(&env, port, subject, "$external", By::Certificate).await.unwrap();
        call(&mut reader, "t", doc! { "find": "c" }).await.unwrap();
        let refused = call(&mut reader, "t", doc! { "drop": "c" }).await.unwrap_err();
        assert_eq!(refused.error.code, ErrorCode::Unauthorized);
        let status = call(&mut admin, "admin", doc! { "serverStatus": 1 }).await.unwrap();
        assert!(status.get_path("security.SSLServerSubjectName").is_some(), "{status}");
        call(&mut admin, "admin", doc! { "rotateCertificates": 1 }).await.unwrap();
        let plain = pando_env_tokio::env(&dir.0, Log::none(), RealNet::default()).unwrap();
        assert!(log_in(&plain, port, "admin", "admin", by_password(&password)).await.is_err());
    });
    assert_eq!(up.interrupt(), 0);
}

#[test]
fn a_router_reads_its_keyfile_before_it_listens() {
    let dir = Dir::new("router-keyfile");
    let router = ["router", "--configdb", "c/127.0.0.1:1", "--port", "0", "--keyFile", "key"];
    let (code, _) = refused(&dir.0, &router);
    assert_eq!(code, 1, "it is not there");
    std::fs::write(dir.0.join("key"), "a key").unwrap();
    std::fs::set_permissions(dir.0.join("key"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let (code, _) = refused(&dir.0, &router);
    assert_eq!(code, 1, "others may read it");
    for (option, words) in [
        (&["--auth"][..], "unrecognised option '--auth'"),
        (&["--clusterAuthMode", "x509"], "cannot have x.509 cluster authentication in disabled mode"),
        (&["--tlsMode", "requireTLS", "--tlsCAFile", "none"], "tlsCertificateKeyFile"),
    ] {
        let (code, text) = refused(&dir.0, &[&["router", "--configdb", "c/127.0.0.1:1"], option].concat());
        assert!(code != 0 && text.contains(words), "{option:?}: {code} {text}");
    }
}

#[test]
fn what_no_cluster_can_be_is_refused_with_words_that_help() {
    let dir = Dir::new("refused-cluster");
    for (args, words) in [
        (&["--shards", "0"][..], "--shards takes a number from 1 to 32"),
        (&["--shards=33"], "--shards takes a number from 1 to 32"),
        (&["--shards", "many"], "--shards takes a number from 1 to 32"),
        (&["--shards", "2", "--routers", "0"], "--routers takes a number from 1 to 8"),
        (&["--routers", "1"], "--routers goes together with --shards"),
        (&["--routers", "1", "--members", "3"], "--routers goes together with --shards"),
        (&["--shards", "2", "--members", "9"], "an odd number from 1 to 7"),
        (&["--shards"], "--shards needs a value"),
        (&["--shards", "2", "--replSet", "x"], "--replSet does not go together with --shards"),
        (&["--shards", "2", "--fork"], "--fork does not go together with --members or --shards"),
        (&["--shards", "32", "--members", "7", "--port", "65400"], "--port must leave room"),
    ] {
        let (code, text) = refused(&dir.0, &[&["up"], args].concat());
        assert!(code == 2 && text.contains(words), "{args:?}: {text}");
    }
    assert!(!dir.0.join("pando-data").exists(), "nothing was made");
}
