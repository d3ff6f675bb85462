//! Why something failed, in OpenSSL's words where it has some: they stand in logs and errors that people search for.

use rustls::{CertificateError, Error, PeerIncompatible as Incompatible};

pub(crate) const NO_CERTIFICATE: &str = "no SSL certificate provided by peer; connection rejected";

/// Of a handshake.
pub(crate) fn of_handshake(e: &Error) -> String {
    match e {
        Error::InvalidCertificate(CertificateError::Other(other)) => other.to_string(),
        Error::InvalidCertificate(why) => rejected(&of_certificate(why)),
        Error::NoCertificatesPresented => NO_CERTIFICATE.to_owned(),
        Error::PeerIncompatible(
            Incompatible::Tls12NotOfferedOrEnabled
            | Incompatible::ServerTlsVersionIsDisabledByOurConfig
            | Incompatible::Tls12NotOffered
            // Only versions before 1.2 say nothing of signatures.
            | Incompatible::SignatureAlgorithmsExtensionRequired
            | Incompatible::SupportedVersionsExtensionRequired,
        ) => "SSL handshake failed, as client requested disabled protocol".to_owned(),
        Error::AlertReceived(alert) => format!("the peer refused the handshake: {alert:?}"),
        other => format!("SSL handshake failed: {other}"),
    }
}

pub(crate) const REJECTED: &str = "SSL peer certificate validation failed";
pub(crate) const OTHER_HOST: &str = "The server certificate does not match the host name.";

pub(crate) fn rejected(why: &str) -> String {
    format!("{REJECTED}: {why}")
}

pub(crate) fn of_certificate(e: &CertificateError) -> String {
    use CertificateError as C;
    match e {
        C::Expired | C::ExpiredContext { .. } => "certificate has expired",
        C::NotValidYet | C::NotValidYetContext { .. } => "certificate is not yet valid",
        C::Revoked => "certificate revoked",
        C::UnknownIssuer => "unable to verify the first certificate",
        C::UnknownRevocationStatus => "unable to get certificate CRL",
        C::ExpiredRevocationList | C::ExpiredRevocationListContext { .. } => "CRL has expired",
        C::BadSignature => "certificate signature failure",
        C::InvalidPurpose | C::InvalidPurposeContext { .. } => "unsuitable certificate purpose",
        C::BadEncoding => "the certificate cannot be read",
        other => return format!("{other}"),
    }
    .to_owned()
}
