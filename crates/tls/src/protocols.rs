//! Versions and suites by MongoDB's and OpenSSL's names.

use pando_base::{Error, ErrorCode, Result};
use rustls::crypto::CryptoProvider;
use rustls::{CipherSuite, SupportedCipherSuite, SupportedProtocolVersion, version};

/// A version that options can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    V1_0,
    V1_1,
    V1_2,
    V1_3,
}

impl Protocol {
    /// `TLS1_2`; `noTLS1_2` is an older way to say the same where versions are disabled.
    pub fn from_name(name: &str) -> Option<Protocol> {
        Some(match name {
            "TLS1_0" => Protocol::V1_0,
            "TLS1_1" => Protocol::V1_1,
            "TLS1_2" => Protocol::V1_2,
            "TLS1_3" => Protocol::V1_3,
            _ => return None,
        })
    }
}

/// Those that are left. 1.0 and 1.1 are not spoken here at all.
pub(crate) fn enabled(disabled: &[Protocol]) -> Result<Vec<&'static SupportedProtocolVersion>> {
    let all = [(Protocol::V1_3, &version::TLS13), (Protocol::V1_2, &version::TLS12)];
    let left: Vec<_> = all.into_iter().filter(|(p, _)| !disabled.contains(p)).map(|(_, v)| v).collect();
    if left.is_empty() {
        let text = "All supported TLS protocols have been disabled.";
        return Err(Error::new(ErrorCode::InvalidSSLConfiguration, text));
    }
    Ok(left)
}

/// OpenSSL's name of a suite of TLS 1.2; those of 1.3 are called the same everywhere.
fn openssl_name(suite: CipherSuite) -> &'static str {
    use CipherSuite as S;
    match suite {
        S::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        S::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        S::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        S::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        S::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        S::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
        S::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        S::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        S::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        _ => "",
    }
}

/// The cryptography, with the suites of TLS 1.2 and of 1.3 that are named, in this order: lists between colons; an empty one
/// means all. A name that is none here is left out, as OpenSSL does it; where nothing is left the list is refused.
pub(crate) fn provider(ciphers: &str, suites: &str) -> Result<CryptoProvider> {
    let mut provider = rustls::crypto::ring::default_provider();
    let (v1_3, v1_2) =
        std::mem::take(&mut provider.cipher_suites).into_iter().partition(|s| s.tls13().is_some());
    provider.cipher_suites = chosen(v1_3, suites)?;
    provider.cipher_suites.extend(chosen(v1_2, ciphers)?);
    Ok(provider)
}

fn chosen(all: Vec<SupportedCipherSuite>, wanted: &str) -> Result<Vec<SupportedCipherSuite>> {
    if wanted.is_empty() {
        return Ok(all);
    }
    let names = wanted.split([':', ',', ' ']);
    let found: Vec<_> =
        names.filter_map(|name| all.iter().find(|s| openssl_name(s.suite()) == name).copied()).collect();
    if found.is_empty() {
        let text = format!(
            "Can not set supported cipher suites with config string \"{wanted}\": no cipher match (suites are named one by \
             one, without OpenSSL's groups and operators)"
        );
        return Err(Error::new(ErrorCode::InvalidSSLConfiguration, text));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_has_its_name() {
        for suite in provider("", "").unwrap().cipher_suites {
            assert!(!openssl_name(suite.suite()).is_empty(), "{suite:?}");
        }
    }

    #[test]
    fn suites_are_chosen_by_name_and_an_empty_choice_is_refused() {
        let chosen = provider("foo:ECDHE-RSA-AES256-GCM-SHA384", "TLS_AES_128_GCM_SHA256").unwrap();
        assert_eq!(chosen.cipher_suites.len(), 2);
        assert!(provider("HIGH:!aNULL", "").unwrap_err().message.contains("no cipher match"));
    }

    #[test]
    fn something_has_to_be_left_of_the_versions() {
        use Protocol::*;
        assert_eq!(enabled(&[V1_0, V1_1]).unwrap().len(), 2);
        assert_eq!(enabled(&[V1_2]).unwrap(), [&version::TLS13]);
        assert_eq!(enabled(&[V1_2, V1_3]).unwrap_err().code, ErrorCode::InvalidSSLConfiguration);
    }
}
