//! Certificates, keys and lists as files hold them, with MongoDB's errors for what cannot be used.

use crate::pem;
use crate::settings::ReadFile;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_env::{Component, Log};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::path::Path;
use webpki::{CertRevocationList, OwnedCertRevocationList};

pub(crate) struct Files<'a> {
    pub(crate) read: &'a ReadFile,
    pub(crate) log: &'a Log,
}

/// Which certificate and key: the error differs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Server,
    Cluster,
}

impl Whose {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Whose::Server => "Server",
            Whose::Cluster => "Cluster",
        }
    }
    pub(crate) fn refusal(self) -> Error {
        invalid(match self {
            Whose::Server => "Can not set up PEM key file.",
            Whose::Cluster => "Can not set up ssl clusterFile.",
        })
    }
}

pub(crate) fn invalid(text: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorCode::InvalidSSLConfiguration, text)
}

/// Without the number that the system gives it.
fn words(e: &io::Error) -> String {
    let text = e.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    format!("system library::{text}")
}

impl Files<'_> {
    fn text(&self, path: &Path) -> std::result::Result<Vec<u8>, String> {
        let text = (self.read)(path).map_err(|e| words(&e))?;
        if text.len() > limits::TLS_FILE_BYTES_MAX {
            return Err(format!("the file is larger than {} bytes", limits::TLS_FILE_BYTES_MAX));
        }
        Ok(text)
    }
    fn tell(&self, id: i32, text: &str, field: &str, path: &Path, error: &str) {
        self.log.error(Component::Network, id, text, |a| {
            a.show(field, path.display()).str("error", error);
        });
    }

    /// A certificate with its chain, and its key.
    pub(crate) fn certificate_and_key(
        &self,
        path: &Path,
        password: Option<&str>,
        whose: Whose,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let no_certificate = |e: String| {
            self.tell(23_248, "Cannot read certificate file", "keyFile", path, &e);
            whose.refusal()
        };
        let no_key = |e: String| {
            self.tell(23_251, "Cannot read PEM key", "keyFile", path, &e);
            whose.refusal()
        };
        let text = self.text(path).map_err(no_certificate)?;
        if pem::has_old_encryption(&text) {
            let text =
                "keys that are encrypted in PEM's old way are not read: 'openssl pkcs8 -topk8' converts them";
            return Err(no_key(text.to_owned()));
        }
        let chain = pem::certificates(&text).map_err(no_certificate)?;
        let key = pem::private_key(&text, password).map_err(no_key)?;
        Ok((chain, key))
    }
    /// The key is none, or is not that of the certificate.
    pub(crate) fn unusable_key(&self, path: &Path, whose: Whose, e: &rustls::Error) -> Error {
        let words = match e {
            rustls::Error::InconsistentKeys(_) => "x509 certificate routines::key values mismatch".to_owned(),
            other => other.to_string(),
        };
        self.tell(23_252, "Cannot use PEM key", "keyFile", path, &words);
        whose.refusal()
    }

    /// Who is believed.
    pub(crate) fn authorities(&self, path: &Path) -> Result<Vec<CertificateDer<'static>>> {
        let read = self.text(path).and_then(|text| pem::certificates(&text));
        read.map_err(|e| {
            invalid(format!("cannot read certificate authority file: {} error:{e}", path.display()))
        })
    }

    pub(crate) fn revoked(&self, path: &Path) -> Result<Vec<CertRevocationList<'static>>> {
        let read = self.text(path).and_then(|text| pem::revocation_lists(&text)).and_then(|lists| {
            lists
                .iter()
                .map(|der| OwnedCertRevocationList::from_der(der).map(CertRevocationList::from))
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(|e| e.to_string())
        });
        read.map_err(|e| {
            self.tell(23_254, "Cannot read CRL file", "crlFile", path, &e);
            invalid("Can not set up CRL file.")
        })
    }
}
