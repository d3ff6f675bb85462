//! `pando up --tls`: an authority of the user's own, certificates signed by it, and what is needed to use them.

use pando_env::tls::TlsMode;
use pando_env::{Clock, Env};
use pando_env_tokio::RealClock;
use pando_env_tokio::process::words;
use pando_tls::local::{Authority, Wanted};
use pando_tls::{ReadFile, Settings, Tls, TlsNet};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// `ca.pem`, `server.pem` and `client.pem` in a folder.
pub(crate) struct Local {
    folder: PathBuf,
}

impl Local {
    /// Makes what is not there yet. The authority's own key is kept nowhere: who wants other certificates deletes the folder.
    pub(crate) fn prepare(folder: &Path) -> Result<Local, String> {
        let folder = std::path::absolute(folder).map_err(|e| words(&e))?;
        let local = Local { folder };
        let there = [local.ca(), local.server(), local.client()].map(|p| p.exists());
        if there == [true; 3] {
            return Ok(local);
        }
        if there.contains(&true) {
            return Err(format!(
                "{} has some certificates and lacks others: delete it",
                local.folder.display()
            ));
        }
        local
            .make()
            .map_err(|e| format!("certificates cannot be made in {}: {e}", local.folder.display()))?;
        Ok(local)
    }
    fn make(&self) -> Result<(), String> {
        std::fs::create_dir_all(&self.folder).map_err(|e| words(&e))?;
        let mut authority =
            Authority::new("pando up", RealClock::new().wall_ms()).map_err(|e| e.to_string())?;
        let server = authority.issue(&Wanted::server(&HOSTS)).map_err(|e| e.to_string())?;
        let client = authority.issue(&Wanted::client("you")).map_err(|e| e.to_string())?;
        for (path, text) in
            [(self.ca(), authority.pem()), (self.server(), server.pem), (self.client(), client.pem)]
        {
            let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| words(&e))?;
        }
        Ok(())
    }
    pub(crate) fn ca(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }
    fn server(&self) -> PathBuf {
        self.folder.join("server.pem")
    }
    pub(crate) fn client(&self) -> PathBuf {
        self.folder.join("client.pem")
    }
    /// What a server is started with.
    pub(crate) fn options(&self) -> Vec<String> {
        [
            "--tlsMode",
            "requireTLS",
            "--tlsCertificateKeyFile",
            &self.server().to_string_lossy(),
            "--tlsCAFile",
            &self.ca().to_string_lossy(),
            "--tlsAllowConnectionsWithoutCertificates",
        ]
        .map(str::to_owned)
        .to_vec()
    }
    /// What a connection string ends with.
    pub(crate) fn of_uri(&self) -> String {
        format!("&tls=true&tlsCAFile={}", self.ca().display())
    }
    /// The world with TLS, to talk to these servers.
    pub(crate) fn on(&self, env: Env) -> Result<Env, String> {
        let settings = Settings {
            mode: TlsMode::Require,
            certificate_key_file: self.client(),
            ca_file: Some(self.ca()),
            ..Settings::default()
        };
        let read: ReadFile = Arc::new(|path| std::fs::read(path));
        let tls = Tls::load(env.clone(), settings, read).map_err(|e| e.to_string())?;
        Ok(Env { net: Arc::new(TlsNet::new(env.net.clone(), tls)), ..env })
    }
}
