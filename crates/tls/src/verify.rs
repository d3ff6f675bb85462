//! Whether a certificate is good: signed by somebody who is believed, in its time, for its purpose, not revoked; and, for
//! those that this server dials, of the host that was dialed.

use crate::names::Names;
use crate::words;
use pando_env::{Component, Log};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};
use std::fmt;
use std::sync::Arc;
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, RevocationCheckDepth,
    RevocationOptionsBuilder, UnknownStatusPolicy,
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Who is believed, and what they have taken back.
pub(crate) struct Trust {
    pub(crate) certificates: Vec<CertificateDer<'static>>,
    pub(crate) anchors: Vec<TrustAnchor<'static>>,
    pub(crate) revoked: Vec<CertRevocationList<'static>>,
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
}

/// What the holder of a certificate does with it.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Client,
    Server,
}

impl Trust {
    pub(crate) fn check(
        &self,
        end: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
        purpose: Purpose,
    ) -> Result<(), CertificateError> {
        if self.certificates.iter().any(|c| c.as_ref() == end.as_ref()) {
            // Believed by itself: a certificate that nobody else has signed.
            return in_its_time(end, now);
        }
        let usage = match purpose {
            Purpose::Client => KeyUsage::client_auth(),
            Purpose::Server => KeyUsage::server_auth(),
        };
        let lists: Vec<&CertRevocationList<'_>> = self.revoked.iter().collect();
        // As OpenSSL does it for MongoDB: the peer's own certificate is looked up, and a list that says nothing of its issuer
        // is not enough.
        let revocation = RevocationOptionsBuilder::new(&lists).ok().map(|options| {
            options
                .with_depth(RevocationCheckDepth::EndEntity)
                .with_status_policy(UnknownStatusPolicy::Deny)
                .with_expiration_policy(ExpirationPolicy::Enforce)
                .build()
        });
        let cert = EndEntityCert::try_from(end).map_err(reason)?;
        let checked =
            cert.verify_for_usage(self.algorithms.all, &self.anchors, between, now, usage, revocation, None);
        checked.map(drop).map_err(reason)
    }
}

fn in_its_time(end: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
    let (_, cert) = X509Certificate::from_der(end).map_err(|_| CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < cert.validity().not_before.timestamp() {
        return Err(CertificateError::NotValidYet);
    }
    if now > cert.validity().not_after.timestamp() {
        return Err(CertificateError::Expired);
    }
    Ok(())
}

fn reason(e: webpki::Error) -> CertificateError {
    use webpki::Error as E;
    match e {
        E::BadDer | E::BadDerTime | E::TrailingData(_) => CertificateError::BadEncoding,
        E::CertExpired { .. } | E::InvalidCertValidity => CertificateError::Expired,
        E::CertNotValidYet { .. } => CertificateError::NotValidYet,
        E::CertRevoked => CertificateError::Revoked,
        E::UnknownIssuer => CertificateError::UnknownIssuer,
        E::UnknownRevocationStatus => CertificateError::UnknownRevocationStatus,
        E::CrlExpired { .. } => CertificateError::ExpiredRevocationList,
        E::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        E::RequiredEkuNotFoundContext(_) => CertificateError::InvalidPurpose,
        other => said(words::rejected(&other.to_string())),
    }
}

/// An error in these words.
fn said(text: String) -> CertificateError {
    CertificateError::Other(OtherError(Arc::new(Said(text))))
}

#[derive(Debug)]
struct Said(String);

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Said {}

macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls12_signature(message, cert, signed, &self.algorithms)
        }
        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, cert, signed, &self.algorithms)
        }
        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms.supported_schemes()
        }
    };
}

/// Of those that connect to this server.
pub(crate) struct Incoming {
    pub(crate) trust: Arc<Trust>,
    pub(crate) mandatory: bool,
    pub(crate) allow_invalid: bool,
    pub(crate) hints: Vec<DistinguishedName>,
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for Incoming {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }
    fn verify_client_cert(
        &self,
        end: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.trust.check(end, between, now, Purpose::Client) {
            Err(e) if !self.allow_invalid => Err(e.into()),
            _ => Ok(ClientCertVerified::assertion()),
        }
    }
    signatures!();
}

/// Of those that this server dials.
pub(crate) struct Outgoing {
    /// `None`: nobody can be checked, which has been asked for.
    pub(crate) trust: Option<Arc<Trust>>,
    pub(crate) allow_invalid: bool,
    pub(crate) allow_other_host: bool,
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
    pub(crate) log: Log,
}

impl Outgoing {
    fn host(&self, end: &CertificateDer<'_>, host: &str) -> Result<(), CertificateError> {
        let (_, cert) = X509Certificate::from_der(end).map_err(|_| CertificateError::BadEncoding)?;
        let names = Names::of(&cert);
        if names.cover(host) {
            return Ok(());
        }
        let shown = names.shown();
        if self.allow_other_host || self.allow_invalid {
            let text = "The server certificate does not match the remote host name";
            self.log.warn(Component::Network, 23_238, text, |a| {
                a.str("remoteHost", host).str("certificateNames", &shown);
            });
            return Ok(());
        }
        Err(said(format!("{} Hostname: {host} does not match {shown}", words::OTHER_HOST)))
    }
}

impl ServerCertVerifier for Outgoing {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trust) = &self.trust else { return Ok(ServerCertVerified::assertion()) };
        if let Err(e) = trust.check(end, between, now, Purpose::Server) {
            let why = words::of_certificate(&e);
            if !self.allow_invalid {
                return Err(e.into());
            }
            self.log.warn(Component::Network, 23_235, "SSL peer certificate validation failed", |a| {
                a.str("reason", &why);
            });
        }
        self.host(end, &host.to_str())?;
        Ok(ServerCertVerified::assertion())
    }
    signatures!();
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Incoming")
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outgoing")
    }
}
