//! What the options say: `net.tls`.

use crate::protocols::Protocol;
use pando_env::tls::TlsMode;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Reads a whole file.
pub type ReadFile = Arc<dyn Fn(&Path) -> io::Result<Vec<u8>> + Send + Sync>;

/// `net.tls`, checked. Paths are absolute.
#[derive(Clone, Default)]
pub struct Settings {
    pub mode: TlsMode,
    /// Certificate, its chain and its key: shown to clients, and to other members unless there is a cluster file.
    /// `None` = none is shown, and nobody can connect here.
    pub certificate_key_file: Option<PathBuf>,
    pub certificate_key_password: Option<Zeroizing<String>>,
    /// Certificate and key that other members see.
    pub cluster_file: Option<PathBuf>,
    pub cluster_password: Option<Zeroizing<String>>,
    /// Who is believed.
    pub ca_file: Option<PathBuf>,
    /// Who is believed of those that connect to this server, where that is somebody else.
    pub cluster_ca_file: Option<PathBuf>,
    pub crl_file: Option<PathBuf>,
    pub disabled: Vec<Protocol>,
    /// Versions to name in the log when a client uses them.
    pub log_versions: Vec<Protocol>,
    /// Suites of TLS 1.2 by OpenSSL's names, between colons (`opensslCipherConfig`); empty = all that there are here.
    pub ciphers: String,
    /// The same of TLS 1.3 (`opensslCipherSuiteConfig`).
    pub suites: String,
    pub allow_no_certificate: bool,
    pub allow_invalid_certificates: bool,
    pub allow_invalid_hostnames: bool,
    /// Shows other members no certificate (`tlsWithholdClientCertificate`).
    pub withhold_certificate: bool,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the passwords.
        write!(f, "{} {:?} {:?}", self.mode.name(), self.certificate_key_file, self.ca_file)
    }
}
