//! Two ends on this machine, with certificates that are made on the spot.
#![allow(dead_code, clippy::unwrap_used, clippy::disallowed_methods)]

use pando_base::Millis;
use pando_env::tls::{Certificates, HandshakeFailed, Secured, TlsMode};
use pando_env::{Env, Log, Net, Stream};
use pando_tls::local::Authority;
use pando_tls::{ReadFile, Settings, Tls, TlsNet};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

pub(crate) fn run<F: Future<Output = ()>>(test: F) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(test);
}

/// Files in memory.
#[derive(Clone, Default)]
pub(crate) struct Files(Arc<Mutex<BTreeMap<PathBuf, String>>>);

impl Files {
    pub(crate) fn put(&self, name: &str, text: impl Into<String>) {
        self.0.lock().unwrap().insert(PathBuf::from(name), text.into());
    }
    pub(crate) fn remove(&self, name: &str) {
        self.0.lock().unwrap().remove(Path::new(name));
    }
    pub(crate) fn reader(&self) -> ReadFile {
        let files = self.0.clone();
        Arc::new(move |path| {
            let found = files.lock().unwrap().get(path).map(|text| text.clone().into_bytes());
            found.ok_or_else(|| io::ErrorKind::NotFound.into())
        })
    }
}

pub(crate) fn env() -> Env {
    let folder = std::env::temp_dir().join(format!("pando-tls-{}", std::process::id()));
    pando_env_tokio::env(&folder, Log::none(), pando_env_tokio::RealNet::default()).unwrap()
}

pub(crate) fn now() -> Millis {
    env().clock.wall_ms()
}

pub(crate) fn authority(name: &str) -> Authority {
    Authority::new(name, now()).unwrap()
}

/// With `key.pem` as its own, believing `ca.pem`.
pub(crate) fn settings(mode: TlsMode) -> Settings {
    Settings {
        mode,
        certificate_key_file: Some("key.pem".into()),
        ca_file: Some("ca.pem".into()),
        ..Settings::default()
    }
}

/// One end.
pub(crate) struct Side {
    pub(crate) tls: Arc<Tls>,
    pub(crate) net: TlsNet,
}

impl Side {
    pub(crate) fn new(files: &Files, settings: Settings) -> Side {
        Side::within(env(), files, settings)
    }
    pub(crate) fn within(env: Env, files: &Files, settings: Settings) -> Side {
        let tls = Tls::load(env.clone(), settings, files.reader()).unwrap();
        Side { net: TlsNet::new(env.net.clone(), tls.clone()), tls }
    }
    /// With this key and these authorities.
    pub(crate) fn of(mode: TlsMode, key: &str, ca: &str) -> Side {
        Side::changed(mode, key, ca, |_| {})
    }
    pub(crate) fn changed(mode: TlsMode, key: &str, ca: &str, change: impl FnOnce(&mut Settings)) -> Side {
        let files = Files::default();
        files.put("key.pem", key);
        files.put("ca.pem", ca);
        let mut settings = settings(mode);
        change(&mut settings);
        Side::new(&files, settings)
    }
    pub(crate) fn failed(&self) -> (u64, u64) {
        self.tls.failed()
    }
}

/// What both ends of one connection made of it.
#[derive(Debug)]
pub(crate) struct Met {
    /// Of the one that was dialed; `None` = plain.
    pub(crate) accepted: Result<Option<Secured>, String>,
    /// Of the one that dialed.
    pub(crate) dialed: Result<(), String>,
}

fn words(e: &io::Error) -> String {
    HandshakeFailed::in_error(e).map_or_else(|| format!("no handshake: {e}"), str::to_owned)
}

async fn serve(mut stream: Box<dyn Stream>) -> Result<Option<Secured>, String> {
    stream.establish().await.map_err(|e| words(&e))?;
    let mut said = Vec::new();
    while !said.ends_with(b"ping") {
        if stream.read(&mut said, 100).await.map_err(|e| words(&e))? == 0 {
            return Err("closed".to_owned());
        }
    }
    stream.write_all(b"pong").await.map_err(|e| words(&e))?;
    Ok(stream.secured().cloned())
}

async fn ask(net: &dyn Net, addr: String) -> Result<(), String> {
    let mut stream = net.connect(addr).await.map_err(|e| words(&e))?;
    // A message by its form: a plain one begins so.
    let message = [20u8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0, b'p', b'i', b'n', b'g'];
    stream.write_all(&message).await.map_err(|e| words(&e))?;
    let mut heard = Vec::new();
    match stream.read(&mut heard, 100).await {
        Ok(0) => Err("closed".to_owned()),
        Ok(_) => Ok(()),
        Err(e) => Err(words(&e)),
    }
}

/// `client` dials `server` under the name `host`, and they exchange a word.
pub(crate) async fn meet(server: &dyn Net, client: &dyn Net, host: &str) -> Met {
    let mut door = server.listen("127.0.0.1:0".to_owned()).await.unwrap();
    let port = door.local_addr().rsplit_once(':').unwrap().1.to_owned();
    let accepted = tokio::spawn(async move { serve(door.accept().await.unwrap()).await });
    let dialed = ask(client, format!("{host}:{port}")).await;
    Met { accepted: accepted.await.unwrap(), dialed }
}
