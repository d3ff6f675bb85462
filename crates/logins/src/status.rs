//! `security`: how clients log in, and the server's own certificate where it has one.

use crate::Logins;
use pando_bson::DocBuilder;
use pando_metrics::Collector;

pub fn append(logins: &Logins, d: &mut DocBuilder) {
    let Some(certificates) = &logins.certificates else { return };
    let own = certificates.own();
    d.str("SSLServerSubjectName", &own.subject)
        .bool("SSLServerHasCertificateAuthority", own.has_authority)
        .date("SSLServerCertificateExpirationDate", own.expires_ms);
}

/// Handshakes that failed (`metrics.tls`).
pub fn collect(logins: &Logins, to: &mut Collector<'_>) {
    const UNIT: &str = "handshakes";
    let (incoming, outgoing) = logins.certificates.as_ref().map_or((0, 0), |c| c.failed());
    to.counter("incomingHandshakesFailed", incoming as i64, UNIT, "TLS handshakes of clients that failed")
        .counter(
            "outgoingHandshakesFailed",
            outgoing as i64,
            UNIT,
            "TLS handshakes with other servers that failed",
        );
}
