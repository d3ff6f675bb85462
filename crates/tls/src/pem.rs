//! PEM: certificates, keys and revocation lists in one text.

use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use x509_parser::pem::Pem;
use zeroize::Zeroizing;

/// OpenSSL's words where there is nothing of the kind.
pub(crate) const NOTHING: &str = "PEM routines::no start line";

fn sections(text: &[u8]) -> Result<Vec<Pem>, String> {
    Pem::iter_from_buffer(text).collect::<Result<_, _>>().map_err(|e| format!("PEM routines::{e}"))
}

/// All certificates, in their order; one at least.
pub(crate) fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = sections(text)?.into_iter();
    let of_kind = all.filter(|p| matches!(p.label.as_str(), "CERTIFICATE" | "X509 CERTIFICATE"));
    let found: Vec<_> = of_kind.map(|p| CertificateDer::from(p.contents)).collect();
    if found.is_empty() { Err(NOTHING.to_owned()) } else { Ok(found) }
}

/// All revocation lists; one at least.
pub(crate) fn revocation_lists(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let found: Vec<_> =
        sections(text)?.into_iter().filter(|p| p.label == "X509 CRL").map(|p| p.contents).collect();
    if found.is_empty() { Err(NOTHING.to_owned()) } else { Ok(found) }
}

/// The first private key.
pub(crate) fn private_key(text: &[u8], password: Option<&str>) -> Result<PrivateKeyDer<'static>, String> {
    for section in sections(text)? {
        return Ok(match section.label.as_str() {
            "PRIVATE KEY" => PrivatePkcs8KeyDer::from(section.contents).into(),
            "RSA PRIVATE KEY" => PrivatePkcs1KeyDer::from(section.contents).into(),
            "EC PRIVATE KEY" => PrivateSec1KeyDer::from(section.contents).into(),
            "ENCRYPTED PRIVATE KEY" => decrypt(&section.contents, password)?,
            _ => continue,
        });
    }
    Err("DECODER routines::unsupported".to_owned())
}

/// A key that is encrypted in the text's own way, which is not read here: it has headers, which are no base64.
pub(crate) fn has_old_encryption(text: &[u8]) -> bool {
    const PROC_TYPE: &[u8] = b"Proc-Type: 4,ENCRYPTED";
    text.windows(PROC_TYPE.len()).any(|w| w == PROC_TYPE)
}

fn decrypt(der: &[u8], password: Option<&str>) -> Result<PrivateKeyDer<'static>, String> {
    let Some(password) = password else {
        return Err("the key is encrypted, and no password is given".to_owned());
    };
    let key = pkcs8::EncryptedPrivateKeyInfoRef::try_from(der)
        .map_err(|_| "only keys that are encrypted by AES with PBKDF2 or scrypt are read".to_owned())?;
    let plain = key.decrypt(password.as_bytes()).map_err(|_| "Provider routines::bad decrypt".to_owned())?;
    let plain = Zeroizing::new(plain.as_bytes().to_vec());
    Ok(PrivatePkcs8KeyDer::from(plain.to_vec()).into())
}
