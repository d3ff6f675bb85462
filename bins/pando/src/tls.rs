//! The tool's own TLS: options to dial a server with, and `pando up --tls`: an authority of the user's own, certificates signed by it, and what is needed to use them.

use crate::args::Args;
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

/// How a server is dialed, by the names of the shell's options and of MongoDB's tools.
pub(crate) const VALUES: &[&str] = &[
    "tlsCAFile",
    "sslCAFile",
    "tlsCertificateKeyFile",
    "sslPEMKeyFile",
    "tlsCertificateKeyFilePassword",
    "sslPEMKeyPassword",
    "tlsCRLFile",
    "sslCRLFile",
];
pub(crate) const FLAGS: &[&str] = &[
    "tls",
    "ssl",
    "tlsAllowInvalidHostnames",
    "sslAllowInvalidHostnames",
    "tlsAllowInvalidCertificates",
    "sslAllowInvalidCertificates",
    "tlsInsecure",
];

/// The world, with TLS if the options say so.
pub(crate) fn dialing(env: Env, args: &Args) -> Result<Env, String> {
    let value = |a: &str, b: &str| args.get(a).or_else(|| args.get(b));
    let flag = |a: &str, b: &str| args.has(a) || args.has(b) || args.has("tlsInsecure");
    if !args.has("tls") && !args.has("ssl") {
        return match VALUES.iter().chain(FLAGS).find(|name| args.has(name)) {
            Some(name) => Err(format!("--{name} goes together with --tls")),
            None => Ok(env),
        };
    }
    let settings = Settings {
        mode: TlsMode::Require,
        certificate_key_file: value("tlsCertificateKeyFile", "sslPEMKeyFile").map(PathBuf::from),
        certificate_key_password: value("tlsCertificateKeyFilePassword", "sslPEMKeyPassword")
            .map(|p| p.to_owned().into()),
        ca_file: value("tlsCAFile", "sslCAFile").map(PathBuf::from),
        crl_file: value("tlsCRLFile", "sslCRLFile").map(PathBuf::from),
        allow_invalid_hostnames: flag("tlsAllowInvalidHostnames", "sslAllowInvalidHostnames"),
        allow_invalid_certificates: flag("tlsAllowInvalidCertificates", "sslAllowInvalidCertificates"),
        ..Settings::default()
    };
    if settings.ca_file.is_none() && !settings.allow_invalid_certificates {
        return Err("--tls needs --tlsCAFile: whom to believe".to_owned());
    }
    with(env, settings)
}

fn with(env: Env, settings: Settings) -> Result<Env, String> {
    let read: ReadFile = Arc::new(|path| std::fs::read(path));
    let tls = Tls::load(env.clone(), settings, read).map_err(|e| e.to_string())?;
    Ok(Env { net: Arc::new(TlsNet::new(env.net.clone(), tls)), ..env })
}

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
            certificate_key_file: Some(self.client()),
            ca_file: Some(self.ca()),
            ..Settings::default()
        };
        with(env, settings)
    }
}
