//! A small authority of one's own: certificates for trying TLS (`pando up --tls`) and for tests.

use pando_base::{Error, Millis, Result, calendar, limits};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
};

/// It signs, and its certificate is what others believe.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    now_ms: Millis,
    next_serial: u64,
}

/// What a certificate is to say.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub organization: String,
    pub unit: String,
    pub common: String,
    /// Names and addresses of hosts; empty = no alternative names.
    pub hosts: Vec<String>,
    /// Days from now.
    pub from_day: i64,
    pub to_day: i64,
    /// For servers, for clients; neither = for anything.
    pub serves: bool,
    pub dials: bool,
}

impl Wanted {
    /// A server's, which is a client's as well when it dials other members.
    pub fn server(hosts: &[&str]) -> Wanted {
        Wanted {
            organization: "PandoDB".to_owned(),
            unit: "Servers".to_owned(),
            common: hosts.first().copied().unwrap_or("localhost").to_owned(),
            hosts: hosts.iter().map(|h| (*h).to_owned()).collect(),
            from_day: -1,
            to_day: limits::LOCAL_CERTIFICATE_DAYS,
            serves: true,
            dials: true,
        }
    }
    pub fn client(common: &str) -> Wanted {
        Wanted {
            unit: "Clients".to_owned(),
            common: common.to_owned(),
            hosts: Vec::new(),
            serves: false,
            ..Wanted::server(&[])
        }
    }
}

/// A certificate and its key.
pub struct Issued {
    /// Both in one text, as `tlsCertificateKeyFile` wants them.
    pub pem: String,
    pub serial: u64,
}

fn failed(e: rcgen::Error) -> Error {
    Error::internal(format!("a certificate cannot be made: {e}"))
}

impl Authority {
    pub fn new(name: &str, now_ms: Millis) -> Result<Authority> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "PandoDB");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.not_before = day(now_ms, -1);
        params.not_after = day(now_ms, limits::LOCAL_CERTIFICATE_DAYS);
        let key = KeyPair::generate().map_err(failed)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(failed)?;
        Ok(Authority { issuer, now_ms, next_serial: 1 })
    }
    /// What others believe (`tlsCAFile`).
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub fn issue(&mut self, wanted: &Wanted) -> Result<Issued> {
        let serial = self.next_serial;
        self.next_serial += 1;
        let mut params = params(wanted, self.now_ms)?;
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().map_err(failed)?;
        let cert = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Issued { pem: cert.pem() + &key.serialize_pem(), serial })
    }

    /// Certificates that are taken back, in a list that is good for the given days.
    pub fn revoke(&self, serials: &[u64], from_day: i64, to_day: i64) -> Result<String> {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: day(self.now_ms, from_day),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: day(self.now_ms, from_day),
            next_update: day(self.now_ms, to_day),
            crl_number: SerialNumber::from(1u64),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).and_then(|list| list.pem()).map_err(failed)
    }
}

/// One that nobody else has signed.
pub fn self_signed(wanted: &Wanted, now_ms: Millis) -> Result<String> {
    let key = KeyPair::generate().map_err(failed)?;
    let cert = params(wanted, now_ms)?.self_signed(&key).map_err(failed)?;
    Ok(cert.pem() + &key.serialize_pem())
}

fn params(wanted: &Wanted, now_ms: Millis) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(wanted.hosts.clone()).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, wanted.organization.as_str());
    params.distinguished_name.push(DnType::OrganizationalUnitName, wanted.unit.as_str());
    params.distinguished_name.push(DnType::CommonName, wanted.common.as_str());
    params.not_before = day(now_ms, wanted.from_day);
    params.not_after = day(now_ms, wanted.to_day);
    if wanted.serves {
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    }
    if wanted.dials {
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    }
    Ok(params)
}

/// The beginning of a day, so many from today.
fn day(now_ms: Millis, days: i64) -> time::OffsetDateTime {
    let civil = calendar::civil_of_ms(now_ms);
    let (year, month, day) = calendar::date_of(civil.days() + days);
    rcgen::date_time_ymd(i32::try_from(year).unwrap_or(i32::MAX), month, day)
}
