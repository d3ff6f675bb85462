//! Servers with TLS as processes: who may connect, what they tell, certificates that change, and members among themselves.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use common::{PATIENCE, Server};
use pando_bson::{DocBuf, Document, RawDoc, doc};
use pando_env::tls::TlsMode;
use pando_env::{Env, Log};
use pando_env_tokio::RealNet;
use pando_rpc::{Connection, Failure, Kind, Options};
use pando_tls::local::{Authority, Wanted};
use pando_tls::{ReadFile, Settings, Tls, TlsNet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A folder with `ca.pem`, `client.pem` and certificates of servers.
struct Ground {
    dir: PathBuf,
    authority: Authority,
    plain: Env,
    env: Env,
}

impl Ground {
    fn new(name: &str) -> Ground {
        let dir = std::env::temp_dir().join(format!("pando-tls-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let plain = pando_env_tokio::env(&dir, Log::none(), RealNet::default()).unwrap();
        let mut authority = Authority::new("test", plain.clock.wall_ms()).unwrap();
        std::fs::write(dir.join("ca.pem"), authority.pem()).unwrap();
        let client = authority.issue(&Wanted::client("test")).unwrap();
        std::fs::write(dir.join("client.pem"), client.pem).unwrap();
        let settings = Settings {
            mode: TlsMode::Require,
            certificate_key_file: Some(dir.join("client.pem")),
            ca_file: Some(dir.join("ca.pem")),
            ..Settings::default()
        };
        let read: ReadFile = Arc::new(|path| std::fs::read(path));
        let tls = Tls::load(plain.clone(), settings, read).unwrap();
        let env = Env { net: Arc::new(TlsNet::new(plain.net.clone(), tls)), ..plain.clone() };
        Ground { dir, authority, plain, env }
    }
    /// Makes `<name>.pem` for these hosts.
    fn certificate(&mut self, name: &str, unit: &str, hosts: &[&str]) {
        let wanted = Wanted { unit: unit.to_owned(), ..Wanted::server(hosts) };
        let pem = self.authority.issue(&wanted).unwrap().pem;
        std::fs::write(self.dir.join(name), pem).unwrap();
    }
    fn command(&self, data: &str, options: &[&str]) -> Command {
        let folder = self.dir.join(data);
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_pandod"));
        command.args(["--port", "0", "--nounixsocket", "--dbpath", data, "--tlsCAFile", "ca.pem"]);
        command.args(options).current_dir(&self.dir);
        command
    }
    async fn connect(&self, port: u16) -> Client {
        Client(self.try_connect(&self.env, port).await.unwrap())
    }
    async fn try_connect(&self, env: &Env, port: u16) -> Result<Connection, Failure> {
        let options = Options { internal: false, ..Options::default() };
        Connection::connect(env, &format!("localhost:{port}"), &options).await
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

struct Client(Connection);

impl Client {
    async fn run(&mut self, mut command: Document) -> Result<DocBuf, Failure> {
        if !command.iter().any(|(name, _)| name == "$db") {
            command.push("$db", "admin");
        }
        self.0.call(&command.to_raw(), PATIENCE).await.map(RawDoc::to_buf)
    }
    async fn ok(&mut self, command: Document) -> DocBuf {
        self.run(command).await.unwrap()
    }
}

fn at<'a>(doc: &'a RawDoc, path: &str) -> Option<pando_bson::Value<'a>> {
    match path.split_once('/') {
        Some((head, rest)) => at(doc.get(head)?.as_doc()?, rest),
        None => doc.get(path),
    }
}

fn subject(status: &RawDoc) -> Option<&str> {
    at(status, "security/SSLServerSubjectName")?.as_str()
}

async fn refused_so_far(client: &mut Client) -> Option<i64> {
    let status = client.ok(doc! { "serverStatus": 1 }).await;
    at(&status, "metrics/tls/incomingHandshakesFailed")?.as_i64()
}

fn run<F: Future<Output = ()>>(test: F) {
    pando_env_tokio::runtime().unwrap().block_on(test);
}

const REQUIRE: [&str; 4] = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", "server.pem"];

#[test]
fn a_server_tells_of_its_tls_and_takes_new_certificates_while_it_runs() {
    run(async {
        let mut ground = Ground::new("rotate");
        ground.certificate("server.pem", "First", &["localhost"]);
        let server = Server::listening(&mut ground.command("data", &REQUIRE));
        assert!(server.lines.last().unwrap().contains("\"ssl\":\"on\""));
        let mut client = ground.connect(server.port).await;
        let status = client.ok(doc! { "serverStatus": 1 }).await;
        assert_eq!(subject(&status), Some("CN=localhost,OU=First,O=PandoDB"));
        assert_eq!(at(&status, "security/SSLServerHasCertificateAuthority").unwrap().as_bool(), Some(true));
        assert_eq!(at(&status, "transportSecurity/1.3").unwrap().as_i64(), Some(1));
        let sni = client.ok(doc! { "whatsmysni": 1 }).await;
        assert_eq!(sni.get("sni").unwrap().as_str(), Some("localhost"));

        let plain = ground.try_connect(&ground.plain, server.port).await;
        assert_eq!(plain.err().unwrap().kind, Kind::Reset, "the connection is closed without a word");
        ground.certificate("server.pem", "Second", &["elsewhere"]);
        client.ok(doc! { "rotateCertificates": 1, "message": "it is time" }).await;
        let refused = ground.try_connect(&ground.env, server.port).await.err().unwrap();
        assert_eq!(refused.kind, Kind::Handshake);
        assert!(
            refused.error.message.contains("Hostname: localhost does not match SAN(s): elsewhere"),
            "{refused}"
        );
        // Who was connected stays so.
        let status = client.ok(doc! { "serverStatus": 1 }).await;
        assert_eq!(subject(&status), Some("CN=elsewhere,OU=Second,O=PandoDB"));
        // The other end of the last one may be slower.
        let until = Instant::now() + PATIENCE;
        while refused_so_far(&mut client).await != Some(2) {
            assert!(Instant::now() < until, "two handshakes failed");
        }
        std::fs::write(ground.dir.join("server.pem"), "garbage").unwrap();
        let refused = client.run(doc! { "rotateCertificates": 1 }).await.unwrap_err();
        assert_eq!(refused.error.code, pando_base::ErrorCode::InvalidSSLConfiguration);
        assert_eq!(refused.error.message, "Can not set up PEM key file.");
        let status = client.ok(doc! { "serverStatus": 1 }).await;
        assert_eq!(subject(&status), Some("CN=elsewhere,OU=Second,O=PandoDB"));
    });
}

#[test]
fn a_running_server_begins_to_require_tls() {
    run(async {
        let mut ground = Ground::new("mode");
        ground.certificate("server.pem", "Servers", &["localhost"]);
        let options = ["--tlsMode", "allowTLS", "--tlsCertificateKeyFile", "server.pem"];
        let server = Server::listening(&mut ground.command("data", &options));
        let mut plain = Client(ground.try_connect(&ground.plain, server.port).await.unwrap());
        let mut client = ground.connect(server.port).await;
        let refused = client.run(doc! { "setParameter": 1, "tlsMode": "requireTLS" }).await.unwrap_err();
        let text = "Illegal state transition for tlsMode, attempt to change from allowTLS to requireTLS";
        assert_eq!(refused.error.message, text);
        for mode in ["preferTLS", "requireTLS"] {
            client.ok(doc! { "setParameter": 1, "tlsMode": mode }).await;
        }
        let shown = client.ok(doc! { "getParameter": 1, "tlsMode": 1 }).await;
        assert_eq!(shown.get("tlsMode").unwrap().as_str(), Some("requireTLS"));
        plain.ok(doc! { "ping": 1 }).await;
        assert!(ground.try_connect(&ground.plain, server.port).await.is_err());
        ground.connect(server.port).await.ok(doc! { "ping": 1 }).await;
    });
}

#[test]
fn what_cannot_be_used_stops_the_start() {
    run(async {
        let mut ground = Ground::new("refused");
        ground.certificate("server.pem", "Servers", &["localhost"]);
        std::fs::write(ground.dir.join("garbage.pem"), "garbage").unwrap();
        for (options, code, text) in [
            (
                &["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", "garbage.pem"][..],
                1,
                "Can not set up PEM key file.",
            ),
            (&["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", "none.pem"], 1, "\"code\":140"),
            (&[&REQUIRE[..], &["--tlsCRLFile", "garbage.pem"]].concat(), 1, "Can not set up CRL file."),
            (
                &[&REQUIRE[..], &["--tlsClusterFile", "garbage.pem"]].concat(),
                1,
                "Can not set up ssl clusterFile.",
            ),
            (
                &[&REQUIRE[..], &["--tlsDisabledProtocols", "TLS1_2,TLS1_3"]].concat(),
                1,
                "All supported TLS protocols have been disabled.",
            ),
            (&[&REQUIRE[..], &["--setParameter", "opensslCipherConfig=foo"]].concat(), 1, "no cipher match"),
            (&["--tlsMode", "requireTLS"], 2, "BadValue: need tlsCertificateKeyFile"),
            (&[], 2, "BadValue: need to enable TLS via the sslMode/tlsMode flag"),
        ] {
            let out = ground.command("data", options).output().unwrap();
            let said = String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap();
            assert_eq!(out.status.code(), Some(code), "{options:?}: {said}");
            assert!(said.contains(text), "{options:?}: {said}");
        }
    });
}

/// Initiates a set of these.
async fn initiate(client: &mut Client, ports: &[u16]) -> Result<DocBuf, Failure> {
    let member = |(i, port): (usize, &u16)| {
        pando_bson::Bson::Document(doc! { "_id": i as i32, "host": format!("localhost:{port}").as_str() })
    };
    let members: Vec<_> = ports.iter().enumerate().map(member).collect();
    client.run(doc! { "replSetInitiate": { "_id": "rs", "members": pando_bson::Bson::Array(members) } }).await
}

async fn wait_primary(client: &mut Client) {
    let until = Instant::now() + PATIENCE;
    while client.ok(doc! { "hello": 1 }).await.get("isWritablePrimary").unwrap().as_bool() != Some(true) {
        assert!(Instant::now() < until, "no primary");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn member(ground: &Ground, data: &Path, key: &str) -> Server {
    let data = data.to_str().unwrap();
    let options = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", key, "--replSet", "rs"];
    Server::listening(&mut ground.command(data, &options))
}

#[test]
fn members_speak_tls_and_look_at_each_others_host() {
    run(async {
        let mut ground = Ground::new("set");
        ground.certificate("server.pem", "Servers", &["localhost"]);
        ground.certificate("elsewhere.pem", "Servers", &["elsewhere"]);
        let first = member(&ground, Path::new("one"), "server.pem");
        let stranger = member(&ground, Path::new("stranger"), "elsewhere.pem");
        let second = member(&ground, Path::new("two"), "server.pem");
        let mut client = ground.connect(first.port).await;
        let refused = initiate(&mut client, &[first.port, stranger.port]).await.unwrap_err().to_string();
        let text = "The server certificate does not match the host name. Hostname: localhost does not match SAN(s): \
                    elsewhere, CN: elsewhere";
        assert!(refused.contains(text), "{refused}");
        initiate(&mut client, &[first.port, second.port]).await.unwrap();
        wait_primary(&mut client).await;
        let insert = doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "t", "writeConcern": { "w": 2, "wtimeout": 60_000 } };
        let reply = client.ok(insert).await;
        assert!(reply.get("writeConcernError").is_none(), "{reply:?}");
        let status = ground.connect(second.port).await.ok(doc! { "serverStatus": 1 }).await;
        assert!(
            at(&status, "transportSecurity/1.3").unwrap().as_i64() > Some(1),
            "members connected with TLS"
        );
        let status = client.ok(doc! { "serverStatus": 1 }).await;
        assert!(at(&status, "metrics/tls/outgoingHandshakesFailed").unwrap().as_i64() >= Some(1));
    });
}

/// Logs in by its certificate, once there is a user of its subject: the first user of all.
async fn become_root(client: &mut Client) -> String {
    let by_certificate = || doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external" };
    let unknown = client.run(by_certificate()).await.unwrap_err();
    assert_eq!(unknown.code().0, 11, "{unknown}");
    let told = unknown.to_string();
    let subject = told.split('"').nth(1).unwrap().to_owned();
    let roles = pando_bson::bson_array!({ "role": "root", "db": "admin" });
    let create =
        doc! { "createUser": subject.as_str(), "roles": pando_bson::Bson::Array(roles), "$db": "$external" };
    client.ok(create).await;
    client.ok(by_certificate()).await;
    subject
}

#[test]
fn a_certificate_is_a_login() {
    run(async {
        let mut ground = Ground::new("login");
        ground.certificate("server.pem", "Servers", &["localhost"]);
        let mut options = REQUIRE.to_vec();
        options.push("--auth");
        let server = Server::listening(&mut ground.command("data", &options));
        let mut client = ground.connect(server.port).await;
        let find = || doc! { "find": "c", "$db": "t" };
        assert_eq!(client.run(find()).await.unwrap_err().code().0, 13);
        let subject = become_root(&mut client).await;
        client.ok(find()).await;
        let status = client.ok(doc! { "connectionStatus": 1 }).await;
        assert!(status.to_string().contains(&subject), "{status}");
        let mut other = ground.connect(server.port).await;
        assert_eq!(other.run(find()).await.unwrap_err().code().0, 13);
        let named =
            doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "user": "CN=other", "$db": "$external" };
        assert_eq!(other.run(named).await.unwrap_err().code().0, 18);
    });
}

#[test]
fn members_log_in_with_their_certificates() {
    run(async {
        let mut ground = Ground::new("members");
        ground.certificate("server.pem", "Servers", &["localhost"]);
        let start = |data: &str| {
            let mut options = REQUIRE.to_vec();
            options.extend(["--replSet", "rs", "--clusterAuthMode", "x509"]);
            Server::listening(&mut ground.command(data, &options))
        };
        let (first, second) = (start("one"), start("two"));
        let mut client = ground.connect(first.port).await;
        initiate(&mut client, &[first.port, second.port]).await.unwrap();
        wait_primary(&mut client).await;
        become_root(&mut client).await;
        let insert = doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "t", "writeConcern": { "w": 2, "wtimeout": 60_000 } };
        let reply = client.ok(insert).await;
        assert!(reply.get("writeConcernError").is_none(), "{reply:?}");
        let vote = doc! { "replSetRequestVotes": 1, "setName": "rs" };
        let mut stranger = ground.connect(second.port).await;
        assert_eq!(stranger.run(vote).await.unwrap_err().code().0, 13);
        let status = client.ok(doc! { "serverStatus": 1 }).await;
        let path = "security/authentication/mechanisms/MONGODB-X509/clusterAuthenticate/successful";
        assert!(at(&status, path).unwrap().as_i64() >= Some(1));
    });
}
