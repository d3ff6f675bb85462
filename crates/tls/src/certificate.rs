//! What is told of a certificate.

use crate::names::Names;
use crate::subject;
use pando_base::Millis;
use pando_env::{Component, Log};
use sha1::{Digest, Sha1};
use x509_parser::prelude::{FromDer, X509Certificate};

pub(crate) struct Facts {
    pub(crate) subject: String,
    issuer: String,
    thumbprint: String,
    not_before_ms: Millis,
    pub(crate) not_after_ms: Millis,
    pub(crate) has_alternatives: bool,
}

impl Facts {
    pub(crate) fn of(der: &[u8]) -> Option<Facts> {
        let (_, cert) = X509Certificate::from_der(der).ok()?;
        let mut thumbprint = String::new();
        for byte in Sha1::digest(der) {
            thumbprint.push_str(&format!("{byte:02X}"));
        }
        Some(Facts {
            subject: subject::rfc2253(cert.subject())?,
            issuer: subject::rfc2253(cert.issuer())?,
            thumbprint,
            not_before_ms: cert.validity().not_before.timestamp().saturating_mul(1000),
            not_after_ms: cert.validity().not_after.timestamp().saturating_mul(1000),
            has_alternatives: Names::of(&cert).has_alternatives(),
        })
    }
    /// `kind` is `Server` or `Cluster`.
    pub(crate) fn log(&self, log: &Log, kind: &str, file: &str) {
        let id = if kind == "Server" { 4_913_010 } else { 4_913_011 };
        log.info(Component::Network, id, "Certificate information", |a| {
            a.str("subject", &self.subject).str("issuer", &self.issuer).str("thumbprint", &self.thumbprint);
            a.object("notValidBefore", |d| {
                d.str("$date", &iso(self.not_before_ms));
            });
            a.object("notValidAfter", |d| {
                d.str("$date", &iso(self.not_after_ms));
            });
            a.str("keyFile", file).str("type", kind);
        });
    }
}

/// Whose a peer's certificate is.
pub fn subject_of(der: &[u8]) -> Option<String> {
    let (_, cert) = X509Certificate::from_der(der).ok()?;
    subject::rfc2253(cert.subject())
}

/// `2026-11-26T00:45:25.000Z`.
fn iso(ms: Millis) -> String {
    pando_base::calendar::iso(ms) + "Z"
}
