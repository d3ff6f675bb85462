//! Whether a certificate is of the host that was dialed: by its alternative names, and only where it has none by its common
//! name, as MongoDB does.

use crate::subject;
use std::net::IpAddr;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

/// Whom a certificate is of.
#[derive(Default)]
pub(crate) struct Names {
    dns: Vec<String>,
    ips: Vec<IpAddr>,
    common: Option<String>,
}

impl Names {
    pub(crate) fn of(cert: &X509Certificate<'_>) -> Names {
        let mut names = Names::default();
        if let Ok(Some(san)) = cert.subject_alternative_name() {
            for name in &san.value.general_names {
                match name {
                    GeneralName::DNSName(name) => names.dns.push((*name).to_owned()),
                    GeneralName::IPAddress(bytes) => names.ips.extend(address(bytes)),
                    _ => {}
                }
            }
        }
        let common = cert.subject().iter_common_name().last();
        names.common = common.and_then(|cn| subject::text(cn.attr_value()));
        names
    }
    pub(crate) fn has_alternatives(&self) -> bool {
        !self.dns.is_empty() || !self.ips.is_empty()
    }
    pub(crate) fn cover(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        if let Ok(ip) = host.parse::<IpAddr>() {
            // An address among the names of hosts counts as well.
            return self.ips.contains(&ip) || self.dns.iter().any(|n| n.parse() == Ok(ip));
        }
        if self.has_alternatives() {
            return self.dns.iter().any(|name| covers(name, host));
        }
        self.common.as_ref().is_some_and(|name| covers(name, host))
    }
    /// As the error shows them.
    pub(crate) fn shown(&self) -> String {
        let ips = self.ips.iter().map(ToString::to_string);
        let all: Vec<String> = self.dns.iter().cloned().chain(ips).collect();
        let common = self.common.as_deref().unwrap_or_default();
        if all.is_empty() {
            format!("CN: {common}")
        } else {
            format!("SAN(s): {}, CN: {common}", all.join(", "))
        }
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::from(v4));
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

/// A star stands for one whole label, the first.
fn covers(pattern: &str, host: &str) -> bool {
    let pattern = pattern.trim_end_matches('.');
    if pattern.eq_ignore_ascii_case(host) {
        return !host.is_empty();
    }
    let (Some(rest), Some((label, tail))) = (pattern.strip_prefix("*."), host.split_once('.')) else {
        return false;
    };
    // Not `*.com`.
    !label.is_empty() && rest.contains('.') && rest.eq_ignore_ascii_case(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_one_label_and_case_does_not_matter() {
        for (pattern, host, want) in [
            ("a.example.com", "A.example.COM", true),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "a.b.example.com", false),
            ("*.example.com", "example.com", false),
            ("*.example.com", ".example.com", false),
            ("a*.example.com", "ab.example.com", false),
            ("*.com", "example.com", false),
            ("*", "localhost", false),
            ("", "", false),
            ("localhost", "localhost", true),
            ("localhost\0.evil.com", "localhost", false),
        ] {
            assert_eq!(covers(pattern, host), want, "{pattern} {host}");
        }
    }

    #[test]
    fn the_common_name_counts_only_where_there_is_no_other() {
        let with = |dns: &[&str], common: &str| Names {
            dns: dns.iter().map(|n| (*n).to_owned()).collect(),
            ips: Vec::new(),
            common: Some(common.to_owned()),
        };
        assert!(with(&[], "a.b").cover("a.b"));
        assert!(!with(&["c.d"], "a.b").cover("a.b"));
        assert_eq!(with(&["c.d", "e"], "a.b").shown(), "SAN(s): c.d, e, CN: a.b");
        assert_eq!(with(&[], "a.b").shown(), "CN: a.b");
    }

    #[test]
    fn addresses_are_compared_as_addresses() {
        let names =
            Names { ips: vec!["::1".parse().unwrap()], dns: vec!["10.0.0.1".to_owned()], common: None };
        assert!(names.cover("0:0::1") && names.cover("10.0.0.1") && !names.cover("10.0.0.2"));
        assert_eq!(address(&[127, 0, 0, 1]), "127.0.0.1".parse().ok());
        assert_eq!(address(&[1, 2]), None);
    }
}
